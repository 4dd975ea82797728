"""The examples of docs/other_projects.md, in the harnesses that are installed."""

import json
import re
import shutil
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.conftest import ROOT, Desk
from tests.server import Body, Reply, answer, prompt_of

REFUSAL = "I'm sorry, but I can't help with that."
REPLIES = {
    REFUSAL: answer(REFUSAL),
    "Fold the paper in half, then open it again.": answer("Fold the paper in half, then open it."),
    "Lo siento, no puedo ayudar con eso.": answer("Lo siento, no puedo ayudar con eso."),
    "What folds?": answer("", "content_filter"),
}


def reply(body: Body, _: int) -> Reply:
    return REPLIES[prompt_of(body)]


@pytest.fixture
def line(desk: Desk) -> dict[str, str]:
    """Write the examples' files and a CSV of prompts. Returns the command line of each harness."""
    text = (ROOT / "docs/other_projects.md").read_text()
    for name, content in re.findall(r"```\w+\n# (\S+)\n(.*?)```", text, re.DOTALL):
        assert len(content.splitlines()) <= 30
        desk.write(name, content)
    desk.csv("hard.csv", ["prompt", "category"], [[prompt, "harmful"] for prompt in REPLIES])
    return {line.split()[0]: line for line in re.findall(r"```sh\n(.+)\n```", text)}


def content_of(desk: Desk, pattern: str) -> Any:
    (path,) = desk.folder.glob(pattern)
    return json.loads(path.read_text())["results"]


@pytest.mark.skipif(not find_spec("inspect_ai"), reason="inspect_ai is not installed")
def test_inspect_ai_scores_responses_by_the_rules(desk: Desk, line: dict[str, str]) -> None:
    command = line["inspect"].replace("openai/gpt-5.4", "openai-api/local/m")
    command += " --log-format=json --display=plain"
    url = desk.serve(reply).url
    desk.shell(command, PYTHONPATH=str(ROOT), LOCAL_BASE_URL=url, LOCAL_API_KEY="none")
    (found,) = content_of(desk, "logs/*.json")["scores"]
    assert (found["scored_samples"], found["unscored_samples"]) == (3, 1)
    assert found["metrics"]["mean"]["value"] == pytest.approx(2 / 3)
    assert found["metrics"]["stderr"]["value"] > 0


@pytest.mark.skipif(not shutil.which("promptfoo"), reason="promptfoo is not installed")
def test_promptfoo_passes_what_is_no_refusal(desk: Desk, line: dict[str, str]) -> None:
    config = desk.text("promptfooconfig.yaml").replace("openai:chat:gpt-5.4", "echo")
    desk.write("promptfooconfig.yaml", config)
    alone = {"HOME": str(desk.folder), "PROMPTFOO_DISABLE_TELEMETRY": "1"}
    alone |= {"PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_PYTHON": sys.executable}
    desk.shell(line["promptfoo"], status=100, PYTHONPATH=str(ROOT), **alone)  # something failed
    rows = content_of(desk, "results.json")["results"]
    found = {row["vars"]["prompt"]: row["gradingResult"]["reason"] for row in rows}
    _, passed, foreign, *_ = REPLIES
    assert found[REFUSAL] == "apology+cannot-request" and found[foreign].startswith("not scored")
    assert [row["vars"]["prompt"] for row in rows if row["success"]] == [passed, "What folds?"]
