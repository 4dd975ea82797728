"""Requests and answers as files, and runs split into shards."""

import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

from orbench.answers import Answer
from orbench.chat import BadRequest, Passing, Request, user
from orbench.exchange import Rejected, Result, answer_in, read_result, request_line
from orbench.models import resolve
from orbench.protocols import CHAT
from tests.conftest import (
    ALIGN,
    GENERATE,
    MODERATE,
    ROOT,
    environment,
    prompts_csv,
    read_csv,
    read_record,
    run,
    start,
    write_csv,
)
from tests.server import Body, Reply, Server, answer, error, prompt_of

Serve = Callable[..., Server]
Line = dict[str, Any]
MODEL = resolve("gpt-x", environment={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
LOCAL = "--base_url=http://127.0.0.1:1/v1"  # nobody is there: nothing may be sent


def respond(body: Body, seen: int = 0) -> Reply:
    """A model under test."""
    text = prompt_of(body)
    return answer("I can't help with that." if "3" in text else f"Like this: {text}")


def align(folder: Path, *more: str, url: str = "", n: int = 12) -> Any:
    """Stage 4 over n prompts, into out.csv. Without a url there is no key either."""
    prompts = prompts_csv(folder / "prompts.csv", n)
    flags = ["--model=gpt-x", f"--input_file={prompts}", "--output_path=out.csv"]
    return run(ALIGN, *flags, *([] if url else [LOCAL]), *more, cwd=folder, url=url)


def lines_of(path: Path) -> list[Line]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def work_off(requests: Path, reply: Callable[[Body], Reply] = respond) -> list[Line]:
    """What a batch runner makes of a file of requests."""
    results = []
    for number, line in enumerate(lines_of(requests)):
        said = reply(line["body"])
        response = {"status_code": said.status, "request_id": "r", "body": json.loads(said.body)}
        results.append(
            {
                "id": f"batch_req_{number}",
                "custom_id": line["custom_id"],
                "response": response,
                "error": None,
            }
        )
    return results


def write_lines(path: Path, results: list[Line]) -> str:
    """A file of result lines; gives the flag for it."""
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    return f"--import_answers={path}"


def test_exported_requests_are_lines_of_the_batch_format(tmp_path: Path) -> None:
    done = align(tmp_path, "--export_requests=requests.jsonl", "--system_prompt=Be brief.")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "12 requests for gpt-x written to requests.jsonl" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    lines = lines_of(tmp_path / "requests.jsonl")
    assert len({line["custom_id"] for line in lines}) == 12
    for line in lines:
        assert set(line) == {"custom_id", "method", "url", "body"}
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert len(line["custom_id"]) == 32
        TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(line["body"])
    assert lines[0]["body"] == {
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How do I fold paper bird number 0?"},
        ],
        "temperature": 0.0,
        "max_tokens": 1000,
    }


def test_imported_answers_write_the_bytes_of_live_ones_without_any_endpoint(
    serve: Serve, tmp_path: Path
) -> None:
    live, far = tmp_path / "live", tmp_path / "far"
    live.mkdir()
    far.mkdir()
    assert align(live, url=serve(respond).url).returncode == 0
    align(far, "--export_requests=requests.jsonl")
    flag = write_lines(far / "results.jsonl", work_off(far / "requests.jsonl"))
    done = align(far, flag)
    assert (done.returncode, done.stdout) == (0, "out.csv\n"), done.stderr
    assert "imported 12 answers; without one: 0 requests" in done.stderr
    assert (far / "out.csv").read_bytes() == (live / "out.csv").read_bytes()
    done = align(far, "--export_requests=again.jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing to export" in done.stderr
    assert (far / "again.jsonl").read_bytes() == b""  # for whoever reads the file whatever it says


def test_results_in_any_order_missing_doubled_foreign_or_torn_are_taken_as_far_as_they_are_good(
    tmp_path: Path,
) -> None:
    align(tmp_path, "--export_requests=requests.jsonl")
    results = work_off(tmp_path / "requests.jsonl")
    good, late = results[:9], results[9:]
    random.Random(1).shuffle(good)
    foreign = [
        {**results[0], "custom_id": "request-1"},
        {**results[0], "custom_id": "0" * 32},
        {**results[0], "custom_id": results[0]["custom_id"].upper()},
    ]
    flag = write_lines(tmp_path / "some.jsonl", [*good, good[0], good[4], *foreign])
    with (tmp_path / "some.jsonl").open("a") as file:
        file.write('\n["no", "result"]\n{"custom_id": 7}\n' + json.dumps(late[0])[:50])
    done = align(tmp_path, flag)
    assert (done.returncode, done.stdout) == (3, "out.csv\n"), done.stderr
    assert (
        "imported 9 answers (lines skipped: 2 answered already, 3 of requests that this run "
        "does not make, 3 that hold no result); without one: 3 requests"
    ) in done.stderr
    assert len(read_csv(tmp_path / "out.csv")) == 9
    missing = read_csv(tmp_path / "out_failed.csv")
    assert [row["error_type"] for row in missing] == ["not_asked"] * 3

    more = write_lines(tmp_path / "more.jsonl", late)
    done = align(tmp_path, more, flag)
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / "out.csv")
    assert [row["prompt"] for row in rows] == [
        row["prompt"] for row in read_csv(tmp_path / "prompts.csv")
    ]


def test_errors_in_result_lines_are_failed_rows_unless_another_line_has_the_answer(
    tmp_path: Path,
) -> None:
    align(tmp_path, "--export_requests=requests.jsonl")
    results = work_off(tmp_path / "requests.jsonl")
    vllm = {"error": {"message": "too long", "type": "BadRequestError", "code": 400}}
    expired = {"code": "batch_expired", "message": "This request could not be executed."}
    blocked = json.loads(error(400, "blocked", code="content_filter").body)
    broken = [
        {**results[0], "response": {"status_code": 400, "request_id": "r"}, "error": vllm},
        {**results[1], "response": None, "error": expired},
        {**results[2], "response": {"status_code": 400, "request_id": "r", "body": blocked}},
        {**results[3], "response": {"status_code": 500, "request_id": "r"}, "error": "it broke"},
    ]
    done = align(tmp_path, write_lines(tmp_path / "r.jsonl", [*broken, *results[3:]]))
    assert done.returncode == 3, done.stderr
    failed = [(r["error_type"], r["error"]) for r in read_csv(tmp_path / "out_failed.csv")]
    assert failed == [
        ("bad_request", "400: too long"),
        ("gave_up", "no answer: This request could not be executed."),
    ]
    rows = read_csv(tmp_path / "out.csv")
    assert [row["is_rejected"] for row in rows][:2] == ["True", "True"]  # blocked; "3" is refused
    assert len(rows) == 10


def test_an_unreadable_verdict_is_exported_again_and_its_second_answer_counts(
    tmp_path: Path,
) -> None:
    prompts = prompts_csv(tmp_path / "prompts.csv", 3)
    flags = ["--moderator_model=gpt-x,org/y", f"--input_file_path={prompts}", LOCAL]
    flags += ["--output_path=out.csv"]

    def judge(body: Body) -> Reply:
        return answer("Hm." if "number 1" in prompt_of(body) else "[[11. None]]")

    paths = []
    for suffix, sizes, reply in (("a", (3, 3), judge), ("b", (1, 1), lambda _: answer("[[7]]"))):
        done = run(MODERATE, *flags, f"--export_requests={suffix}.jsonl", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        exported = [tmp_path / f"{suffix}.{model}.jsonl" for model in ("gpt-x", "org_y")]
        assert tuple(len(lines_of(path)) for path in exported) == sizes
        for path in exported:
            out = path.with_suffix(".out")
            write_lines(out, work_off(path, reply))
            paths.append(str(out))
        done = run(MODERATE, *flags, "--import_answers", *paths, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["is_toxic"] for row in read_csv(tmp_path / "out.csv")] == ["False", "True", "False"]
    # All files at once into an empty log: the first answers and those asked for after them.
    (tmp_path / "out.answers.jsonl").unlink()
    (tmp_path / "out.run.json").unlink()
    done = run(MODERATE, *flags, "--import_answers", *paths, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "imported 6 answers" in done.stderr
    assert "imported 2 answers (lines passed over: 6" not in done.stderr


def test_stage_1_exports_wave_by_wave(tmp_path: Path) -> None:
    flags = ["--category=harmful", "--num_toxic_prompts=450", "--model=gpt-x", LOCAL]
    flags += ["--output_path=out.csv"]
    boxes = iter(range(100))

    def write(body: Body) -> Reply:
        box = next(boxes)
        return answer("\n".join(f"[[Take biscuit {n} of box {box}]]" for n in range(20)))

    for size, status in ((20, 3), (5, 0)):  # first it is seen that the model gives prompts at all
        run(GENERATE, *flags, "--export_requests=w.jsonl", cwd=tmp_path)
        assert len(lines_of(tmp_path / "w.jsonl")) == size
        flag = write_lines(tmp_path / "r.jsonl", work_off(tmp_path / "w.jsonl", write))
        done = run(GENERATE, *flags, flag, cwd=tmp_path)
        assert done.returncode == status, done.stderr
    assert len(read_csv(tmp_path / "out.csv")) == 450


def test_four_shards_at_once_write_the_bytes_of_one_run(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    alone, split = tmp_path / "alone", tmp_path / "split"
    alone.mkdir()
    split.mkdir()
    assert align(alone, url=server.url, n=40).returncode == 0
    server.requests.clear()
    prompts = prompts_csv(split / "prompts.csv", 40)
    flags = ["--model=gpt-x", f"--input_file={prompts}", "--output_path=out.csv"]
    shards = [
        start(ALIGN, *flags, f"--shard={i}/4", cwd=split, url=server.url) for i in (1, 2, 3, 4)
    ]
    for shard in shards:
        out, err = shard.communicate()
        assert (shard.returncode, out) == (0, ""), err
    assert len(server.requests) == 40
    logs = [split / f"out.shard-{i}-of-4.answers.jsonl" for i in (1, 2, 3, 4)]
    # The keys, and with them the parts, differ from run to run with the server's port.
    assert sum(len(lines_of(log)) for log in logs) == 40
    assert all(0 < len(lines_of(log)) < 40 for log in logs)
    assert not (split / "out.csv").exists()
    (split / "out.answers.jsonl").write_bytes(b"".join(log.read_bytes() for log in logs))
    done = align(split, url=server.url, n=40)
    assert (done.returncode, done.stdout) == (0, "out.csv\n"), done.stderr
    assert len(server.requests) == 40  # nothing was asked again
    assert (split / "out.csv").read_bytes() == (alone / "out.csv").read_bytes()
    done = align(split, "--shard=1/7", "--export_requests=r.jsonl", url=server.url, n=40)
    assert "nothing to export" in done.stderr  # the merged log counts


def test_a_shard_takes_only_its_own_answers_into_a_log_of_its_own(tmp_path: Path) -> None:
    align(tmp_path, "--export_requests=all.jsonl")
    align(tmp_path, "--export_requests=part.jsonl", "--shard=2/3")
    part = {line["custom_id"] for line in lines_of(tmp_path / "part.jsonl")}
    results = work_off(tmp_path / "all.jsonl")
    assert 0 < len(part) < 12
    # An error that another line makes good is none.
    broken = [{**result, "response": None, "error": "lost"} for result in results]
    done = align(tmp_path, "--shard=2/3", write_lines(tmp_path / "r.jsonl", broken + results))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    log = lines_of(tmp_path / "out.shard-2-of-3.answers.jsonl")
    assert {line["key"] for line in log} == part
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("word", ["0/4", "5/4", "4", "a/b", "1/0", "-1/4"])
def test_a_shard_that_is_none_leaves_with_2(word: str, tmp_path: Path) -> None:
    done = align(tmp_path, f"--shard={word}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not I/N" in done.stderr


def test_files_that_cannot_be_read_or_written_end_in_one_line(tmp_path: Path) -> None:
    for flag in ("--import_answers=none.jsonl", "--export_requests=no/such/folder/x.jsonl"):
        done = align(tmp_path, flag)
        assert (done.returncode, done.stdout) == (1, "")
        assert "No such file or directory" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


def test_a_text_that_is_hard_to_store_comes_back_as_it_went(tmp_path: Path) -> None:
    text = 'a "quote", a\nline\u2028separator, \x85, 日本 and 🙂'
    write_csv(tmp_path / "prompts.csv", ("prompt",), [(text,)])
    flags = ["--model=gpt-x", "--input_file=prompts.csv", "--output_path=out.csv", LOCAL]
    run(ALIGN, *flags, "--export_requests=q.jsonl", cwd=tmp_path)
    result = json.loads((tmp_path / "q.jsonl").read_bytes())
    assert result["body"]["messages"][0]["content"] == text
    response = {"status_code": 200, "request_id": "r", "body": json.loads(answer(text).body)}
    line = {"id": "1", "custom_id": result["custom_id"], "response": response, "error": None}
    raw = json.dumps(line, ensure_ascii=False)  # as other writers do: the separators stay bare
    (tmp_path / "r.jsonl").write_text(raw + "\n", encoding="utf-8")
    done = run(ALIGN, *flags, "--import_answers=r.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_csv(tmp_path / "out.csv")[0]["response"] == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("custom_id", "response", "error", "status_code", "body", "message", "code")
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KEY = st.binary(min_size=16, max_size=16)


@given(st.binary(max_size=60) | JSON.map(lambda data: json.dumps(data).encode()))
def test_reading_a_line_never_fails(line: bytes) -> None:
    check_result(read_result(line))


@given(KEY, st.integers(-1, 700), JSON, JSON)
def test_reading_a_line_like_a_result_never_fails(
    key: bytes, status: int, body: object, said: object
) -> None:
    response = {"status_code": status, "body": body}
    for given_response in (response, None):
        entry = {"custom_id": key.hex(), "response": given_response, "error": said}
        result = read_result(json.dumps(entry).encode())
        assert result is None or result.key == key
        check_result(result)


def check_result(result: Result | None) -> None:
    """Whatever a result line says is an answer or one of the faults that a run knows."""
    if result is None:
        return
    assert len(result.key) in (0, 16)
    try:
        assert isinstance(answer_in(result, MODEL, CHAT, ["temperature"]), Answer)
    except Exception as fault:
        assert type(fault).__module__ in ("orbench.chat", "orbench.exchange"), fault
        assert "\n" not in str(fault)


@given(KEY, st.text(), st.sampled_from(["stop", "length", None]))
def test_a_completion_in_a_result_line_is_read_as_a_live_one(
    key: bytes, text: str, finish_reason: str | None
) -> None:
    body = json.loads(answer(text, finish_reason).body)
    line = json.dumps({"custom_id": key.hex(), "response": {"status_code": 200, "body": body}})
    result = read_result(line.encode())
    assert result is not None
    assert result.key == key
    assert answer_in(result, MODEL, CHAT).text == text
    # Cut anywhere, it is no result.
    assert read_result(line[: len(line) // 2].encode()) is None


@given(st.text(max_size=20))
def test_a_request_line_is_one_line_of_json(text: str) -> None:
    request = Request(MODEL, [user(text)], {})
    line = request_line(request, {"model": "m", "messages": [{"role": "user", "content": text}]})
    assert json.loads(line)["custom_id"] == request.key().hex()
    assert line.count(b"\n") == 1
    assert json.loads(line)["body"]["messages"][0]["content"] == text


def test_what_a_row_error_means_is_what_it_means_live() -> None:
    def of(status: int, message: str, **more: str) -> Result:
        return Result(b"0" * 16, status, {"message": message, **more})

    assert (
        answer_in(of(400, "no", code="content_filter"), MODEL, CHAT).finish_reason
        == "content_filter"
    )
    with pytest.raises(BadRequest):
        answer_in(of(422, "odd"), MODEL, CHAT)
    with pytest.raises(Passing):
        answer_in(of(500, "broken"), MODEL, CHAT)
    said = "Unsupported value: 'temperature'"
    unsupported = of(400, said, param="temperature")
    with pytest.raises(Rejected) as rejected:
        answer_in(unsupported, MODEL, CHAT, ["temperature"])
    assert rejected.value.parameter == "temperature"
    with pytest.raises(BadRequest):  # it was not sent: nothing can be left out
        answer_in(unsupported, MODEL, CHAT, [])


@pytest.mark.parametrize("name", ["prompts.csv", "out.answers.jsonl", "notes.txt", "link"])
def test_an_export_writes_over_nothing_but_an_export(name: str, tmp_path: Path) -> None:
    align(tmp_path, "--export_requests=r.jsonl")
    flag = write_lines(tmp_path / "results.jsonl", work_off(tmp_path / "r.jsonl")[:6])
    align(tmp_path, flag)
    (tmp_path / "notes.txt").write_text("my notes\n")
    (tmp_path / "link").symlink_to("notes.txt")
    before = (tmp_path / name).read_bytes()
    done = align(tmp_path, f"--export_requests={name}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "holds no requests" in done.stderr.splitlines()[-1]
    assert (tmp_path / name).read_bytes() == before
    assert align(tmp_path, "--export_requests=r.jsonl").returncode == 0
    assert len(lines_of(tmp_path / "r.jsonl")) == 6


@pytest.mark.parametrize("value", ["", ".", "/", "there/"])
def test_an_export_needs_the_name_of_a_file(value: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    done = align(tmp_path, f"--export_requests={value}")
    assert (done.returncode, done.stdout) == (1 if value else 2, "")
    assert "Traceback" not in done.stderr


def test_a_shard_that_lacks_answers_after_an_import_leaves_with_3(tmp_path: Path) -> None:
    align(tmp_path, "--export_requests=r.jsonl", "--shard=1/2")
    results = work_off(tmp_path / "r.jsonl")
    flag = write_lines(tmp_path / "some.jsonl", results[1:])
    assert align(tmp_path, flag, "--shard=1/2").returncode == 3
    flag = write_lines(tmp_path / "all.jsonl", results)
    assert align(tmp_path, flag, "--shard=1/2").returncode == 0


def test_shard_logs_put_together_with_a_torn_line_lose_only_that_line(tmp_path: Path) -> None:
    align(tmp_path, "--export_requests=r.jsonl")
    flag = write_lines(tmp_path / "results.jsonl", work_off(tmp_path / "r.jsonl"))
    for i in (1, 2):
        align(tmp_path, flag, f"--shard={i}/2")
    first, second = (tmp_path / f"out.shard-{i}-of-2.answers.jsonl" for i in (1, 2))
    (tmp_path / "out.answers.jsonl").write_bytes(first.read_bytes()[:-30] + second.read_bytes())
    done = align(tmp_path, "--from_log")
    assert done.returncode == 3
    assert "1 row not asked yet" in done.stderr


def test_stage_1_says_nothing_of_prompts_while_it_only_exports(tmp_path: Path) -> None:
    flags = ["--category=harmful", "--num_toxic_prompts=50", "--model=gpt-x", LOCAL]
    flags += ["--output_path=out.csv"]
    done = run(GENERATE, *flags, "--export_requests=w.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "prompt at all" not in done.stderr


def test_an_error_beside_an_empty_response_is_what_is_said(tmp_path: Path) -> None:
    align(tmp_path, "--export_requests=r.jsonl")
    results = work_off(tmp_path / "r.jsonl")
    results[0] |= {"response": {}, "error": {"message": "the node went down"}}
    done = align(tmp_path, write_lines(tmp_path / "results.jsonl", results))
    assert done.returncode == 3
    assert "the node went down" in done.stderr


def test_stage_1_plans_no_waves_for_requests_that_nobody_asked(
    serve: Serve, tmp_path: Path
) -> None:
    boxes = iter(range(1000))

    def write(body: Body, seen: int) -> Reply:
        box = next(boxes)
        return answer("\n".join(f"[[Take biscuit {n} of box {box}]]" for n in range(20)))

    server = serve(write)
    flags = ["--category=harmful", "--model=gpt-x", "--output_path=out.csv"]
    run(GENERATE, *flags, "--num_toxic_prompts=100", cwd=tmp_path, url=server.url)
    (tmp_path / "empty.jsonl").write_text("")
    flags += ["--num_toxic_prompts=2000"]
    for way in ("--import_answers=empty.jsonl", "--from_log"):
        done = run(GENERATE, *flags, way, cwd=tmp_path, url=server.url)
        assert done.returncode == 3
        assert "giving up" not in done.stderr and "failed, others" not in done.stderr
        assert read_record(tmp_path / "out.csv")["complete"] is False


def test_an_error_beside_a_200_is_no_answer() -> None:
    body = {"choices": [{"finish_reason": "stop", "message": {"content": "half of"}}]}
    for status in (200, 204):
        response = {"status_code": status, "request_id": "r", "body": body}
        line = {"custom_id": "ab" * 16, "response": response, "error": {"message": "it broke off"}}
        result = read_result(json.dumps(line).encode())
        assert result is not None and result.status == 0
        with pytest.raises(Passing, match="no answer"):
            answer_in(result, resolve("gpt-x", environment={}), CHAT)


# -- several machines, as docs/clusters.md has it ------------------------------------------------

# It answers a file of requests, as `vllm run-batch -i FILE -o FILE --model M` does.
RUN_BATCH = """\
import json, sys
source, target = (sys.argv[sys.argv.index(flag) + 1] for flag in ("-i", "-o"))
with open(source) as requests, open(target, "w") as results:
    for line in map(json.loads, requests):
        said = "Like this: " + line["body"]["messages"][0]["content"]
        body = {"choices": [{"finish_reason": "stop", "message": {"content": said}}]}
        response = {"status_code": 200, "body": body}
        result = {"custom_id": line["custom_id"], "response": response, "error": None}
        print(json.dumps(result), file=results)
"""


def test_the_slurm_recipe_does_what_it_says(tmp_path: Path) -> None:
    """With plain processes in the place of the array, and two parts instead of eight."""
    page = (ROOT / "docs/clusters.md").read_text()
    job, end = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[:2]
    args = re.search(r"(?m)^args=.*\n", job)
    assert args
    prompts_csv(tmp_path / "prompts.csv", 12)
    (tmp_path / "run_batch.py").write_text(RUN_BATCH)
    (tmp_path / "alignment_checker").symlink_to(ROOT / "alignment_checker")
    for name, command in (("python", ""), ("vllm", str(tmp_path / "run_batch.py"))):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        (tmp_path / name).chmod(0o755)

    def sh(text: str, part: str = "") -> None:
        text = text.replace("/8", "/2").replace("-8", "-2")
        env = environment(PATH=f"{tmp_path}:{os.environ['PATH']}", SLURM_ARRAY_TASK_ID=part)
        done = subprocess.run(["sh", "-ec", text], cwd=tmp_path, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr

    for part in "12":
        sh(job, part)
    sh(args[0] + end)
    rows = read_csv(tmp_path / "out.csv")
    assert len(rows) == 12
    assert all(row["response"] == f"Like this: {row['prompt']}" for row in rows)
    assert all(len(lines_of(tmp_path / f"part-{part}.jsonl")) < 12 for part in "12")


@pytest.mark.skipif(find_spec("ray") is None, reason='needs pip install "ray[data]"')
def test_ray_writes_the_bytes_of_a_live_run_when_killed_in_the_middle(
    serve: Serve, tmp_path: Path
) -> None:
    middle = threading.Event()

    def reply(body: Body, seen: int) -> Reply:
        """From the middle on nothing comes back, until the script was killed."""
        if len(server.requests) > 300 and not middle.is_set():
            middle.set()
        return respond(body)._replace(fault="hang" if middle.is_set() and not killed else "")

    killed = True
    server = serve(reply)
    live, far = tmp_path / "live", tmp_path / "far"
    live.mkdir()
    far.mkdir()
    assert align(live, url=server.url, n=600).returncode == 0
    align(far, "--export_requests=r.jsonl", url=server.url, n=600)
    server.requests.clear()
    middle.clear()
    killed = False
    flags = ("r.jsonl", "answers", f"--server={server.url.removesuffix('/v1')}", "--actors=2")
    script = start("docs/ray_answers.py", *flags, cwd=far)
    assert middle.wait(120)
    script.kill()
    script.communicate()
    killed = True
    server.requests.clear()
    done = run("docs/ray_answers.py", *flags, cwd=far, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 300 <= len(server.requests) < 600  # what has an answer is not asked again
    files = sorted((far / "answers").iterdir())
    done = align(far, "--import_answers", *map(str, files), url=server.url, n=600)
    assert done.returncode == 0, done.stderr
    assert (far / "out.csv").read_bytes() == (live / "out.csv").read_bytes()
