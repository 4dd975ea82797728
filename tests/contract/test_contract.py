"""What users rely on: README's commands, names, flags, columns, exit statuses, streams, keys."""

import re
import shlex
import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    MODERATE,
    REWRITE,
    ROOT,
    STAGES,
    Desk,
    Done,
)
from tests.server import KEY, NOBODY, Body, Reply, Script, answer, by_number, error, prompt_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIVE_STAGES = (ROOT / "docs/five_stages.md").read_text(encoding="utf-8")
NO = "I'm sorry, but I can't help with that."


# -- the commands of README --------------------------------------------------------------------


@cache
def longest_line(script: str) -> str:
    """A line of a stage's prompt.txt that tells its requests from those of the other stages."""
    text = (ROOT / script).with_name("prompt.txt").read_text(encoding="utf-8")
    return max((line for line in text.splitlines() if "{" not in line), key=len)


def play(body: Body, seen: int) -> str:
    """A model that does what each stage asks: of five rewrites one is toxic, one is refused."""
    text = prompt_of(body)
    asks = next((s for s in STAGES if s != ALIGN and longest_line(s) in text), ALIGN)
    if asks == GENERATE:
        return "\n".join(f"{n}. [[Take biscuit {n} of box {seen}]]" for n in range(1, 21))
    if asks == REWRITE:
        (seed,) = re.findall(r"Take biscuit \d+ of box \d+", text)
        return "\n".join(f"[[Who keeps a tin? {seed}, {n}]]" for n in range(5))
    if asks == MODERATE:
        return f"It is plain to see. **[[{'7. illegal' if ', 0' in text else '11. none'}]]**"
    if asks == CHECK:
        return f"It is clear. [[{'direct_refusal' if NO in text else 'direct_answer'}]]"
    return NO if ", 3" in text else "Ask for it politely."


def clone(folder: Path) -> None:
    """What a user has after cloning: the stages' folders and what they share."""
    for name in {Path(stage).parts[0] for stage in STAGES} | {"orbench"}:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.csv"))


def typed(desk: Desk, script: str) -> tuple[Done, str]:
    """A stage's line of README, typed in its folder; and the CSV that it names."""
    line = re.search(rf"^python ({Path(script).name} .*)", README, re.MULTILINE)
    assert line, script
    name, *flags = shlex.split(line[1])
    folder = Path(script).parts[0]
    done = desk.run(desk.folder / folder / name, *flags, cwd=desk.folder / folder)
    return done, f"{folder}/{done.stdout.strip()}"


def test_the_five_commands_of_readme_run_as_they_stand_each_from_its_folder(desk: Desk) -> None:
    clone(desk.folder)
    desk.serve(play)
    _, seeds = typed(desk, GENERATE)
    assert seeds == "toxic_prompt_generator/harmful_prompts.csv"
    assert len(set(desk.cells("prompt", seeds))) == 2000
    lines = desk.text(seeds).splitlines(keepends=True)
    desk.write(seeds, "".join(lines[:7]))  # six will do
    assert typed(desk, REWRITE)[1] == "rewritter/harmful_prompts_rewrite.csv"
    name = "harmful_prompts_rewrite_moderation_merged_gpt-5.4-mini_prompt"
    assert typed(desk, MODERATE)[1] == f"moderator/{name}.csv"
    four, _ = typed(desk, ALIGN)
    assert four.stdout == f"final_gpt-5.4_results/gpt-5.4_merged_{name}.csv\n"
    five, checked = typed(desk, CHECK)
    end = "_response_check_merged_gpt-5.4-mini.csv"
    assert Path(checked).name == f"gpt-5.4_merged_{name}{end}"
    assert set(desk.cells("category", checked)) == {"harmful"}
    tables = re.findall(r"overall +(\d+) +(\d+) +([\d.]+)%", five.stderr)
    assert tables == [("24", "6", "25.0"), ("6", "0", "0.0")]  # of safe prompts, of toxic ones


def test_the_chain_of_the_docs_runs_in_a_script(desk: Desk) -> None:
    clone(desk.folder)
    desk.serve(play)
    (chain,) = re.findall(r"^```sh\n([^`]*seeds=\$\([^`]*)^```", FIVE_STAGES, re.MULTILINE)
    done = desk.shell(chain)
    assert done.stdout.count("\n") == 1
    assert len(desk.rows(done.stdout.strip())) == 400  # of 500 rewrites, one in five is toxic


# -- names and columns -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "flags", "name"),
    [
        (GENERATE, "--category=self-harm --num_toxic_prompts=1 --model=m", "self-harm_prompts.csv"),
        (REWRITE, "--toxic_seed_path=p.csv --model=m", "p_rewrite.csv"),
        (
            MODERATE,
            "--input_file_path=p.csv --moderator_model=gpt4 --column=prompt",
            "p_moderation_merged_gpt4_prompt.csv",
        ),
        (
            ALIGN,
            "--input_file=p.csv --model=vllm/me/own",
            "final_vllm_me_own_results/vllm_me_own_merged_p.csv",
        ),
        (CHECK, "--input_file=r.csv --check_model=gpt4", "r_response_check_merged_gpt4.csv"),
    ],
)
def test_a_stage_names_its_csv_after_its_input(
    desk: Desk, script: str, flags: str, name: str
) -> None:
    desk.prompts(1)
    desk.csv("r.csv", ("prompt", "response"), [("Who folds?", "Fold.")])
    desk.serve({MODERATE: "[[none]]", CHECK: "[[direct_answer]]"}.get(script, "[[Who takes one?]]"))
    done = desk.run(script, *flags.split(), env={"VLLM_BASE_URL": desk.url})
    assert done.stdout == name + "\n"
    stem = name.removesuffix(".csv")
    beside = {f"{stem}.answers.jsonl", f"{stem}.run.json", "p.csv", "r.csv"}
    assert set(desk.files()) == beside | {name}


STRANGE = (
    *("NA", "null", "None", "007", "1e5", "[[7. illegal]]", "=HYPERLINK(1)", " blanks around "),
    *("{braces} {mark} {text} %s $HOME", 'a "quoted", one', "two\nlines\r\nand\ttabs"),
    *(
        "a lone \r return",
        "emoji \U0001f98a and what you say to others: مرحبا بالعالم",
        "a NUL \x00 byte",
    ),
    *("\ufeffa mark in front", "x" * 200_000),
)


def test_every_cell_of_the_input_passes_through_unchanged(desk: Desk) -> None:
    rows = [(text, text, str(n)) for n, text in enumerate(STRANGE)]
    path = desk.csv("p.csv", ("prompt", "note", "id"), rows)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # as Excel writes it
    desk.serve(lambda body, seen: prompt_of(body))
    desk.stage(ALIGN, "--output_path=r.csv")
    for column in ("prompt", "note", "response"):
        assert [row[column] for row in desk.rows("r.csv")] == list(STRANGE)
    assert sorted(map(prompt_of, desk.server.requests)) == sorted(STRANGE)
    for script, said in ((MODERATE, "[[none]]"), (CHECK, "[[direct_answer]]")):
        desk.serve(said)
        desk.stage(script, "--overwrite")
        assert desk.cells("note") == list(STRANGE)
    desk.serve("[[Who folds?]]")
    desk.stage(REWRITE, "--overwrite")
    (row,) = desk.rows()  # of equal rewrites one is kept
    assert (row["toxic_seed"], row["note"], row["id"]) == ("NA", "NA", "0")


def test_only_its_owner_can_read_the_answer_log(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve()
    desk.stage(ALIGN)
    assert (desk.folder / "o.answers.jsonl").stat().st_mode & 0o777 == 0o600


# -- exit statuses and streams -----------------------------------------------------------------


def test_model_text_cannot_write_to_the_terminal(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(error(400, "\x1b[2J\x1b]0;gotcha\x07\nnext line"))
    done = desk.stage(ALIGN, status=1)
    assert done.stdout == "" and not set("\x1b\x07") & set(done.stderr)


STREAMS = {
    "stdout is full": ("> /dev/full", 1, ""),
    "stderr is closed": ("2>&-", 0, "o.csv\n"),
    "stderr is full": ("2> /dev/full", 0, "o.csv\n"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_takes_nothing_changes_nothing_but_what_is_seen(
    desk: Desk, name: str
) -> None:
    how, status, out = STREAMS[name]
    desk.prompts(1)
    desk.serve()
    line = f"python {ROOT / ALIGN} --model=gpt-x --input_file=p.csv --output_path=o.csv {how}"
    done = desk.shell(line, status=status)
    assert done.stdout == out
    assert len(desk.rows(out.strip() or "o.csv")) == 1
    assert status == 0 or "o.csv was written" in done.stderr


# -- keys --------------------------------------------------------------------------------------

SECRET = NOBODY.replace("http://", f"http://user:{KEY}@") + f"?token={KEY}"
# What a key may leak through: the server's script, and flags.
PLACES: dict[str, tuple[Script, list[str]]] = {
    "a row's error": (by_number({1: error(400, f"what is Bearer {KEY}?")}), []),
    "the refusal of the key": (error(401, f"Incorrect API key: {KEY}"), []),
    "an error that is retried": (error(500, f"{KEY} crashed"), ["--max_retries=0"]),
    "HTML": (Reply(f"<html>{KEY}", content_type="text/html"), ["--max_retries=0"]),
    "an answer": (f"You sent {KEY}.", []),
    "the name of a model": (Reply(str(answer("Ok.").body).replace("loopback", KEY)), []),
    "the address": ("Fold it.", [f"--base_url=http://user:{KEY}@HOST/v1"]),
    "the address of nobody": ("", [f"--base_url={SECRET}", "--max_retries=0"]),
    "the exported requests": ("", ["--export_requests=q.jsonl", f"--base_url={SECRET}"]),
    "the plan": ("", ["--dry_run", f"--base_url={SECRET}"]),
    "a key where its variable belongs": ("", [f"--api_key_env={KEY}"]),
    "a flag that is none": ("", [f"--api_key={KEY}"]),
    "a word behind a flag that is none": ("", ["--api_key", KEY]),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_key_reaches_no_file_and_no_message(desk: Desk, place: str) -> None:
    reply, flags = PLACES[place]
    desk.prompts(3)
    host = f"127.0.0.1:{desk.serve(reply).port}"
    words = [flag.replace("HOST", host) for flag in flags]
    done = desk.stage(ALIGN, *words, status=None)
    texts = [done.stdout, done.stderr, *(data.decode() for data in desk.files().values())]
    assert not any(KEY in text for text in texts)
