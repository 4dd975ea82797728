"""What holds for the repository as a whole: its lists, its files, its scripts, its prompts."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from orbench.models.providers import PROVIDERS
from tests.conftest import (
    CHECK,
    GENERATE,
    MODERATE,
    REWRITE,
    ROOT,
    STAGES,
    environment,
)

FOLDERS = [Path(stage).parts[0] for stage in STAGES]
SCRIPTS = sorted(
    str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.py")
)
PACKAGES = (
    "base",
    "stats",
    "refusals",
    "models",
    "asking",
    "judging",
    "stages",
    "datasets",
    "report",
)

# -- the two lists of packages -----------------------------------------------------------------


def conda_packages() -> list[str]:
    """The pip section of environment.yml."""
    text = (ROOT / "environment.yml").read_text()
    return re.findall(r"^      - (\S+)$", text.partition("- pip:\n")[2], re.MULTILINE)


def test_conda_and_pip_install_the_same_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = dict(project["optional-dependencies"])
    del groups["demo"]  # two wheels that only the demo installs, without what they depend on
    del groups["test"]  # what users do not need
    del groups["harnesses"]
    packages = [*project["dependencies"], *(name for group in groups.values() for name in group)]
    assert sorted(conda_packages()) == sorted(packages)
    assert len(set(packages)) == len(packages) > 5


# -- the files ---------------------------------------------------------------------------------


def tracked() -> list[Path]:
    """What git holds, as it is now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


KEY_LIKE = re.compile(rb"\b(?:sk|gsk|tgp|pk)[-_][A-Za-z0-9_-]{24,}|\bAIza[A-Za-z0-9_-]{30,}")
# Written so that this file does not hold what it looks for.
OF_THIS_MACHINE = [str(ROOT).encode(), f"{Path.home()}/".encode(), b"/".join((b"", b"work", b""))]


def test_the_repository_holds_no_data_no_key_and_no_path_of_this_machine() -> None:
    for path in tracked():
        is_log = path.parent == ROOT / "tests/contract/logs"  # of other tools, without content
        assert is_log or path.suffix not in (".csv", ".jsonl", ".tmp", ".pyc"), path
        assert path.name != ".env" and not path.name.endswith(".run.json"), path
        content = path.read_bytes()
        assert not KEY_LIKE.search(content), path
        for place in OF_THIS_MACHINE:
            assert not re.search(rb"(?<![\w.~/-])" + re.escape(place), content), (path, place)


def test_docs_and_the_example_name_every_provider_and_no_key() -> None:
    served = set(PROVIDERS) - {"scripted", "smollm2"}
    example = (ROOT / ".env.example").read_text()
    keys = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
    assert {PROVIDERS[name].key_variable for name in served} == {k for k in keys if "_KEY" in k}
    assert not any(keys.values())
    (listed,) = re.findall(r"Providers: (.*?);", (ROOT / "docs/models.md").read_text())
    assert set(listed.split(", ")) == served


def test_no_file_of_a_stage_hides_a_package_or_another_stages_file() -> None:
    names = [Path(script).stem for script in SCRIPTS]
    assert not set(names) & {*sys.stdlib_module_names, *packages_distributions(), "orbench"}
    assert len(set(names)) == len(names)


# -- the scripts -------------------------------------------------------------------------------


def imports_of(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, path  # a relative import
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_imports_from_no_other_stage(script: str) -> None:
    first = {module.split(".")[0] for module in imports_of(ROOT / script)}
    assert not first & {*FOLDERS, *(Path(other).stem for other in SCRIPTS)}
    assert (ROOT / script).read_text().startswith('"""')


def test_a_package_imports_only_from_packages_below_it() -> None:
    files = [path for path in (ROOT / "orbench").rglob("*.py") if path.parent.name in PACKAGES]
    assert {path.parent.name for path in files} == set(PACKAGES)
    for path in files:
        of_orbench = (module.split(".") for module in imports_of(path) if "orbench" in module)
        for _, package, *_ in of_orbench:
            assert PACKAGES.index(package) <= PACKAGES.index(path.parent.name), path
            if path.parent.name in ("stats", "refusals"):
                assert package in (path.parent.name, "base")


HEAVY = {"pandas", "openai", "numpy", "matplotlib", "scipy", "statsmodels", "aiohttp"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_and_a_wrong_command_line_import_nothing_heavy(script: str) -> None:
    for flag, status in (("--help", 0), ("--no_such_flag", 2)):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", str(ROOT / script), flag],
            cwd=ROOT.parent,
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stderr
        lines = done.stderr.splitlines()
        modules = {line.rpartition("|")[2].strip().split(".")[0] for line in lines}
        assert "argparse" in modules  # else this looks at nothing
        assert not modules & HEAVY


def test_the_classifier_imports_only_what_pip_install_brings() -> None:
    code = "import orbench, sys; orbench.classify('No.'); print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    modules = {name.split(".")[0] for name in done.stdout.split()}
    assert "orbench" in modules and not modules & (HEAVY | {"dotenv", "tqdm", "yaml"})


# -- the prompt files --------------------------------------------------------------------------

MARKS = {
    GENERATE: {"number", "category", "definition"},
    REWRITE: {"number", "seed", "mark"},
    MODERATE: {"categories", "text", "mark"},
    CHECK: {"classes", "prompt", "response", "mark"},
}


def prompt_file(script: str) -> str:
    return (ROOT / script).with_name("prompt.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", MARKS)
def test_a_prompt_file_holds_its_marks_and_fences_what_is_only_material(script: str) -> None:
    text = prompt_file(script)
    assert set(re.findall(r"\{(\w+)\}", text)) == MARKS[script]
    assert not set("{}") & set(re.sub(r"\{\w+\}", "", text))
    lines = text.splitlines()
    for mark in MARKS[script] & {"seed", "text", "prompt", "response"}:
        at = lines.index(f"{{{mark}}}")
        assert lines[at - 1].startswith("----- {mark}") and lines[at + 1].startswith("----- {mark}")
