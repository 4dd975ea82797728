"""Result files through plot_results.py into rates, comparisons and tables."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from orbench.report.measures import RefusedBy
from tests.conftest import ALIGN, CHECK, ROOT, SHARED_DATA, Desk, Done, error_line, read_csv
from tests.results import ANSWER, DIRECT, INDIRECT, written
from tests.server import answer, by_number

PLOT = "response_checker/plot_results.py"

Row = dict[str, str]


def judged(
    desk: Desk, name: str, verdicts: list[str], model: str = "maker/a", /, **about: Any
) -> Path:
    """Stage 5's file, see `written`."""
    return written(desk.folder, name, verdicts, model, **about)


def report(desk: Desk, *flags: str | Path) -> Done:
    done = desk.run(PLOT, *flags, *(() if "--html" in flags else ("--table",)))
    assert done.stdout == "results/results.csv\n"
    return done


def table(desk: Desk, name: str = "results", **wanted: str) -> list[Row]:
    """The rows of a table with these cells."""
    rows = desk.rows(f"results/{name}.csv")
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def overall(desk: Desk, **wanted: str) -> Row:
    (row,) = table(desk, subset="overall", counted="refused", **wanted)
    return row


def percents(row: Row, *names: str) -> list[float]:
    return [round(float(row[f"{name}_percent"]), 2) for name in names]


def markdown(desk: Desk) -> str:
    return desk.text("results/results.md").replace("\\", "")


# -- rates -------------------------------------------------------------------------------------


def test_rates_stand_overall_and_by_category_with_intervals(desk: Desk) -> None:
    safe = judged(desk, "s.csv", [DIRECT] * 10 + [INDIRECT] * 5 + [ANSWER] * 85)
    report(desk, "--over_refusal", safe, "--toxic", judged(desk, "t.csv", [DIRECT] * 9 + [ANSWER]))
    row = overall(desk, side="over_refusal")
    assert percents(row, "rate", "low", "high", "low_all") == [15, 9.31, 23.28, 9.31]  # Wilson's
    assert percents(row, "direct", "indirect") == [10, 5]
    assert row.items() >= {"model": "maker/a", "n": "100", "judge": "gpt4", "notes": ""}.items()
    categories = table(desk, subset="category")
    shown = [f"{row['value']} {row['rate_percent']} {row['n']}" for row in categories]
    assert shown == ["a 16 50", "b 14 50", "a 100 5", "b 80 5"]
    assert table(desk, side="toxic", value="a")[0]["notes"] == "fewer than 30 prompts"


def test_what_the_stages_saw_is_in_the_table(desk: Desk) -> None:
    """Cut off, refused by the API, answered by another model, lost: through stages 4 and 5."""
    replies = {n: answer("I fold it.", "length") for n in range(3)}
    replies |= {n: answer(None, "content_filter") for n in (3, 4)}
    replies |= {6: answer(None, "refusal"), 7: answer(None, "guardrail_intervened")}
    replies |= {8: answer("I can't help with that."), 9: answer(None, refusal="No.")}
    other = answer("I fold it.")
    replies[10] = other._replace(body=str(other.body).replace("loopback-1", "claude-2"))
    desk.prompts(20)
    desk.serve(by_number(replies | {5: answer("<think>Well", "length")}))
    desk.stage(ALIGN, "--max_tokens=9", "--substituted=as_answer", status=3)
    done = desk.run(CHECK, "--check_model=rules", "--input_file=o.csv", status=3)
    for name in ("o.csv", done.stdout.strip()):
        stderr = report(desk, "--over_refusal", name).stderr
        row = overall(desk)
        assert (row["n"], row["unscored"], row["prompts"]) == ("19", "1", "p"), row
        assert percents(row, "rate", "cut_off") == [31.58, 15.79]
        by = Counter(response["refused_by"] for response in desk.rows(name))
        assert by == {"": 13, "model": 1, "model_api": 2, "filter": 2, "gateway": 1}
        for who in RefusedBy._fields:
            assert percents(row, f"by_{who}") == [round(100 * by[who] / 19, 2)], who
        assert "cut off 15.8 %" in row["notes"] and "cut off 15.8 %" in stderr
        assert "served by a different model: 1 row" in row["notes"]


# -- comparisons -------------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no shared data")
def test_the_published_rates_are_those_that_were_published(desk: Desk) -> None:
    report(desk, "--with_published")
    assert table(desk) == []
    rates = {r["model"]: percents(r, "over_refusal", "toxic") for r in table(desk, "leaderboard")}
    rows = read_csv(SHARED_DATA / "published_overall_rates.csv")
    names = ("over_refusal_rate", "toxic_rejection_rate")
    assert rates == {row["model"]: [float(row[name]) for name in names] for row in rows}


# -- what is given -----------------------------------------------------------------------------


def test_a_wrong_command_line_is_told_and_tables_need_no_matplotlib(desk: Desk) -> None:
    assert "'gif'" in desk.run(PLOT, "--with_published", "--formats=gif", status=2).stderr
    assert "file's name is empty" in error_line(desk.run(PLOT, "--toxic", "m=", status=1))
    judged(desk, "s.csv", [DIRECT])
    code = "import runpy, sys; sys.modules['matplotlib'] = None; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    line = f'{sys.executable} -c "{code}" {ROOT / PLOT} --over_refusal s.csv --table --html'
    assert desk.shell(line).stdout == "results/results.csv\n"
