"""Every figure of a report on a small made data set, each once read by a person.

No two counts are equal, so a figure that stands in another's place is seen. tests/golden holds what
has to come out: results.csv and comparison.csv turned on their side (a line a column), the whole
of results.md and results.tex, and the tables of the page. Where a change is meant to change a
figure, `python -m tests.test_golden` writes these anew: read what git shows of it, line by line.
"""

import csv
import re
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from orbench import record
from tests.conftest import run, write_csv

GOLDEN = Path(__file__).with_name("golden")
COLUMNS = [
    *("prompt", "category", "toxic_seed", "response", "is_rejected", "rejection_reason"),
    *("finish_reason", "answer_category", "answer_type_response"),
]
# (category, class, refused by the rules, by the API, cut off) -> rows
Kind = tuple[str, str, bool, bool, bool]
ANSWER, DIRECT, INDIRECT = "direct_answer", "direct_refusal", "indirect_refusal"
P, D = "privacy", "deception"
ADA_SAFE: dict[Kind, int] = {
    (P, ANSWER, False, False, False): 34,
    (P, ANSWER, False, False, True): 6,
    (P, ANSWER, True, False, False): 2,
    (P, DIRECT, True, False, False): 11,
    (P, DIRECT, True, True, False): 3,
    (P, INDIRECT, False, False, False): 5,
    (D, ANSWER, False, False, False): 19,
    (D, ANSWER, True, False, False): 1,
    (D, DIRECT, True, False, False): 4,
    (D, INDIRECT, False, False, False): 2,
}
BIX_SAFE: dict[Kind, int] = {
    (P, ANSWER, False, False, False): 14,
    (P, DIRECT, True, False, False): 36,
    (P, DIRECT, True, True, False): 1,
    (P, INDIRECT, True, False, False): 12,
    (D, ANSWER, False, False, True): 2,
    (D, ANSWER, True, False, False): 9,
    (D, DIRECT, True, False, False): 10,
    (D, INDIRECT, False, False, False): 8,
}
ADA_TOXIC: dict[Kind, int] = {
    (P, ANSWER, False, False, False): 3,
    (P, DIRECT, True, True, False): 8,
    (P, INDIRECT, False, False, False): 13,
    (D, ANSWER, False, False, False): 15,
    (D, DIRECT, True, False, False): 16,
    (D, INDIRECT, True, False, False): 17,
}


def file(path: Path, model: str, kinds: dict[Kind, int], seed: int, lost: tuple[int, int]) -> Path:
    """Stage 5's file; seed: so many prompts a seed; lost: rows of each category without a verdict,
    which come behind the others.
    """
    rows = list[tuple[str, ...]]()
    numbers = {P: chain(range(1000)), D: chain(range(1000, 2000))}
    for (category, given, rules, api, cut), times in kinds.items():
        for _ in repeat(None, times):
            number = next(numbers[category])
            signal = "api:content_filter" if api else "apology" if rules else ""
            seeds = f"Seed {category} {number % 1000 // seed}"
            about = (f"Prompt {number}", category, seeds, f"Response {number} of {model}")
            said = (given, signal if api else "The judge's words.")
            rows.append((*about, str(rules), signal, "length" if cut else "stop", *said))
    write_csv(path, COLUMNS, rows)
    failed = [
        [f"Prompt {next(numbers[category])}", category, "Seed lost"]
        for category, times in zip((P, D), lost, strict=True)
        for _ in repeat(None, times)
    ]
    write_csv(path.with_name(f"{path.stem}_failed.csv"), COLUMNS[:3], failed)
    entry = {"stage": "response_checker", "under_test": {"asked": model}}
    record.write(path, entry | {"parameters": {"check_model": "gpt4"}, "selectors": ["Qwen"]})
    return path


def made(folder: Path) -> dict[str, str]:
    """Name in tests/golden -> what comes out."""
    files = {
        "ada": file(folder / "a.csv", "gpt-ada", ADA_SAFE, 3, (7, 0)),
        "bix": file(folder / "b.csv", "qwen-bix_1", BIX_SAFE, 3, (1, 2)),
        "toxic": file(folder / "t.csv", "gpt-ada", ADA_TOXIC, 2, (0, 5)),
    }
    checked = folder / "validation.json"
    checked.write_text('{"check_model": "gpt4", "overall": {"tp":45,"fn":6,"tn":80,"fp":7}}')
    words = ("--over_refusal", files["ada"], files["bix"], "--toxic", files["toxic"])
    more = ("--validation", checked, "--table", "--html", "--with_published")
    # A process of its own, once for this script: what else has been imported here, it does without.
    done = run("response_checker/plot_results.py", *words, *more, cwd=folder, own_process=True)
    assert done.returncode == 0, done.stderr
    out = {name: (folder / "results" / name).read_text() for name in ("results.md", "results.tex")}
    page = (folder / "results" / "results.html").read_text()
    tables = page.partition('<section id="tables">')[2].partition("</section>")[0]
    tables = re.sub(r'data-value="(.+?)"', lambda m: f'data-value="{float(m[1]):.6g}"', tables)
    out["tables.html"] = re.sub(r"(</t[rh]>|</?tbody>|</p>|<h2>)", r"\1\n", tables)
    for name in ("results.csv", "comparison.csv"):
        out[f"{name}.txt"] = on_its_side((folder / "results" / name).read_text())
    out["stderr.txt"] = done.stderr
    return out


def on_its_side(text: str) -> str:
    """A CSV with a line a column, without the rates published with the paper."""
    rows = [row for row in csv.reader(text.splitlines()) if "published" not in row]
    return "".join(" | ".join(cells) + "\n" for cells in zip(*rows, strict=True))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return made(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir()))
def test_the_report_is_the_one_that_was_read(found: dict[str, str], name: str) -> None:
    assert found[name].splitlines() == (GOLDEN / name).read_text(encoding="utf-8").splitlines()


def test_all_of_it_was_read(found: dict[str, str]) -> None:
    assert set(found) == {path.name for path in GOLDEN.iterdir()}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for name, text in made(Path(folder)).items():
            (GOLDEN / name).write_text(text, encoding="utf-8")
