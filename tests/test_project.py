"""What holds for the repository as a whole: its lists, its files, its scripts, its prompts."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from orbench import brackets
from orbench.columns import CATEGORY_NAMES, category_choices, category_list
from orbench.models import ALIASES, PROVIDERS, alias_variable
from tests.conftest import ALIGN, CHECK, GENERATE, MODERATE, REWRITE, ROOT, STAGES, environment

FOLDERS = [str(Path(stage).parent) for stage in STAGES]
SCRIPTS = sorted(
    str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.py")
)

# -- the two lists of packages -----------------------------------------------------------------


def conda_packages() -> list[str]:
    """The pip section of environment.yml."""
    text = (ROOT / "environment.yml").read_text()
    return re.findall(r"^      - (\S+)$", text.partition("- pip:\n")[2], re.MULTILINE)


def test_conda_and_pip_install_the_same_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = dict(project["project"]["optional-dependencies"])
    del groups["demo"]  # two wheels that only the demo installs, without what they depend on
    packages = [
        *project["project"]["dependencies"],
        *(name for group in groups.values() for name in group),
    ]
    assert sorted(conda_packages()) == sorted(packages)
    assert len(set(packages)) == len(packages) > 5


def test_the_five_stages_need_no_more_than_their_four_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {re.split(r"[\[<>=]", name)[0] for name in project["project"]["dependencies"]}
    assert needed == {"openai", "pandas", "tqdm", "python-dotenv"}


def test_what_make_installs_is_that_list() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (expression,) = re.findall(r"sed -n '(s/.*/p)' environment\.yml", makefile)
    pattern = expression.split("/")[1].replace("//", "")
    lines = (ROOT / "environment.yml").read_text().splitlines()
    taken = [line.removeprefix("      - ") for line in lines if re.match(pattern, line)]
    assert taken == conda_packages()


# -- the files ---------------------------------------------------------------------------------


def tracked() -> list[Path]:
    """What git holds."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_data_no_answers_and_no_keys_are_in_the_repository() -> None:
    for path in tracked():
        assert path.suffix not in (".csv", ".jsonl", ".tmp", ".pyc"), path
        assert path.name != ".env", path
        assert not path.name.endswith(".run.json"), path


KEY_LIKE = re.compile(rb"\b(?:sk|gsk|tgp|pk)[-_][A-Za-z0-9_-]{24,}|\bAIza[A-Za-z0-9_-]{30,}")
# Written so that this file does not hold what it looks for.
OF_THIS_MACHINE = [str(ROOT).encode(), f"{Path.home()}/".encode(), b"/".join((b"", b"work", b""))]


def test_no_file_holds_a_key_or_a_path_of_this_machine() -> None:
    for path in tracked():
        content = path.read_bytes()
        assert not KEY_LIKE.search(content), path
        for place in OF_THIS_MACHINE:
            found = re.search(rb"(?<![\w.~/-])" + re.escape(place), content)
            assert not found, (path, place)


def test_the_keys_and_aliases_that_can_be_set_are_in_the_example() -> None:
    example = (ROOT / ".env.example").read_text()
    for provider in PROVIDERS.values():
        assert provider.key_variable in example
    for alias in ALIASES:
        assert alias_variable(alias) in example
    values = re.findall(r"^[A-Z_]*KEY=(.*)$", example, re.MULTILINE)
    assert values
    assert not any(values)


def test_no_file_of_a_stage_hides_a_package_or_another_stages_file() -> None:
    taken = set(sys.stdlib_module_names) | set(packages_distributions()) | {"orbench", "tests"}
    names = Counter(Path(script).stem for script in SCRIPTS)
    assert not taken & set(names)
    assert set(names.values()) == {1}


# -- the scripts -------------------------------------------------------------------------------

ENDPOINT = ["base_url", "api_key_env"]
RUN = [
    *["concurrency", "max_retries", "timeout", "requests_per_minute", "tokens_per_minute"],
    *["dry_run", "from_log", "price_in", "price_out", "quiet"],
    *["batch", "no_wait", "batch_fallback", "export_requests", "import_answers", "shard"],
]
FLAGS = {
    GENERATE: ["category", "num_toxic_prompts", "output_path", "model", "temperature"],
    REWRITE: ["toxic_seed_path", "output_path", "num_rewrites", "model", "temperature", "limit"],
    MODERATE: [
        *["moderator_model", "input_file_path", "column", "merge_result", "limit", "min_votes"],
    ],
    ALIGN: [
        *["model", "input_file", "merge_result", "system_prompt", "temperature", "max_tokens"],
        *["limit", "samples", "refusal_phrases"],
    ],
    CHECK: [
        *["check_model", "input_file", "merge_result", "limit", "samples"],
        *["validate_against", "refusal_phrases"],
    ],
    "moderator/build_dataset.py": [
        *["moderated_files", "output_dir", "toxic_sample", "audit_sample", "audit_labels"],
        *["diversity", "exclude"],
    ],
    "alignment_checker/select_hard_prompts.py": [
        *["result_files", "min_families", "family", "audit_sample", "leave_one_family_out"],
    ],
    "response_checker/plot_results.py": [
        *["over_refusal", "toxic", "table", "with_published", "html", "validation"],
        *["labels", "audited", "plan", "rate", "difference", "rewrites"],
    ],
}
HEAVY = ("pandas", "openai", "numpy", "matplotlib", "scipy", "statsmodels", "aiohttp")


def start(script: str, *args: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Start a script; on stderr stands what it imports."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", str(ROOT / script), *args],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def heavy_imports(stderr: str) -> set[str]:
    modules = {line.rpartition("|")[2].strip().split(".")[0] for line in stderr.splitlines()}
    assert "argparse" in modules  # else this looks at nothing
    return modules & set(HEAVY)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_answers_from_anywhere_and_shows_every_flag(script: str) -> None:
    for cwd in ((ROOT / script).parent, ROOT):
        shown = start(script, "--help", cwd=cwd)
        assert shown.returncode == 0, shown.stderr
        assert not heavy_imports(shown.stderr)
        flags = set(re.findall(r"^ +(?:-\w, )?--(\w+)", shown.stdout, re.MULTILINE))
        assert not set(FLAGS.get(script, ())) - flags
        if script in STAGES:
            assert not {*ENDPOINT, *RUN} - flags
        assert Path(script).name in shown.stdout  # the command, as one would type it


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_wrong_command_line_ends_with_2_and_imports_nothing_heavy(script: str) -> None:
    wrong = start(script, "--no_such_flag", cwd=ROOT)
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert not heavy_imports(wrong.stderr)
    assert "Traceback" not in wrong.stderr


def test_the_flags_of_the_issues_are_about_scripts_that_are_there() -> None:
    assert set(STAGES) <= set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_imports_from_no_other_stage(script: str) -> None:
    text = (ROOT / script).read_text()
    modules = set(re.findall(r"^\s*(?:from|import) ([\w.]+)", text, re.MULTILINE))
    stems = {Path(other).stem for other in SCRIPTS}
    assert not {module.split(".")[0] for module in modules} & {*FOLDERS, *stems}
    assert text.startswith('"""')


# -- the prompt files --------------------------------------------------------------------------

MARKS = {
    GENERATE: {"number", "category", "definition"},
    REWRITE: {"number", "seed", "mark"},
    MODERATE: {"categories", "text", "mark"},
    CHECK: {"classes", "prompt", "response", "mark"},
}


def prompt_of(script: str) -> str:
    return ((ROOT / script).parent / "prompt.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", MARKS)
def test_a_prompt_file_holds_its_marks_and_no_other_brace(script: str) -> None:
    text = prompt_of(script)
    assert set(re.findall(r"\{(\w+)\}", text)) == MARKS[script]
    assert not set("{}") & set(re.sub(r"\{\w+\}", "", text))


@pytest.mark.parametrize("script", [REWRITE, MODERATE, CHECK])
def test_a_text_to_be_judged_stands_between_its_fences(script: str) -> None:
    lines = prompt_of(script).splitlines()
    for mark in MARKS[script] - {"number", "mark", "categories", "classes"}:
        at = lines.index(f"{{{mark}}}")
        assert lines[at - 1].startswith("----- {mark}")
        assert lines[at + 1].startswith("----- {mark}")


@pytest.mark.parametrize("script", [MODERATE, CHECK])
def test_a_judge_explains_first_and_then_chooses(script: str) -> None:
    last = prompt_of(script).strip().splitlines()[-1]
    assert "explain" in last and "choice" in last and "[[" in last, last
    assert last.index("explain") < last.index("choice") < last.index("[[")


def test_the_moderator_is_given_the_ten_categories_and_none() -> None:
    assert "{categories}" in prompt_of(MODERATE).splitlines()
    numbered = re.findall(r"^(\d+)\. ([a-z -]+?)(?::|\.$)", category_list(), re.MULTILINE)
    assert [int(number) for number, _ in numbered] == list(range(1, 12))
    assert {name for _, name in numbered} == {*CATEGORY_NAMES, "none"}
    choices = category_choices(numbered=True)
    for (number, name), choice in zip(numbered, choices, strict=True):
        assert choice.number == int(number)
        assert name in (choice.name, *choice.aliases)
    assert not any(choice.number for choice in category_choices(numbered=False))


FORBIDDEN = re.compile(
    r"\b(?:(?:il)?legal\w*|(?:un)?ethic\w*|safe\w*|harm\w*|malicious\w*|responsib\w*|consent\w*"
    r"|however|but|without actually|fiction\w*|theor\w*|hypothe\w*|imagine|pretend)\b",
    re.IGNORECASE,
)


def test_the_five_examples_of_a_rewrite_keep_the_rules_themselves() -> None:
    pairs = re.findall(r"^Seed: (.+)\n(\[\[.+\]\])$", prompt_of(REWRITE), re.MULTILINE)
    assert len(pairs) == 5
    for seed, example in pairs:
        (rewrite,) = brackets.items(example)
        assert not FORBIDDEN.search(rewrite), rewrite
        assert brackets.same(rewrite) != brackets.same(seed)


def test_the_makefile_takes_this_python_and_turns_an_older_one_down() -> None:
    """A fresh clone is set up by this line; with a .venv from before it is never run."""
    (line,) = re.findall(
        r"^\t\$\(PYTHON\) -c '(.*)'$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    for version, status in (("(3, 11, 0)", 0), ("(3, 14, 0)", 0), ("(3, 10, 9)", 1)):
        program = line.replace("sys.version_info", version)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert done.returncode == status
