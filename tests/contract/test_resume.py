"""Nothing is lost and nothing is paid for twice, whatever happens to a run."""

import errno
import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.batch_server import BatchServer
from tests.conftest import ALIGN, CHECK, GENERATE, MODERATE, ROOT, Desk, error_line
from tests.server import NOBODY, Body, Reply, answer, by_number, completion, error, number_of

LOG = "o.answers.jsonl"


def own_words(body: Body, seen: int) -> str:
    return f"Fold bird {number_of(body)} in half."


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def answered(desk: Desk) -> set[int]:
    """The numbers of the prompts that have an answer of `own_words` in a whole line of the log."""
    log = desk.folder / LOG
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return {int(n) for line in lines for n in re.findall(rb'"Fold bird (\d+) in half', line)}


def wait_for_answers(desk: Desk, n: int) -> None:
    wait_for(lambda: len(answered(desk)) >= n)


# -- faults of the endpoint --------------------------------------------------------------------

PASSING = (
    *(answer("Fold it.")._replace(fault=fault) for fault in ("drop", "garbage", "hang", "cut")),
    *(error(status) for status in (408, 409, 500, 503)),
    error(429, headers=[("Retry-After-Ms", "50")]),
    *(Reply(""), Reply("", 204), Reply('{"choices": ['), Reply(completion())),
    Reply("<html>busy</html>", content_type="text/html"),
    Reply('{"error": {"message": "overloaded"}}'),
)


def test_what_can_pass_by_itself_is_retried(desk: Desk) -> None:
    desk.prompts(len(PASSING))
    desk.serve(lambda body, seen: "Fold it." if seen else PASSING[number_of(body)])
    done = desk.stage(ALIGN, "--timeout=1")
    assert done.returncode == 0, done.stderr
    assert Counter(map(number_of, desk.server.requests)) == dict.fromkeys(range(len(PASSING)), 2)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_row_at_fault_fails_alone_and_is_tried_again_by_the_same_command(
    desk: Desk, status: int
) -> None:
    desk.prompts(5)
    desk.serve(by_number({2: error(status, "too long\nby far")}))
    done = desk.stage(ALIGN)
    assert (done.returncode, len(desk.rows()), len(desk.server.requests)) == (3, 4, 5), done.stderr
    (failed,) = desk.failed()
    assert list(failed) == ["prompt", "category", "error_type", "error"]
    assert failed["prompt"] == "How do I fold paper bird number 2?"
    assert failed["error_type"] == "bad_request"
    assert str(status) in failed["error"] and "too long by far" in failed["error"]
    desk.server.reply = "Fold it."
    done = desk.stage(ALIGN)
    assert (done.returncode, len(desk.rows()), len(desk.server.requests)) == (0, 5, 6), done.stderr
    assert not (desk.folder / "o_failed.csv").exists()


FATAL = {
    "a wrong key": (error(401, "bad key"), "OPENAI_API_KEY"),
    "an unknown model": (error(404, "no such model"), "gpt-x"),
    "a spent quota": (error(429, "exceeded", code="insufficient_quota"), "quota"),
    "no money": (error(402, "insufficient balance"), "quota"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_cannot_pass_stops_the_run_and_keeps_what_has_arrived(desk: Desk, name: str) -> None:
    reply, says = FATAL[name]
    desk.prompts(500)
    desk.serve(lambda body, seen: "Fold it." if number_of(body) < 3 else reply)
    done = desk.stage(ALIGN, "--concurrency=4")
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert says in line and "Traceback" not in done.stderr
    assert len(desk.server.requests) <= 3 + 4
    assert len(desk.rows()) == 3
    desk.server.reply = "Fold it."
    sent = len(desk.server.requests)
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.server.requests) - sent == 497


def test_rows_that_were_not_asked_stand_in_the_failed_file_too(desk: Desk) -> None:
    desk.prompts(40)
    desk.serve(lambda body, seen: "Fold it." if number_of(body) < 3 else error(401, "bad key"))
    assert desk.stage(ALIGN, "--concurrency=2").returncode == 1
    without = Counter(row["error_type"] for row in desk.failed())
    assert without["not_asked"] >= 35 and without.total() == 37


# -- the same command once more ----------------------------------------------------------------


def test_a_second_run_sends_nothing_and_writes_the_same_bytes(desk: Desk) -> None:
    desk.prompts(30)
    desk.serve(own_words)
    assert desk.stage(ALIGN).returncode == 0
    first = (desk.folder / "o.csv").read_bytes()
    (desk.folder / "o.csv").unlink()
    assert desk.stage(ALIGN).returncode == 0
    assert (desk.folder / "o.csv").read_bytes() == first
    assert len(desk.server.requests) == 30


def test_equal_rows_are_asked_once_and_answered_each(desk: Desk) -> None:
    desk.csv("p.csv", ("prompt", "id"), [("Fold a bird?", str(n)) for n in range(40)])
    desk.serve("Fold it.", latency=0.01)
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.server.requests) == 1
    assert [row["id"] for row in desk.rows()] == [str(n) for n in range(40)]


def test_an_unreadable_answer_is_asked_three_times_in_one_run_and_never_again(desk: Desk) -> None:
    desk.prompts(2)
    desk.serve(by_number({0: "It is hard to say."}, "[[none of the above]]"))
    for _ in range(3):
        done = desk.stage(MODERATE)
        assert done.returncode == 3, done.stderr
        assert len(desk.server.requests) == 3 + 1
        (failed,) = desk.failed()
        assert failed["error_type"] == "unscored"
    desk.prompts(3)
    assert desk.stage(MODERATE).returncode == 3
    assert len(desk.server.requests) == 4 + 1


def test_an_empty_answer_is_unscored_and_not_paid_for_again(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(by_number({0: answer("<think>Well, this", "length"), 1: answer("")}))
    assert desk.stage(ALIGN).returncode == 3
    sent = len(desk.server.requests)
    assert desk.stage(ALIGN).returncode == 3
    assert [row["error_type"] for row in desk.failed()] == ["unscored"] * 2
    assert len(desk.server.requests) == sent


def test_a_larger_input_a_larger_limit_and_more_samples_only_add(desk: Desk) -> None:
    desk.serve(own_words)
    desk.prompts(4)
    for flags, rows in ((["--limit=2"], 2), (["--limit=3"], 3), ([], 4)):
        done = desk.stage(ALIGN, *flags)
        assert done.returncode == 0, done.stderr
        assert len(desk.rows()) == len(desk.server.requests) == rows
    desk.prompts(6)
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.rows()) == len(desk.server.requests) == 6
    done = desk.stage(ALIGN, "--samples=2")
    assert done.returncode == 0, done.stderr
    assert len(desk.rows()) == len(desk.server.requests) == 12


OTHERS: dict[str, list[str]] = {
    "a temperature": ["--temperature=0.5"],
    "a system prompt": ["--system_prompt=Be brief."],
    "a limit of tokens": ["--max_tokens=7"],
    "a random seed": ["--random_seed=1"],
    "a reasoning effort": ["--reasoning_effort=high"],
    "a field of the body": ['--extra_body={"top_k": 1}'],
    "a model": ["--model=gpt-y"],
    "an address": ["--base_url=http://127.0.0.1:9/v1"],
    "a smaller limit": ["--limit=5"],
    "a sample": ["--limit=7", "--shuffle=1"],
    "an input": ["--input_file=in/p.csv"],
    "settings, from the log": ["--temperature=0.5", "--from_log"],
}


def measured(desk: Desk, n: int = 8) -> dict[str, bytes]:
    """Six rows of n are done; gives the files."""
    (desk.folder / "in").mkdir()
    desk.csv("in/p.csv", ("prompt", "category"), [(f"Boat {i}?", "a") for i in range(7)])
    desk.prompts(n)
    desk.serve(own_words)
    assert desk.stage(ALIGN, "--limit=6").returncode == 0
    return desk.files()


@pytest.mark.parametrize("name", OTHERS)
def test_existing_results_are_kept_where_these_would_be_others(desk: Desk, name: str) -> None:
    before = measured(desk)
    line = desk.stopped(ALIGN, *OTHERS[name])
    assert "--overwrite" in line and "--output_path" in line
    assert desk.files() == before
    assert len(desk.server.requests) == 6


@pytest.mark.parametrize("name", OTHERS)
def test_a_dry_run_refuses_what_the_run_would_refuse(desk: Desk, name: str) -> None:
    before = measured(desk)
    flags = [flag for flag in OTHERS[name] if flag != "--from_log"]
    assert "--overwrite" in desk.stopped(ALIGN, *flags, "--dry_run")
    assert desk.files() == before
    assert len(desk.server.requests) == 6


@pytest.mark.parametrize(("old", "new"), [("number 2?", "number 20?"), (',"a"', ',"c"')])
def test_existing_results_are_kept_where_a_row_of_the_input_changed(
    desk: Desk, old: str, new: str
) -> None:
    measured(desk)
    path = desk.folder / "p.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    assert "--overwrite" in desk.stopped(ALIGN)
    assert len(desk.server.requests) == 6


def test_overwrite_replaces_results(desk: Desk) -> None:
    measured(desk)
    assert desk.stage(ALIGN, "--temperature=1", "--limit=2", "--overwrite").returncode == 0
    assert len(desk.rows()) == 2
    assert desk.record()["parameters"]["temperature"] == 1.0


def test_the_order_of_fields_and_the_spelling_of_an_address_change_nothing(desk: Desk) -> None:
    desk.prompts(2)
    server = desk.serve()
    extra = ('{"x": {"a": 1, "b": 2}, "y": 3}', '{"y": 3, "x": {"b": 2, "a": 1}}')
    same = (server.url, server.url + "/", f"http://localhost:{server.port}/v1")
    for body in extra:
        for url in same:
            done = desk.stage(ALIGN, f"--extra_body={body}", url=url)
            assert done.returncode == 0, done.stderr
    assert len(server.requests) == 2


def test_seeds_are_not_replaced_by_those_of_another_category_or_by_fewer(desk: Desk) -> None:
    desk.serve(lambda body, seen: "\n".join(f"[[Take jam {n} of {seen}]]" for n in range(20)))
    assert desk.stage(GENERATE, "--num_toxic_prompts=30").returncode == 0
    for flags in (["--category=hate"], ["--num_toxic_prompts=10"]):
        assert "--overwrite" in desk.stopped(GENERATE, *flags)
    sent = len(desk.server.requests)
    assert desk.stage(GENERATE, "--num_toxic_prompts=50").returncode == 0
    assert len({row["prompt"] for row in desk.rows()}) == 50
    assert len(desk.server.requests) <= sent + 2


@pytest.mark.parametrize("name", ["o.csv", "o_failed.csv", "o_rejected.csv", LOG, "o.run.json"])
def test_an_input_is_never_written_over(desk: Desk, name: str) -> None:
    before = desk.prompts(3, name).read_bytes()
    desk.serve()
    split = name == "o_rejected.csv"
    desk.stopped(ALIGN, f"--input_file={name}", f"--merge_result={not split}")
    assert (desk.folder / name).read_bytes() == before
    assert not desk.server.requests


# -- killed and interrupted --------------------------------------------------------------------


def flaky(body: Body, seen: int) -> Reply | str:
    """Mostly an answer; now and then a fault that passes, and a row at fault."""
    number = number_of(body)
    if number % 17 == 3 and seen == 0:
        return error(500)
    return error(400, "at fault") if number % 41 == 5 else own_words(body, seen)


def test_a_run_that_was_killed_often_ends_like_one_that_was_not(desk: Desk) -> None:
    """With a torn and a garbled line in the log on the way."""
    n, chance = 240, random.Random(7)
    desk.prompts(n)
    desk.serve(flaky)
    assert desk.stage(ALIGN).returncode == 3
    whole = {name: (desk.folder / name).read_bytes() for name in ("o.csv", "o_failed.csv")}
    for name in (*whole, LOG, "o.run.json"):
        (desk.folder / name).unlink()

    server = desk.serve(flaky, latency=0.03)
    arrived: set[int] = set()
    for junk in (b'{"key": "00", "te', b"\x00\xff garbled\n", b""):
        process = desk.start(ALIGN, "--concurrency=8")
        wait_for_answers(desk, len(arrived) + chance.randrange(5, 50))
        process.kill()
        process.communicate()
        assert answered(desk) >= arrived, "an answer was lost"
        assert not arrived & set(map(number_of, server.requests)), "an answer was paid for twice"
        arrived = answered(desk)
        server.requests.clear()
        with (desk.folder / LOG).open("ab") as file:
            file.write(junk)
        assert not (desk.folder / "o.csv").exists()
    done = desk.stage(ALIGN)
    assert done.returncode == 3, done.stderr
    assert not arrived & set(map(number_of, server.requests)), "an answer was paid for twice"
    assert {name: (desk.folder / name).read_bytes() for name in whole} == whole
    assert set(desk.files()) == {"p.csv", "o.csv", "o_failed.csv", LOG, "o.run.json"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_waits_for_answers_under_way_and_goes_on_later(
    desk: Desk, number: signal.Signals
) -> None:
    desk.prompts(100)
    server = desk.serve(own_words, latency=0.1)
    process = desk.start(ALIGN, "--concurrency=4")
    wait_for(lambda: len(server.requests) >= 10)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "o.csv\n"), err
    assert "Traceback" not in err
    assert 10 <= len(desk.rows()) == len(server.requests) < 100
    checked = desk.stage(CHECK, "--input_file=o.csv", "--check_model=rules", "--output_path=c.csv")
    assert "missing" in checked.stderr  # the stage after it says that rows are
    server.latency = 0.0
    assert desk.stage(ALIGN).returncode == 0
    assert len(server.requests) == len(desk.rows()) == 100
    assert not desk.failed()


def test_the_failed_file_of_an_interrupted_run_lists_every_row_without_a_result(desk: Desk) -> None:
    desk.prompts(30)
    server = desk.serve(own_words, latency=0.2)
    process = desk.start(ALIGN, "--concurrency=2")
    wait_for(lambda: len(server.requests) >= 4)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert {row["error_type"] for row in desk.failed()} == {"not_asked"}
    rows = {row["prompt"] for row in [*desk.rows(), *desk.failed()]}
    assert len(rows) == len(desk.rows()) + len(desk.failed()) == 30


def test_a_second_interrupt_leaves_at_once(desk: Desk) -> None:
    desk.prompts(9)
    server = desk.serve(Reply(fault="hang"))
    process = desk.start(ALIGN)
    wait_for(lambda: len(server.requests) >= 1)
    assert process.stderr
    process.send_signal(signal.SIGINT)
    while "interrupt again" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)  # the answers under way would take 180 s
    assert process.returncode == 130


def test_a_second_run_on_the_same_output_stops_with_one_line(desk: Desk) -> None:
    desk.prompts(4)
    server = desk.serve(Reply(fault="hang"))
    process = desk.start(ALIGN)
    wait_for(lambda: len(server.requests) >= 1)
    second = desk.stage(ALIGN)
    process.kill()
    process.communicate()
    assert "another run" in error_line(second)
    assert len(server.requests) == 1


# -- faults of the disk ------------------------------------------------------------------------


def on_log(fd: object) -> bool:
    """Whether a file descriptor is the answer log's."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}").endswith(".answers.jsonl")
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files: /proc")
@pytest.mark.parametrize(
    ("call", "nth"), [("pwrite", 1), ("pwrite", 3), ("fsync", 1), ("close", 1)]
)
def test_an_error_of_the_disk_under_the_log_is_one_line_and_loses_no_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    desk.prompts(5)
    desk.serve(own_words)
    real, struck = getattr(os, call), Counter[str]()

    def strike(fd: int, *args: object) -> object:
        if on_log(fd):
            struck[call] += 1
            if struck[call] == nth:
                if call == "close":
                    real(fd)  # Linux closes the file all the same
                raise OSError(errno.EIO, "Input/output error")
        return real(fd, *args)

    monkeypatch.setattr(os, call, strike)
    done = desk.stage(ALIGN, "--concurrency=1")
    monkeypatch.undo()
    assert struck[call] >= nth  # else this tests nothing
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in done.stderr
    sent, arrived = len(desk.server.requests), len(answered(desk))
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.rows()) == 5
    assert len(desk.server.requests) - sent == 5 - arrived


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files: /proc")
def test_the_log_is_synced_while_it_grows_and_at_its_end_and_its_folder_first(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.prompts(3)
    server = desk.serve(own_words, latency=0.6)  # the log is synced after a second
    real, synced = os.fsync, list[tuple[str, int, int]]()

    def fsync(fd: int) -> None:
        name = os.readlink(f"/proc/self/fd/{fd}")
        synced.append((Path(name).name, len(server.requests), len(answered(desk))))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    assert desk.stage(ALIGN, "--concurrency=1").returncode == 0
    monkeypatch.undo()
    assert (desk.folder.name, 0, 0) in synced
    during, *_, end = [n for name, _, n in synced if name == LOG]
    assert 0 < during < 3 and end == 3


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(desk: Desk) -> None:
    """In its place: no file may be larger than 3,000 blocks of 512 bytes."""
    desk.prompts(100)
    server = desk.serve(lambda body, seen: own_words(body, seen) + " And again." * 2000)
    flags = "--model=gpt-x --input_file=p.csv --output_path=o.csv"
    done = desk.shell(f"ulimit -f 3000; exec python {ROOT / ALIGN} {flags}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ") and "Traceback" not in done.stderr
    arrived = answered(desk)
    assert arrived and not (desk.folder / "o.csv").exists()
    server.requests.clear()
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.rows()) == 100
    assert not arrived & set(map(number_of, server.requests))


def test_a_csv_gets_its_name_only_when_it_is_whole(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.prompts(3)
    desk.serve()
    assert desk.stage(ALIGN).returncode == 0
    before = desk.files()
    desk.prompts(4)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    desk.stopped(ALIGN)
    monkeypatch.undo()
    assert desk.files()["o.csv"] == before["o.csv"]
    assert not [name for name in desk.files() if "tmp" in name]


@pytest.mark.parametrize("replaced", [1, 2])
def test_a_crash_between_the_files_of_a_run_leaves_one_that_goes_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, replaced: int
) -> None:
    desk.prompts(3)
    desk.serve()
    replace, done = os.replace, list[str]()

    def some(half: str, whole: Path) -> None:
        if len(done) == replaced:
            raise OSError(errno.EIO, "Input/output error")
        done.append(str(whole))
        replace(half, whole)

    monkeypatch.setattr(os, "replace", some)
    assert "cannot be written" in desk.stopped(ALIGN)
    monkeypatch.undo()
    assert desk.record()["complete"] is False
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.rows()) == len(desk.server.requests) == 3 and desk.record()["complete"]


def test_a_full_disk_stops_a_run_before_it_pays_for_anything(desk: Desk) -> None:
    """In its place: no file may be larger than 1,000 blocks of 512 bytes."""
    desk.prompts(3)
    desk.serve()
    flags = "--model=gpt-x --input_file=p.csv --output_path=o.csv"
    done = desk.shell(f"ulimit -f 1000; exec python {ROOT / ALIGN} {flags}")
    assert "its answers are kept" in error_line(done)
    assert not desk.server.requests
    assert desk.stage(ALIGN).returncode == 0


def test_answers_in_flight_when_the_disk_fills_up_are_kept(desk: Desk) -> None:
    """In its place: no file may be larger than 3,000 blocks of 512 bytes."""
    desk.prompts(200)
    server = desk.serve(lambda body, seen: own_words(body, seen) + " And again." * 1000, 0.05)
    flags = "--model=gpt-x --input_file=p.csv --output_path=o.csv --concurrency=64"
    done = desk.shell(f"ulimit -f 3000; exec python {ROOT / ALIGN} {flags}")
    assert "its answers are kept" in error_line(done)
    sent = set(map(number_of, server.requests))
    assert 64 <= len(sent) < 200 and answered(desk) == sent
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.rows()) == len(server.requests) == 200


def test_a_last_line_without_its_newline_counts(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(own_words)
    assert desk.stage(ALIGN, "--limit=2").returncode == 0
    log = desk.folder / LOG
    log.write_bytes(log.read_bytes().rstrip(b"\n"))
    assert desk.stage(ALIGN).returncode == 0
    assert len(desk.server.requests) == 3 and answered(desk) == {0, 1, 2}


@pytest.mark.parametrize(
    ("field", "odd"),
    [("text", 7), ("text", None), ("prompt_tokens", "3"), ("dropped", [7]), ("key", "xy")],
)
def test_a_line_of_wrong_types_is_no_answer_and_reported(
    desk: Desk, field: str, odd: object
) -> None:
    desk.prompts(3)
    desk.serve(own_words)
    assert desk.stage(ALIGN).returncode == 0
    first, *others = (desk.folder / LOG).read_text().splitlines(keepends=True)
    lines = [json.dumps(json.loads(first) | {field: odd}) + "\n", *others]
    (desk.folder / LOG).write_text("".join(lines))
    (desk.folder / "o.csv").unlink()
    done = desk.stage(ALIGN)
    assert done.returncode == 0 and f"{LOG}: 1 line cannot be read" in done.stderr
    assert len(desk.rows()) == 3 and len(desk.server.requests) == 4


def test_a_finished_stage_1_is_not_asked_again_for_what_failed(desk: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        number = len(desk.server.requests)
        if number % 3 == 1:
            return error(500, "busy")
        return "\n".join(f"[[Take jam {number}-{n}]]" for n in range(20))

    desk.serve(reply)
    flags = ("--num_toxic_prompts=100", "--max_retries=0", "--concurrency=1")
    done = desk.stage(GENERATE, *flags)
    assert done.returncode == 0, done.stderr
    assert "gpt-x: 3 requests failed; others were sent instead\n" in done.stderr
    assert len(desk.server.requests) == 5 + 4  # three of five bring 60: a fifth more for the 40
    before, sent = (desk.folder / "o.csv").read_bytes(), len(desk.server.requests)
    for more in ((), ("--from_log",)):
        done = desk.stage(GENERATE, *flags, *more)
        assert (done.returncode, done.stdout) == (0, "o.csv\n"), done.stderr
        assert "o.csv is complete; --overwrite reads the answers again" in done.stderr
    assert (desk.folder / "o.csv").read_bytes() == before and len(desk.server.requests) == sent


# -- without sending anything ------------------------------------------------------------------


def test_from_log_writes_what_is_answered_and_sends_nothing(desk: Desk) -> None:
    desk.prompts(10)
    desk.serve(own_words)
    desk.stage(ALIGN, "--limit=4")
    done = desk.stage(ALIGN, "--from_log", env={"OPENAI_API_KEY": ""})
    assert done.returncode == 3, done.stderr
    assert len(desk.rows()) == len(desk.server.requests) == 4
    assert [row["error_type"] for row in desk.failed()] == ["not_asked"] * 6


def test_from_log_looks_into_a_run_that_is_going_on(desk: Desk) -> None:
    desk.prompts(10)
    hang = Reply(fault="hang")
    server = desk.serve(lambda body, seen: hang if number_of(body) > 3 else own_words(body, seen))
    process = desk.start(ALIGN)
    wait_for(lambda: len(server.requests) >= 10 and len(answered(desk)) == 4)
    before = (desk.folder / LOG).read_bytes()
    look = desk.stage(ALIGN, "--from_log")
    alive = process.poll() is None
    process.kill()
    process.communicate()
    assert alive and (look.returncode, look.stdout) == (3, "o.csv\n"), look.stderr
    assert (len(desk.rows()), len(desk.failed())) == (4, 6)
    assert (desk.folder / LOG).read_bytes() == before and len(server.requests) == 10


def test_from_log_without_a_log_is_one_line_and_leaves_no_file(desk: Desk) -> None:
    desk.prompts(2)
    desk.serve()
    assert LOG in desk.stopped(ALIGN, "--from_log")
    assert set(desk.files()) == {"p.csv"} and not desk.server.requests


# -- through files and batches -----------------------------------------------------------------


def test_imported_answers_write_the_bytes_of_live_ones_without_any_endpoint(desk: Desk) -> None:
    desk.prompts(12)
    desk.serve(by_number({3: error(400, "too odd")}, own_words))
    assert desk.stage(ALIGN, "--output_path=live.csv").returncode == 3
    done = desk.stage(ALIGN, "--export_requests=q.jsonl", url=NOBODY)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not (desk.folder / "o.csv").exists()
    results = []
    for line in map(json.loads, (desk.folder / "q.jsonl").read_text().splitlines()):
        assert set(line) == {"custom_id", "method", "url", "body"}
        said = desk.server.reply_to(line["body"], b"")
        response = {"status_code": said.status, "body": json.loads(said.body)}
        results.append(json.dumps({"custom_id": line["custom_id"], "response": response}))
    random.Random(1).shuffle(results)
    (desk.folder / "r.jsonl").write_text("\n".join([*results[:9], "torn {", *results[9:]]))
    done = desk.stage(ALIGN, "--import_answers=r.jsonl", url=NOBODY)
    assert (done.returncode, done.stdout) == (3, "o.csv\n"), done.stderr
    files = desk.files()
    assert files["o.csv"] == files["live.csv"]
    assert files["o_failed.csv"] == files["live_failed.csv"]


def test_a_batch_is_submitted_once_and_collected_by_the_same_command(desk: Desk) -> None:
    desk.prompts(12)
    with BatchServer(by_number({3: error(400, "too odd")}, own_words)) as server:
        assert desk.stage(ALIGN, "--output_path=live.csv", url=server.url).returncode == 3
        for outcome, status, out in (("in_progress", 0, ""), ("completed", 3, "o.csv\n")):
            server.outcome = lambda number, outcome=outcome: outcome  # type: ignore[misc]
            for _ in range(2):
                done = desk.stage(ALIGN, "--batch", "submit", url=server.url)
                assert (done.returncode, done.stdout) == (status, out), done.stderr
        assert (len(server.submitted[0]), len(server.requests)) == (12, 12)
    files = desk.files()
    assert files["o.csv"] == files["live.csv"]
    assert files["o_failed.csv"] == files["live_failed.csv"]


def test_stage_1_submits_a_batch_and_says_nothing_of_prompts_yet(desk: Desk) -> None:
    with BatchServer("\n".join(f"[[Take jam {n}]]" for n in range(20))) as server:
        for outcome, out in (("in_progress", ""), ("completed", "o.csv\n")):
            server.outcome = lambda number, outcome=outcome: outcome  # type: ignore[misc]
            done = desk.stage(GENERATE, "--batch", "submit", url=server.url)
            assert (done.returncode, done.stdout) == (0, out), done.stderr
    assert len(desk.rows()) == 20


def test_a_validation_is_not_replaced_by_a_run_that_judges_nothing(desk: Desk) -> None:
    rows = [("How?", "Like this.", "compliance"), ("Why?", "I won't say.", "refusal")]
    desk.csv("r.csv", ("prompt", "response", "person"), rows)
    desk.serve("[[direct_answer]]")
    flags = ("--validate_against=person",)
    assert desk.stage(CHECK, *flags).returncode == 0
    before = (desk.folder / "o.validation.json").read_bytes()
    rows.append(("Who?", "Me.", "compliance"))
    desk.csv("r.csv", ("prompt", "response", "person"), rows)
    assert desk.stage(CHECK, *flags, "--export_requests=q.jsonl").returncode == 0
    assert (desk.folder / "o.validation.json").read_bytes() == before
