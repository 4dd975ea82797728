"""README and docs: their links, their commands, flags and variables, the messages they quote."""

import doctest
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from orbench.report.columns import ASSOCIATIONS, BOARD, COMPARISONS, RATES, Column
from orbench.report.measures import Associated, Compared, Kind
from tests.conftest import ALIGN, ROOT, STAGES, Desk, environment
from tests.contract.test_transcripts import VARIES

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TRANSCRIPT = ROOT / "tests/contract/transcripts/docs/messages.txt"
# Of the simulations, of vLLM, and of hf.
OTHERS_FLAGS = {
    "--create-pr",
    "--include",
    "--repo-type",
    "--measure",
    "--held",
    "--gate",
    "--draws",
    "--rows",
    "--latency",
    "--beside",
    "--served-model-name",
    "--reasoning-parser",
}


def scripts() -> list[str]:
    folders = [Path(stage).parts[0] for stage in STAGES]
    found = [path for folder in folders for path in (ROOT / folder).glob("*.py")]
    return ["measure.py", *(str(path.relative_to(ROOT)) for path in found)]


def test_every_command_and_flag_in_the_documents_is_there(desk: Desk) -> None:
    flags = {"": OTHERS_FLAGS}
    for script in scripts():
        flags[Path(script).name] = set(re.findall(r"--\w+", desk.run(script, "--help").stdout))
    assert len(flags[Path(ALIGN).name] - {"--help"}) <= 32
    assert all("--prices" in flags[Path(stage).name] for stage in STAGES)
    every = set().union(*flags.values())
    commands = 0
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8").replace("\\\n", " ")
        assert set(re.findall(r"(?<![\w-])--\w[\w-]*", text)) <= every, document.name
        for name, words in re.findall(r"^[^`\n]*?(\w+\.py) ([^\n)|>`]*)$", text, re.MULTILINE):
            if name in flags:
                commands += 1
                assert set(re.findall(r"(?<=\s)--\w+", words)) <= flags[name], (document, words)
    assert commands > 10


def test_help_lists_flags_that_no_beginner_guide_mentions_as_advanced(desk: Desk) -> None:
    guides = ("README.md", "docs/measure_a_model.md", "docs/five_stages.md")
    text = "".join((ROOT / guide).read_text(encoding="utf-8") for guide in guides)
    mentioned = set(re.findall(r"--\w+", text))
    mentioned.add("--system_prompt")  # stands beside --system_prompt_file, which excludes it
    for stage in STAGES:
        usual, _, advanced = desk.run(stage, "--help").stdout.partition("\nadvanced:\n")
        assert set(re.findall(r"^  (--\w+)", usual, re.MULTILINE)) <= mentioned, stage
        rare = set(re.findall(r"^  (--\w+)", advanced, re.MULTILINE))
        assert "--extra_body" in rare and not rare & mentioned, stage


def test_make_uses_every_variable_that_the_documents_give_it() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    used = {
        name: set(words.split())
        for name, words in re.findall(r"^USED_(\w+) := (.*)", makefile, re.M)
    }
    commands = 0
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for target, words in re.findall(r"make (measure|prompts|demo) ([^\n`]*)", text):
            commands += 1
            assert set(re.findall(r"\b([A-Z_]+)=", words)) <= used[target], (document.name, words)
    assert commands > 10


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {"", *(heading.replace(" ", "-") for heading in words)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", document.read_text(encoding="utf-8"))
    for link in links:
        if not link.startswith("https:"):
            file, _, anchor = link.partition("#")
            target = document.parent / file if file else document
            assert target.is_file(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_is_linked_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/(\w+\.md)", (ROOT / "README.md").read_text()))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")}


def test_readme_fits_on_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


@pytest.mark.parametrize(
    ("file", "columns"),
    [
        ("results", RATES),
        ("comparison", COMPARISONS),
        ("associations", ASSOCIATIONS),
        ("leaderboard", BOARD),
    ],
)
def test_each_column_of_a_report_is_described_once(file: str, columns: Sequence[Column]) -> None:
    page = (ROOT / "docs/columns.md").read_text(encoding="utf-8")
    table = page.partition(f"### {file}.csv\n")[2].partition("\n#")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    described = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(described) == sorted(column.name for column in columns if column.name)


@pytest.mark.parametrize("kinds", [Kind, Compared, Associated])
def test_each_kind_of_row_is_described(kinds: type[StrEnum]) -> None:
    page = (ROOT / "docs/columns.md").read_text(encoding="utf-8")
    assert [kind for kind in kinds if f"`{kind}`" not in page] == []


def test_the_life_of_a_rate_names_few_modules_and_functions_and_they_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("## The life of a rate\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.*?) \|", table, re.MULTILINE)
    functions = []
    for module, names in rows:
        folder = "orbench" if "/" in module else "orbench/report"
        code = (ROOT / folder / module).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert f"\ndef {name}(" in code, (module, name)
            functions.append((module, name))
    assert 0 < len(rows) <= 15 and len(set(functions)) == len(functions) <= 60


def test_messages_are_quoted_as_the_scripts_print_them() -> None:
    page = (ROOT / "docs/when_something_goes_wrong.md").read_text()
    printed = TRANSCRIPT.read_text().splitlines()
    quoted = "".join(re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)).splitlines()
    assert len(quoted) > 10
    for line in quoted:
        for pattern, mark in VARIES.items():
            line = re.sub(pattern, mark, line)
        assert line in printed


def test_the_workflow_for_ci_runs_as_the_page_shows_it(desk: Desk) -> None:
    workflow = (ROOT / "docs/gate.yml").read_text()
    assert f"```yaml\n{workflow}```\n" in (ROOT / "docs/gates.md").read_text()
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    for tool in ("make", "vllm", "curl", ".venv/bin/activate"):
        desk.write(tool, 'echo "${0##*/} $*" >> calls\n')
        (desk.folder / tool).chmod(0o755)
    (desk.folder / "measure.py").symlink_to(ROOT / "measure.py")
    desk.prompts(30)
    desk.serve("I'm sorry, but I can't help with that.")
    desk.run("measure.py", "--model=old", "--prompts=p.csv", "--output_dir=old")
    env = {"PATH": f"{desk.folder}:{environment()['PATH']}", "GITHUB_RUN_ID": "7"}
    env |= job["env"] | {"CHECKPOINT": "my model", "BASELINE": "old", "VLLM_BASE_URL": desk.url}
    for step in job["steps"]:
        line = step.get("run", "").replace("--model", "--prompts p.csv --model")
        desk.shell(line, status=4 if "measure.py" in line else 0, **env)
    calls = desk.text("calls").splitlines()
    assert {"make .venv/installed", "vllm serve my model --served-model-name kestrel"} < {*calls}
    assert "<failure>not met; 100.0 %" in desk.text("gate.xml")
    assert "I'm sorry" not in desk.text("results-7/results.html")


def test_the_examples_in_python_are_true() -> None:
    text = (ROOT / "docs" / "python.md").read_text().replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, "python.md", None, None)
    results = doctest.DocTestRunner().run(examples)
    assert results.attempted >= 3 and not results.failed
