"""What a user can get wrong ends in one clear line; what only looks wrong is data."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orbench.stage import prompt_template
from orbench.terminal import UserError
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    KEY,
    MODERATE,
    REWRITE,
    ROOT,
    STAGES,
    environment,
    prompts_csv,
    read_csv,
    run,
    write_csv,
)
from tests.server import Body, Reply, Server, answer, error, prompt_of

Serve = Callable[..., Server]


def fine(body: Body, seen: int) -> Reply:
    return answer("Fold the corners first.")


def broken(folder: Path) -> dict[str, tuple[str, str]]:
    """Name -> (path, what the error must say)."""
    (folder / "folder").mkdir()
    (folder / "empty.csv").write_bytes(b"")
    write_csv(folder / "column.csv", ("text", "category"), [("a", "b")])
    (folder / "latin1.csv").write_bytes("prompt\ncafé\n".encode("latin-1"))
    (folder / "quote.csv").write_text('prompt,category\n"never closed,x\nb,y\n')
    (folder / "ragged.csv").write_text("prompt,category\na,b,c\n")
    (folder / "twice.csv").write_text("prompt,prompt\na,b\n")
    return {
        "missing": ("no.csv", "no.csv: no such file"),
        "a folder": ("folder", "is a folder"),
        "empty": ("empty.csv", "is empty"),
        "no such column": ("column.csv", "no column 'prompt'; it has: text, category"),
        "not UTF-8": ("latin1.csv", "not UTF-8"),
        "unclosed quote": ("quote.csv", "line 2"),
        "ragged": ("ragged.csv", "line 2: 3 cells where the header has 2"),
        "a column twice": ("twice.csv", "'prompt' twice"),
    }


@pytest.mark.parametrize(
    "name",
    [
        "missing",
        "a folder",
        "empty",
        "no such column",
        "not UTF-8",
        "unclosed quote",
        "ragged",
        "a column twice",
    ],
)
def test_a_broken_input_costs_nothing_and_ends_in_one_line(
    serve: Serve, tmp_path: Path, name: str
) -> None:
    server = serve(fine)
    path, says = broken(tmp_path)[name]
    before = sorted(tmp_path.rglob("*"))
    done = run(ALIGN, "--model=gpt-x", f"--input_file={path}", cwd=tmp_path, url=server.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert server.requests == []
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--no_such_flag",),
        ("--model=x", "--input_file=p.csv", "--merge_result=maybe"),
        ("--model=x", "--input_file=p.csv", "--concurrency=0"),
        ("--model=x", "--input_file=p.csv", "--temperature=warm"),
        ("--model=x", "--input_file=p.csv", "--timeout=nan"),
    ],
)
def test_a_wrong_command_line_ends_with_2(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = run(ALIGN, *args, cwd=tmp_path)
    assert done.returncode == 2
    assert "usage:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_header_alone_gives_a_header_alone(serve: Serve, tmp_path: Path) -> None:
    write_csv(tmp_path / "h.csv", ("prompt", "category"), [])
    server = serve(fine)
    done = run(ALIGN, "--model=gpt-x", "--input_file=h.csv", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    output = tmp_path / done.stdout.strip()
    assert output.read_text().startswith("prompt,category,response,is_rejected")
    assert read_csv(output) == []


def test_a_missing_key_is_one_line_that_names_its_variable(tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    for script, args, variable in (
        (ALIGN, ("--model=claude-opus-4", "--input_file=p.csv"), "ANTHROPIC_API_KEY"),
        (MODERATE, ("--moderator_model=llama3", "--input_file_path=p.csv"), "TOGETHER_API_KEY"),
        (REWRITE, ("--toxic_seed_path=p.csv",), "OPENAI_API_KEY"),
        (GENERATE, ("--category=harmful",), "OPENAI_API_KEY"),
    ):
        done = run(script, *args, cwd=tmp_path)
        assert done.returncode == 1
        assert variable in done.stderr
        assert "Traceback" not in done.stderr


def test_the_generators_take_mixtral_where_its_providers_key_is_set(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(lambda body, seen: answer("[[Take the biscuit]]"))
    env = {"OPENROUTER_API_KEY": KEY, "OPENROUTER_BASE_URL": server.url}
    args = ("--category=harmful", "--num_toxic_prompts=1")
    done = run(GENERATE, *args, cwd=tmp_path, url="http://127.0.0.1:9/v1", env=env)
    assert done.returncode == 0, done.stderr
    assert server.requests[0]["model"] == "mistralai/mixtral-8x7b-instruct"
    assert "openrouter/mistralai/mixtral-8x7b-instruct" in done.stderr


def test_an_alias_is_pointed_elsewhere_in_the_dotenv_file(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    server = serve(lambda body, seen: answer("[[none of the above]]"))
    lines = [f"VLLM_BASE_URL={server.url}", "ORBENCH_MODEL_GEMINI_1_5=vllm/some/judge"]
    (tmp_path / ".env").write_text("\n".join(lines))
    args = ("--moderator_model=gemini-1.5", "--input_file_path=p.csv")
    done = run(MODERATE, *args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "p_moderation_merged_gemini-1.5_prompt.csv\n"
    assert server.requests[0]["model"] == "some/judge"


def test_any_other_endpoint_is_given_by_flags(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    server = serve(fine)
    flags = (f"--base_url={server.url}", "--api_key_env=MY_KEY")
    args = ("--model=my/own-model", "--input_file=p.csv", *flags)
    done = run(ALIGN, *args, cwd=tmp_path, env={"MY_KEY": "mine-123"})
    assert done.returncode == 0, done.stderr
    assert server.requests[0]["model"] == "my/own-model"
    assert "Bearer mine-123" in server.headers
    again = run(ALIGN, *args, "--temperature=1", "--overwrite", cwd=tmp_path)
    assert again.returncode == 1
    assert "MY_KEY" in again.stderr


def test_an_output_that_cannot_be_written_is_found_before_anything_is_paid(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    (tmp_path / "file").write_text("")
    server = serve(fine)
    for output in ("file/out.csv", ".", "p.csv"):
        args = ("--model=gpt-x", "--input_file=p.csv", f"--output_path={output}")
        done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
    assert server.requests == []
    assert len(read_csv(tmp_path / "p.csv")) == 1


def test_a_column_of_the_input_is_never_written_over(serve: Serve, tmp_path: Path) -> None:
    write_csv(tmp_path / "p.csv", ("prompt", "response"), [("a", "b")])
    server = serve(fine)
    done = run(ALIGN, "--model=gpt-x", "--input_file=p.csv", cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert "'response'" in done.stderr
    assert server.requests == []


def test_empty_prompts_are_reported_by_row_and_never_sent(serve: Serve, tmp_path: Path) -> None:
    write_csv(tmp_path / "p.csv", ("prompt", "id"), [("a", "1"), ("", "2"), (" \n", "3")])
    for script, args, output in (
        (REWRITE, ("--toxic_seed_path=p.csv",), "p_rewrite.csv"),
        (ALIGN, ("--model=gpt-x", "--input_file=p.csv", "--output_path=o.csv"), "o.csv"),
        (
            MODERATE,
            ("--moderator_model=gpt4", "--input_file_path=p.csv"),
            "p_moderation_merged_gpt4_prompt.csv",
        ),
    ):
        server = serve(lambda body, seen: answer("[[none of the above]]"))
        done = run(script, *args, cwd=tmp_path, url=server.url)
        assert done.returncode == 3, done.stderr
        assert "row 2: the prompt is empty" in done.stderr
        assert "row 3: the prompt is empty" in done.stderr
        assert len(server.requests) == 1
        failed = read_csv(tmp_path / output.replace(".csv", "_failed.csv"))
        assert [(row["id"], row["error_type"]) for row in failed] == [
            ("2", "empty_prompt"),
            ("3", "empty_prompt"),
        ]


STRANGE = (
    "NA",
    "null",
    "None",
    "007",
    "1e5",
    "{braces} {mark} {text} %s $HOME",
    'a "quoted", one',
    "two\nlines\r\nand\ttabs",
    "a lone \r return",
    "emoji \U0001f98a and مرحبا بالعالم",
    "a NUL \x00 byte",
    "a lone \ud83d surrogate",
    "=HYPERLINK(1)",
    "[[7. illegal]]",
    "\ufeffa mark in front",
    " blanks around ",
    "x" * 1_000_000,
)


def test_strange_texts_go_through_as_data(serve: Serve, tmp_path: Path) -> None:
    rows = [(text, text, str(n)) for n, text in enumerate(STRANGE)]
    path = write_csv(tmp_path / "p.csv", ("prompt", "note", "id"), rows)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    server = serve(lambda body, seen: answer(prompt_of(body)))
    done = run(ALIGN, "--model=gpt-x", "--input_file=p.csv", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    out = read_csv(tmp_path / done.stdout.strip())
    assert [row["prompt"] for row in out] == list(STRANGE)
    assert [row["note"] for row in out] == list(STRANGE)
    sendable = [text.replace("\ud83d", "\ufffd") for text in STRANGE]
    assert sorted(map(prompt_of, server.requests)) == sorted(sendable)
    assert [row["response"] for row in out] == sendable
    for script, args in (
        (MODERATE, ("--moderator_model=gpt4", "--input_file_path=p.csv")),
        (REWRITE, ("--toxic_seed_path=p.csv",)),
        (CHECK, ("--check_model=gpt4", f"--input_file={done.stdout.strip()}")),
    ):
        reply = "[[none of the above]]" if script != CHECK else "[[direct_answer]]"
        server = serve(lambda body, seen, reply=reply: answer(reply))
        other = run(script, *args, cwd=tmp_path, url=server.url)
        assert other.returncode == 0, other.stderr
        if script != REWRITE:
            rows_out = read_csv(tmp_path / other.stdout.strip())
            assert [row["prompt"] for row in rows_out] == list(STRANGE)


def test_strange_answers_go_through_as_data(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", len(STRANGE))

    def reply(body: Body, seen: int) -> Reply:
        return answer(STRANGE[int(prompt_of(body).split()[-1][:-1])])

    done = run(ALIGN, "--model=gpt-x", "--input_file=p.csv", cwd=tmp_path, url=serve(reply).url)
    assert done.returncode == 0, done.stderr
    path = tmp_path / done.stdout.strip()
    expected = [text.replace("\ud83d", "\ufffd") for text in STRANGE]
    assert [row["response"] for row in read_csv(path)] == expected
    path.read_bytes().decode("utf-8")  # and the CSV is plain UTF-8


def test_line_ends_of_windows_are_fine(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b'prompt,category\r\n"a\r\nb",x\r\nc,y\r\n')
    done = run(ALIGN, "--model=gpt-x", "--input_file=p.csv", cwd=tmp_path, url=serve(fine).url)
    assert done.returncode == 0, done.stderr
    assert [row["prompt"] for row in read_csv(tmp_path / done.stdout.strip())] == ["a\r\nb", "c"]


def test_the_key_reaches_no_file_and_no_message(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 3)

    def reply(body: Body, seen: int) -> Reply:
        number = int(prompt_of(body).split()[-1][:-1])
        if number == 0:
            return error(400, f"what is this Bearer {KEY}?")
        return answer(f"You sent {KEY}." if number == 1 else "Fold it.")

    server = serve(reply)
    url = server.url.replace("http://", "http://user:hidden-word@")
    args = ("--model=gpt-x", "--input_file=p.csv", f"--base_url={url}?token=hidden-word")
    done = run(ALIGN, "--model=gpt-x", "--input_file=p.csv", cwd=tmp_path, url=server.url)
    assert done.returncode == 3
    hidden = run(ALIGN, *args[:2], f"--base_url={url}", cwd=tmp_path, url=server.url)
    wrong = serve(lambda body, seen: error(401, f"Incorrect API key provided: {KEY}"))
    refused = run(ALIGN, "--model=gpt-y", "--input_file=p.csv", cwd=tmp_path, url=wrong.url)
    assert refused.returncode == 1
    texts = [done.stderr, refused.stderr, refused.stdout, hidden.stderr]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY in text or "hidden-word" in text for text in texts)


@pytest.mark.parametrize("script", STAGES)
def test_an_unknown_provider_is_one_line(script: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "p.csv", ("prompt", "response"), [("a", "b")])
    flags = {
        GENERATE: ("--category=hate", "--model=nobody-knows"),
        REWRITE: ("--toxic_seed_path=p.csv", "--model=nobody-knows"),
        MODERATE: ("--input_file_path=p.csv", "--moderator_model=nobody-knows"),
        ALIGN: ("--input_file=p.csv", "--model=nobody-knows"),
        CHECK: ("--input_file=p.csv", "--check_model=nobody-knows"),
    }
    done = run(script, *flags[script], cwd=tmp_path)
    assert done.returncode == 1
    assert "which provider serves 'nobody-knows'?" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_answer_log_is_its_owners_alone(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    run(
        ALIGN,
        "--model=gpt-x",
        "--input_file=p.csv",
        "--output_path=o.csv",
        cwd=tmp_path,
        url=serve(fine).url,
    )
    log = tmp_path / "o.answers.jsonl"
    assert os.stat(log).st_mode & 0o777 == 0o600
    (line,) = log.read_text().splitlines()
    entry = json.loads(line)
    assert entry["text"] == "Fold the corners first."
    assert entry["model"] == "loopback-1"
    assert entry["finish_reason"] == "stop"
    assert len(entry["key"]) == 32


def test_a_key_given_as_a_flag_is_not_shown(tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    for flags in (
        ["--api_key_env=gsk_Ab3dEf6hIj9k"],
        ["--api_key_env=ABCDEFGHIJKLMNOPQRS7"],
        [f"--api_key_env={KEY}"],
        [f"--api_key={KEY}"],
        ["--api_key", KEY],
        ["-api_key", KEY],
    ):
        done = run(ALIGN, "--model=vllm/x", "--input_file=p.csv", *flags, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert KEY not in done.stderr
        assert "gsk_" not in done.stderr and "ABC" not in done.stderr
        assert "-api_key" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv"]


def test_a_variable_that_is_set_is_one_whatever_its_name(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    server = serve(fine)
    flags = (f"--base_url={server.url}", "--api_key_env=my_3rd_key", "--input_file=p.csv")
    done = run(ALIGN, "--model=x", *flags, cwd=tmp_path, env={"my_3rd_key": "mine-123"})
    assert done.returncode == 0, done.stderr
    assert "Bearer mine-123" in server.headers


@pytest.mark.parametrize("said", ["null", '"gpt-4"', "[]"])
def test_a_record_that_says_odd_things_of_the_model_stops_nothing(
    said: str, tmp_path: Path
) -> None:
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("Why?", "Fold it.")])
    (tmp_path / "r.run.json").write_text(f'{{"stage": "x", "under_test": {said}}}')
    done = run(CHECK, "--check_model=keyword", "--input_file=r.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_output_that_another_file_of_the_run_stands_in_for_is_refused(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    prompts_csv(tmp_path / "p_failed.csv", 1)
    (tmp_path / "a_failed.csv").mkdir()
    (tmp_path / "b.run.json").mkdir()
    server = serve(fine)
    for flags, line in (
        (("--input_file=p_failed.csv",), "choose another --output_path"),
        (("--input_file=p.csv", "--output_path=a.csv"), "a_failed.csv is a folder"),
        (("--input_file=p.csv", "--output_path=b.csv"), "b.run.json is a folder"),
        (("--input_file=p.csv", f"--output_path={'n' * 245}.csv"), "cannot be written"),
    ):
        done = run(ALIGN, "--model=gpt-x", *flags, cwd=tmp_path, url=server.url)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert line in done.stderr.splitlines()[-1]
    assert server.requests == []


def test_the_output_of_a_file_with_another_ending_is_a_csv(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "P.TXT", 1)
    done = run(ALIGN, "--model=gpt-x", "--input_file=P.TXT", cwd=tmp_path, url=serve(fine).url)
    assert (done.returncode, done.stdout) == (0, "final_gpt-x_results/gpt-x_merged_P.csv\n")


def test_a_seed_with_half_a_character_is_written_as_text(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body, seen: answer("[[Take biscuit \ud83d now]]"))
    flags = ("--category=harmful", "--num_toxic_prompts=1", "--model=gpt-x")
    done = run(GENERATE, *flags, cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "harmful_prompts.csv").read_text(encoding="utf-8")
    assert "Take biscuit \ufffd now" in text


def test_a_prompt_file_that_is_gone_or_no_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        prompt_template(str(tmp_path / "stage.py"))
    (tmp_path / "prompt.txt").write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        prompt_template(str(tmp_path / "stage.py"))


# -- the terminal, and signals at odd moments --------------------------------------------------


def shell(command: str, tmp_path: Path, url: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run stage 4 in a shell, as `{run}` in the command."""
    words = [sys.executable, str(ROOT / ALIGN), "--model=gpt-x", "--input_file=p.csv"]
    return subprocess.run(
        ["sh", "-c", command.replace("{run}", shlex.join(words))],
        cwd=tmp_path,
        env=environment(url, **env),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_stdout_is_one_line_that_names_what_was_written(
    serve: Serve, tmp_path: Path, unbuffered: str
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    command = "{run} --output_path=o.csv >/dev/full"
    done = shell(command, tmp_path, serve(fine).url, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "error: o.csv is written, but stdout is not: No space left on device"
    assert len(read_csv(tmp_path / "o.csv")) == 1


def test_a_closed_terminal_changes_nothing_but_what_is_seen(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    url = serve(fine).url
    for closed, out in ((">&-", ""), ("2>&-", "o.csv\n"), ("2>/dev/full", "o.csv\n")):
        done = shell("{run} --output_path=o.csv " + closed, tmp_path, url)
        assert (done.returncode, done.stdout) == (0, out), done.stderr
        assert "Traceback" not in done.stderr
    done = shell("{run} --output_path=o.txt 2>&-", tmp_path, url)  # an error has no place either
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_path_is_printed_as_it_is_whatever_the_terminal_can_show(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    command = "{run} --output_path=café.csv"
    done = shell(command, tmp_path, serve(fine).url, PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert (done.returncode, done.stdout) == (0, "café.csv\n"), done.stderr


# What is imported when the signal comes: while the modules are loaded, before and after the flags
# are read, while openai is loaded under the event loop.
@pytest.mark.parametrize("module", ["orbench.columns", "orbench.run", "dotenv", "openai"])
def test_an_interrupt_while_a_script_starts_ends_with_130(
    serve: Serve, tmp_path: Path, module: str
) -> None:
    prompts_csv(tmp_path / "p.csv", 3)
    (tmp_path / ".env").write_text("A=b\n")
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    server = serve(fine)
    done = shell("{run}", tmp_path, server.url, PYTHONPATH=str(tmp_path))
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert server.requests == []


def test_interrupts_one_right_after_the_other_end_with_130(tmp_path: Path) -> None:
    """In the middle of a script, while the first one is said, and when all is done."""
    script = (
        "import os, signal, sys\n"
        "from orbench import terminal\n"
        "def strike():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "def say(line):\n"
        "    print(line, file=sys.stderr, flush=True)\n"
        "    strike()\n"
        "terminal.say = say\n"
        "def main(argv):\n"
        "    if argv == ['within']:\n"
        "        strike()\n"
        "    return 0\n"
        "status = terminal.run_script(main)\n"
        "strike()\n"
        "sys.exit(status)\n"
    )
    for word, says in (("within", "interrupted; run the same command to resume\n"), ("after", "")):
        done = subprocess.run(
            [sys.executable, "-c", script, word],
            cwd=tmp_path,
            env=environment(PYTHONPATH=str(ROOT)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (130, says)


NONSENSE = {
    "SSL_CERT_FILE": "/no/such/file",
    "SSLKEYLOGFILE": "/no/such/folder/keys",
    "HTTPS_PROXY": "http://a:b:c",
    "ALL_PROXY": "gopher://x",
    "OPENAI_ORG_ID": "örg",
}


@pytest.mark.parametrize("flags", [[], ["--batch"]])
@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_in_the_environment_is_one_line_that_names_the_variable(
    serve: Serve, tmp_path: Path, name: str, flags: list[str]
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    server, env = serve(fine), {name: NONSENSE[name]}
    args = ("--model=gpt-x", "--input_file=p.csv", *flags)
    # Some are read while packages are imported.
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url, env=env, own_process=True)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ") and name in last
    assert server.requests == []


def test_a_pipe_as_input_is_one_line_that_says_what_to_do(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    command = "cat p.csv | {run} --input_file=/dev/stdin --output_path=o.csv"
    url = serve(fine).url
    done = shell(command, tmp_path, url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "/dev/stdin is no file and can be read only once; save it" in done.stderr
    assert not (tmp_path / "o.csv").exists()
    done = shell("{run} --input_file=/dev/stdin --output_path=o.csv < p.csv", tmp_path, url)
    assert done.returncode == 0, done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == 2


@pytest.mark.parametrize("junk", [".", ".*", "1.", "?", "- ", "---"])
def test_a_phrase_without_a_word_marks_nothing(tmp_path: Path, junk: str) -> None:
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("a", "1. Here is how. Fold it - so?")])
    (tmp_path / "phrases.txt").write_text(f"# mine\nno can do\n{junk}\n")
    args = ("--check_model=keyword", "--input_file=r.csv", "--refusal_phrases=phrases.txt")
    done = run(CHECK, *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{junk.strip()!r} is no phrase" in done.stderr
    (tmp_path / "phrases.txt").write_text("#\nここまで\nno can do\n")
    assert run(CHECK, *args, cwd=tmp_path).returncode == 0


def test_an_input_with_the_name_of_another_file_of_the_run_is_left_alone(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(fine)
    for name in ("o.answers.jsonl", "o.batches.json", "o.run.json", "o.shard-1-of-2.answers.jsonl"):
        before = prompts_csv(tmp_path / name, 2).read_bytes()
        flags = (f"--input_file={name}", "--output_path=o.csv", "--shard=1/2")
        done = run(ALIGN, "--model=gpt-x", *flags, cwd=tmp_path, url=server.url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "is an input and would be written over" in done.stderr
        assert (tmp_path / name).read_bytes() == before
        (tmp_path / name).unlink()
    assert server.requests == []
