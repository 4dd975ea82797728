"""What each flag takes, what is said about everything else, and what becomes of it in requests.

The cases stand in flags.toml: words of a command line -> what comes of them.
"""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orbench.models.providers import OWN_FIELDS
from orbench.models.requests import message
from orbench.stages.prompt_sets import HINT, PROMPT_SETS
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    MODERATE,
    REWRITE,
    USUAL,
    Desk,
    Done,
    error_line,
    write_csv,
)

TABLES = tomllib.loads(Path(__file__).with_name("flags.toml").read_text(encoding="utf-8"))
MEASURE = "measure.py"
SCRIPTS = {
    "generate": GENERATE,
    "rewrite": REWRITE,
    "moderate": MODERATE,
    "align": ALIGN,
    "check": CHECK,
    "measure": MEASURE,
}
NEEDED = USUAL | {MEASURE: ("--model=gpt-x", "--prompts=p.csv")}
TURNS = [message("user", "Hi."), message("assistant", "Hello."), message("user", "Fold it?")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs that no case changes."""
    path = tmp_path_factory.mktemp("inputs")
    prompts = [("How do I fold a paper bird?", "craft"), ("How do I dry a leaf?", "plants")]
    write_csv(path / "p.csv", ("prompt", "category"), prompts)
    write_csv(path / "q.csv", ("question", "topic"), [("How now?", "x")])
    write_csv(path / "toxic.csv", ("prompt",), [("Rude?",)])
    write_csv(path / "empty.csv", ("prompt",), [])
    write_csv(path / "r.csv", ("prompt", "response", "label"), [("Why?", "Fold it.", "answer")])
    write_csv(path / "rewritten.csv", ("prompt", "toxic_seed", "sample"), [("Why?", "Rude?", "1")])
    write_csv(path / "xstest", ("prompt",), [("A file with the name of a set.",)])
    for name in ("talk", "talk2"):
        text = json.dumps({"messages": TURNS, "topic": name})
        (path / f"{name}.jsonl").write_text(text)
    (path / "sys.txt").write_text(" \n Be kind.\n")
    (path / "blank.txt").write_text(" \n")
    (path / "folder.run.json").mkdir()
    (path / "latin.txt").write_bytes(b"\xe9")
    return path


def ran(words: str, desk: Desk, *more: str, status: int = 0, **env: str) -> Done:
    """Run the script that the first word stands for, with the others behind what it needs."""
    name, *flags = shlex.split(words.replace("$URL", desk.url))
    script = SCRIPTS[name]
    env |= {"ANTHROPIC_API_KEY": "k", "set": "k"}
    return desk.run(script, *NEEDED[script], *flags, *more, env=env, status=status)


@pytest.mark.parametrize(("words", "says"), TABLES["wrong"].items())
def test_a_wrong_command_line_is_two_lines(words: str, says: str, folder: Path, desk: Desk) -> None:
    desk.folder = folder
    done = ran(words, desk, "--dry_run", status=2)
    usage = f"usage: {Path(SCRIPTS[words.split()[0]]).name} [flags], see --help\n"
    assert done.stderr == f"{usage}error: {says}\n" and not done.stdout


@pytest.mark.parametrize("field", sorted(OWN_FIELDS))
def test_what_the_suite_sets_in_a_request_cannot_be_set_otherwise(field: str, desk: Desk) -> None:
    done = ran(f"align --extra_body='{{\"{field}\": 1}}'", desk, status=2)
    assert f"--extra_body: {field} cannot be set here" in done.stderr


@pytest.mark.parametrize(("words", "says"), TABLES["stops"].items())
def test_what_cannot_be_meant_stops_before_anything_is_sent(
    words: str, says: str, folder: Path, desk: Desk
) -> None:
    desk.folder = folder
    says = says.replace("SETS", ", ".join(PROMPT_SETS)).replace("; FORMATS", HINT)
    live = re.search("--from_log|_requests|_answers", words)
    done = ran(words, desk, *([] if live else ["--dry_run"]), status=1)
    assert error_line(done) == f"error: {says}"


@pytest.mark.parametrize(("words", "says"), TABLES["goes"].items())
def test_a_value_is_taken(words: str, says: str, folder: Path, desk: Desk) -> None:
    desk.folder = folder
    before = sorted(folder.iterdir())
    done = ran(words, desk, "--dry_run")
    assert says in " ".join(done.stderr.splitlines()[-1].split())
    assert not done.stdout and sorted(folder.iterdir()) == before


@pytest.mark.parametrize(("words", "limit"), TABLES["limits"].items())
def test_a_model_that_thinks_gets_room_for_it(words: str, limit: str, desk: Desk) -> None:
    desk.prompts(1)
    done = ran(words, desk, "--dry_run", OPENAI_BASE_URL="http://x.test/v1")
    most = re.search(r" ([\d,]+) +-$", done.stderr, re.MULTILINE)
    said = "is a reasoning model: --max_tokens is 16,000\n" in done.stderr
    found = most[1] if most else "none"
    assert found + " said" * said == limit


@pytest.mark.parametrize(("words", "wanted"), TABLES["settings"].items())
def test_flags_become_parameters_and_names_of_settings(
    words: str, wanted: list[Any], desk: Desk
) -> None:
    sent, settings = wanted
    desk.prompts(1)
    desk.serve()
    ran(words, desk)
    for body in desk.server.requests:
        del body["model"], body["messages"]
        assert body == sent
    assert desk.record()["under_test"]["settings"] == settings


@pytest.mark.parametrize("script", TABLES["help"])
def test_the_help_names_defaults_and_files(script: str, desk: Desk) -> None:
    done = desk.run(SCRIPTS[script], "--help", env={"COLUMNS": "300"})
    said = " ".join(done.stdout.split())
    for phrase in TABLES["help"][script]:
        assert phrase in said
    assert not re.search("{(parts|usual|default|samples|categories)}", said)
