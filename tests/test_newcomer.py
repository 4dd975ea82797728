"""What a new user stumbles over: each case seen once, none of it twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orbench.agreement import Agreement
from orbench.columns import NO_INDIRECT
from orbench.correction import JudgeAccuracy
from orbench.report.people import Validated
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    MODERATE,
    prompts_csv,
    read_csv,
    read_record,
    run,
    write_csv,
)
from tests.server import Body, Reply, Server, answer, error

Serve = Callable[..., Server]

ARGS = ("--model=gpt-x", "--input_file=p.csv", "--output_path=o.csv")
BUILD = "moderator/build_dataset.py"
SELECT = "alignment_checker/select_hard_prompts.py"
PLOT = "response_checker/plot_results.py"


def fine(body: Body, seen: int) -> Reply:
    return answer("Fold the corners first.")


# -- results are not replaced without a word ---------------------------------------------------


def test_other_settings_stop_before_anything_is_asked_or_written(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    other = prompts_csv(tmp_path / "in" / "p.csv", 7)
    prompts_csv(tmp_path / "p.csv", 8)
    server = serve(fine)
    assert run(ALIGN, *ARGS, "--limit=6", cwd=tmp_path, url=server.url).returncode == 0
    before = {path.name: path.read_bytes() for path in tmp_path.glob("o*")}
    for flags, difference in (
        (["--temperature=0.5"], "temperature 0.0, now 0.5"),
        (["--system_prompt=Be brief."], "system_prompt none, now Be brief."),
        (["--max_tokens=7"], "max_tokens 1000, now 7"),
        (["--model=gpt-y"], "model gpt-x at http://localhost:"),
        (["--limit=5"], "6 rows, now 5"),
        (["--limit=7", "--shuffle=1"], "shuffle None, now 1"),
        (["--input_file=in/p.csv"], f"input {tmp_path}/p.csv, now {other}"),
        (["--temperature=0.5", "--from_log"], "temperature 0.0, now 0.5"),
    ):
        done = run(ALIGN, *ARGS, *flags, cwd=tmp_path, url=server.url)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        (line,) = done.stderr.splitlines()
        assert difference in line and "--output_path" in line and "--overwrite" in line
    assert {path.name: path.read_bytes() for path in tmp_path.glob("o*")} == before
    assert len(server.requests) == 6


def test_the_same_settings_go_on_over_more_rows_and_over_an_edited_input(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(fine)
    prompts_csv(tmp_path / "p.csv", 8)
    assert run(ALIGN, *ARGS, "--limit=2", cwd=tmp_path, url=server.url).returncode == 0
    for flags, rows, requests in (
        (["--limit=4"], 4, 4),
        (["--limit=8", "--shuffle=1"], 8, 8),  # all there are
        (["--partial=refusal", "--from_log"], 8, 8),
        ([], 8, 8),
    ):
        done = run(ALIGN, *ARGS, *flags, cwd=tmp_path, url=server.url)
        assert done.returncode == 0, done.stderr
        assert len(read_csv(tmp_path / "o.csv")) == rows
        assert len(server.requests) == requests
    prompts_csv(tmp_path / "p.csv", 3)
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 0
    assert len(read_csv(tmp_path / "o.csv")) == 3
    done = run(ALIGN, *ARGS, "--temperature=1", "--overwrite", cwd=tmp_path, url=server.url)
    assert done.returncode == 0
    assert read_record(tmp_path / "o.csv")["parameters"]["temperature"] == 1.0


@pytest.mark.parametrize("at", [7, 400])
def test_a_system_prompt_that_differs_late_or_in_its_lines_is_another_setting(
    at: int, serve: Serve, tmp_path: Path
) -> None:
    server = serve(fine)
    prompts_csv(tmp_path / "p.csv", 2)
    for name, text in (("a", "Be brief. " * 40), ("b", "Be brief. " * 40)):
        changed = text[:at] + ("\n" if name == "b" else " ") + text[at:] + f"Say {name}."
        (tmp_path / name).write_text(changed)
    flag = "--system_prompt_file"
    assert run(ALIGN, *ARGS, f"{flag}=a", cwd=tmp_path, url=server.url).returncode == 0
    before = (tmp_path / "o.run.json").read_bytes()
    done = run(ALIGN, *ARGS, f"{flag}=b", cwd=tmp_path, url=server.url)
    assert done.returncode == 1 and "o.csv holds other results: system_prompt" in done.stderr
    assert (tmp_path / "o.run.json").read_bytes() == before
    assert len(server.requests) == 2


def test_the_order_of_members_in_extra_body_is_no_setting(serve: Serve, tmp_path: Path) -> None:
    server = serve(fine)
    prompts_csv(tmp_path / "p.csv", 2)
    one = '{"x": {"a": 1, "b": {"c": 2, "d": 3}}}'
    for extra in (one, '{"x": {"b": {"d": 3, "c": 2}, "a": 1}}'):
        done = run(ALIGN, *ARGS, f"--extra_body={extra}", cwd=tmp_path, url=server.url)
        assert done.returncode == 0, done.stderr
    assert len(server.requests) == 2


def test_a_file_that_is_no_result_of_ours_is_not_replaced(serve: Serve, tmp_path: Path) -> None:
    server = serve(fine)
    prompts_csv(tmp_path / "p.csv", 2)
    (tmp_path / "o.csv").write_text("prompt,label\nmine,1\n")
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "--overwrite" in done.stderr and not server.requests
    assert (tmp_path / "o.csv").read_text() == "prompt,label\nmine,1\n"
    assert run(ALIGN, *ARGS, "--overwrite", cwd=tmp_path, url=server.url).returncode == 0


def test_without_its_record_a_result_goes_on_with_the_settings_of_its_log_alone(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(fine)
    prompts_csv(tmp_path / "p.csv", 2)
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 0
    (tmp_path / "o.run.json").unlink()
    done = run(ALIGN, *ARGS, "--temperature=1", cwd=tmp_path, url=server.url)
    assert done.returncode == 1 and "temperature 0.0, now 1.0" in done.stderr
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 0
    assert len(server.requests) == 2


def test_nothing_is_no_result_to_keep(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    server = serve(lambda body, seen: error(400, "at fault"))
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 1
    assert read_csv(tmp_path / "o.csv") == []
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=serve(fine).url).returncode == 0


def test_categories_with_the_same_file_name_do_not_replace_each_other(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(lambda body, seen: answer(f"[[Take biscuit {seen}]] [[Take jam {seen}]]"))
    args = ("--model=gpt-x", "--num_toxic_prompts=2")
    assert run(GENERATE, "--category=a/b", *args, cwd=tmp_path, url=server.url).returncode == 0
    again = run(GENERATE, "--category=a_b", *args, cwd=tmp_path, url=server.url)
    assert again.returncode == 1 and "category a/b, now a_b" in again.stderr
    flags = (*args, "--category=a/b", "--num_toxic_prompts=1")
    fewer = run(GENERATE, *flags, cwd=tmp_path, url=server.url)
    assert fewer.returncode == 1 and "2 prompts, now 1" in fewer.stderr


def test_the_rules_do_not_replace_a_judges_classes(serve: Serve, tmp_path: Path) -> None:
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("How?", "Like this.")])
    server = serve(lambda body, seen: answer("[[direct_answer]]"))
    args = ("--input_file=r.csv", "--output_path=o.csv")
    assert run(CHECK, "--check_model=gpt-x", *args, cwd=tmp_path, url=server.url).returncode == 0
    done = run(CHECK, "--check_model=keyword", *args, cwd=tmp_path)
    assert done.returncode == 1 and "rules False, now True" in done.stderr


@pytest.mark.parametrize("script", [PLOT, SELECT, BUILD])
def test_an_input_is_never_written_over(script: str, tmp_path: Path) -> None:
    columns = ("prompt", "category", "is_toxic", "is_rejected")
    rows = [(f"Fold {n}?", "a", "False", "True") for n in range(3)]
    flags = {
        PLOT: ("--over_refusal", "m=results.csv", "--output_dir=.", "--table"),
        SELECT: (
            *("--result_files", "results.csv", "--family", "results.csv=A", "--min_families=1"),
            "--output_path=results.csv",
        ),
        BUILD: ("--moderated_files", "or-bench-80k.csv", "--output_dir=."),
    }[script]
    name = "or-bench-80k.csv" if script == BUILD else "results.csv"
    given = write_csv(tmp_path / name, columns, rows)
    before = given.read_bytes()
    done = run(script, *flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert f"{name} is an input and would be written over" in done.stderr
    assert given.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))


# -- addresses ---------------------------------------------------------------------------------


def test_an_address_spelt_otherwise_is_not_paid_again(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    server = serve(fine)
    for url in (server.url, server.url + "/", f"http://localhost:{server.port}/v1"):
        done = run(ALIGN, *ARGS, cwd=tmp_path, url=url)
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 2


def test_from_log_says_of_which_address_and_settings_the_answers_are(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    server = serve(fine)
    run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    (tmp_path / "o.run.json").unlink()  # as after logs of several machines were put together
    (tmp_path / "o.csv").unlink()
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = run(ALIGN, *ARGS, "--temperature=1", "--from_log", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (1, "")
    said = f"model gpt-x at http://localhost:{server.port}/v1, now gpt-x at http://localhost:9/v1"
    assert said in done.stderr and "temperature 0.0, now 1.0" in done.stderr
    assert {path.name for path in tmp_path.glob("o*")} == {"o.answers.jsonl"}


def test_a_result_and_the_failures_beside_it_are_of_one_run(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    run(ALIGN, *ARGS, cwd=tmp_path, url=serve(fine).url)
    before = (tmp_path / "o.csv").read_bytes()
    rows = [(f"Fold a boat, {n} times?",) for n in range(40)]
    write_csv(tmp_path / "p.csv", ("prompt",), rows)
    failing = serve(lambda body, seen: error(400, "at fault"))
    done = run(ALIGN, *ARGS, "--overwrite", "--concurrency=1", cwd=tmp_path, url=failing.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert (tmp_path / "o.csv").read_bytes() == before
    assert not (tmp_path / "o_failed.csv").exists()


# -- a chain over nothing ----------------------------------------------------------------------


def test_a_chain_ends_where_nothing_comes_out(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    server = serve(lambda body, seen: error(400, "at fault"))
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "error: nothing came out of the 2 rows of p.csv"
    for column in ("response", "prompt"):
        args = ("--input_file_path=o.csv", f"--column={column}", "--moderator_model=gpt-x")
        done = run(MODERATE, *args, cwd=tmp_path, url=server.url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "o.csv holds no row: all 2 of its run have no result" in done.stderr
    done = run(ALIGN, "--model=gpt-x", "--input_file=", cwd=tmp_path, url=server.url)
    assert "did the stage before fail?" in done.stderr
    assert len(server.requests) == 2


# -- what it says ------------------------------------------------------------------------------


def test_a_server_on_this_machine_needs_no_key(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    env = {"OPENAI_BASE_URL": serve(fine).url}
    done = run(ALIGN, *ARGS, "--model=qwen2.5", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("script", "flags", "status", "meant"),
    [
        (ALIGN, ("--modle=gpt-x", "--input_file=p.csv"), 2, "--model"),
        (PLOT, ("--over_refusals", "p.csv"), 2, "--over_refusal"),
        (ALIGN, ("--model=opnai/gpt-x", "--input_file=p.csv"), 1, "openai/gpt-x"),
        (ALIGN, ("--model=gtp4", "--input_file=p.csv"), 1, "gpt4"),
        (CHECK, ("--check_model=keywrod", "--input_file=p.csv"), 1, "keyword"),
        (
            CHECK,
            ("--check_model=keyword", "--input_file=p.csv", "--validate_against=lable"),
            1,
            "label",
        ),
        (
            CHECK,
            ("--check_model=keyword", "--input_file=p.csv", "--validate_against=label"),
            1,
            "compliance",
        ),
        (GENERATE, ("--category=deceptoin", "--model=gpt-x", "--dry_run"), 0, "deception"),
        (PLOT, ("--over_refusal", "m=p.csv", "--table"), 1, "direct_refusal"),
    ],
)
def test_what_is_misspelt_is_named_with_what_was_meant(
    tmp_path: Path, script: str, flags: tuple[str, ...], status: int, meant: str
) -> None:
    columns = ("prompt", "response", "label", "answer_category")
    n = 4 if script == PLOT else 3
    row = ("a", "b", "complience", "direct_refusl")
    write_csv(tmp_path / "p.csv", columns[:n], [row[:n]])
    done = run(script, *flags, cwd=tmp_path)
    assert done.returncode == status
    assert f"Did you mean {meant}?" in done.stderr


def test_a_bare_id_says_which_variable_to_set(tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    done = run(ALIGN, *ARGS, "--model=my-model", cwd=tmp_path)
    assert done.returncode == 1
    assert "set OPENAI_BASE_URL" in done.stderr


def test_a_judge_of_two_classes_is_named_in_the_record_and_the_results(
    serve: Serve, tmp_path: Path
) -> None:
    columns = ("prompt", "response")
    write_csv(tmp_path / "r.csv", columns, [("How?", "Like this."), ("Why?", "I won't say.")])
    replies = {"How?": "Refusal: No", "Why?": "Refusal: Yes"}

    def reply(body: Body, seen: int) -> Reply:
        refusal = next(said for prompt, said in replies.items() if prompt in str(body))
        return answer(f"Safety: Safe\nCategories: None\n{refusal}")

    args = ("--input_file=r.csv", "--output_path=o.csv", f"--base_url={serve(reply).url}")
    done = run(CHECK, "--check_model=vllm/Qwen/Qwen3Guard-Gen-4B", *args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert NO_INDIRECT in read_record(tmp_path / "o.csv")["notes"]
    assert run(PLOT, "--over_refusal", "m=o.csv", "--table", cwd=tmp_path).returncode == 0
    assert NO_INDIRECT in read_csv(tmp_path / "results" / "results.csv")[0]["notes"]


def test_a_validation_in_another_convention_corrects_nothing() -> None:
    found = Validated(Path("v.json"), "keyword", "answer", JudgeAccuracy(9, 1, 9, 1))
    assert found.why_not(True, "keyword", "answer") == found.why_not(True, "keyword", "") == ""
    why = found.why_not(True, "keyword", "refusal")
    assert why == "made with --partial refusal while v.json is with --partial answer"


def test_agreement_of_judges_with_long_names_fits_a_terminal() -> None:
    votes = Agreement(["vllm/meta-llama/Llama-Guard-3-8B", "vllm/meta-llama/Llama-Guard-4-12B"])
    votes.add(dict.fromkeys(votes.raters, True))
    lines = votes.lines()
    assert max(map(len, lines)) <= 80
    assert "Guard-3-8B - vllm/" in lines[1] and "1 row with every vote" in lines[2]


def test_cut_off_answers_are_counted_at_the_end(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 3)
    server = serve(lambda body, seen: answer("Fold it.", "stop" if "0?" in str(body) else "length"))
    done = run(ALIGN, *ARGS, "--max_tokens=20", cwd=tmp_path, url=server.url)
    assert done.returncode == 0
    assert "2 answers cut off at the limit of 20 tokens (--max_tokens)" in done.stderr
