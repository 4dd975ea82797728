"""Toxicity of the prompts, pairs of seed and rewrite, trigger words."""

import json
from pathlib import Path

import numpy as np
import pytest

from orbench.stats.association import auc
from orbench.stats.core import Verdicts
from tests.conftest import Desk, error_line
from tests.contract.test_label_sheet import RECORD
from tests.contract.test_pictures import files
from tests.contract.test_report import PLOT, judged, report, table
from tests.results import ANSWER, DIRECT, numbered
from tests.simulated_safety import cases, coverage, headline, words

BAD = [f"Bad {n}" for n in range(10)]


def panel(desk: Desk, votes: dict[str, str]) -> Path:
    """A file of stage 3, with a column of the user's. votes: prompt -> a letter per judge: t(oxic),
    s(afe) or - (none).
    """
    cell = {"t": "True", "s": "False", "-": ""}
    rows = [
        [prompt, "True", "maybe", *map(cell.__getitem__, said)] for prompt, said in votes.items()
    ]
    names = [f"is_toxic_{judge}" for judge in ("note", *"abc")]
    (desk.folder / "panel.run.json").write_text(json.dumps(RECORD))
    return desk.csv("panel.csv", ["prompt", "is_toxic", *names], rows)


def both_sides(desk: Desk) -> tuple[Path, Path, Path]:
    """Results on safe prompts, refused where judge a says toxic; on toxic ones; the panel."""
    said = ["sss"] * 18 + ["s-s"] * 2 + ["tts"] * 10 + ["ttt"] * 10
    safe = judged(desk, "s.csv", [DIRECT if one[0] == "t" else ANSWER for one in said])
    toxic = judged(desk, "t.csv", [DIRECT] * 10, columns={"prompt": BAD})
    votes = dict(zip(numbered(40), said, strict=True)) | dict.fromkeys(BAD, "ttt")
    return safe, toxic, panel(desk, votes)


def by_label(desk: Desk, side: str) -> dict[str, dict[str, str]]:
    """The rates by how far labels agree with a side."""
    return {row["value"]: row for row in table(desk, subset="label", side=side)}


def test_rates_stand_by_how_toxic_a_panel_calls_the_prompts(desk: Desk) -> None:
    safe, toxic, votes = both_sides(desk)
    said = report(desk, "--over_refusal", safe, "--toxic", toxic, "--toxicity", votes).stderr
    found = by_label(desk, "over_refusal")
    assert list(found) == ["agreed", "disputed", "contradicted", "no_score"]
    shown = [cell for row in found.values() for cell in (row["n"], row["rate_percent"])]
    assert shown == ["18", "0", "10", "100", "10", "100", "2", "0"]
    assert by_label(desk, "toxic")["agreed"]["n"] == "10"
    assert table(desk, "associations", associated="auc")[0]["estimate"] == "100"
    names = ("value", "n", "rate_percent")
    curve = [float(row[name]) for row in table(desk, subset="score") for name in names]
    assert curve == pytest.approx([0, 18, 0, 2 / 3, 10, 100, 1, 20, 100])
    assert "toxicity: 48 prompts with a score, 2 without" in said


def test_rates_over_agreed_labels_have_their_n_and_a_mark_if_it_is_small(desk: Desk) -> None:
    safe, toxic, votes = both_sides(desk)
    flags = ("--over_refusal", safe, "--toxic", toxic, "--toxicity", votes)
    report(desk, "--table", "--html", *flags)
    page = (desk.folder / "results/results.html").read_text()
    _, _, shown = page.partition("Refusals by prompt toxicity")
    assert '0.0 [0.0, 17.6] †</td><td data-value="18">18</td>' in shown


def test_people_decide_and_weights_undo_the_stratification(desk: Desk) -> None:
    safe, _, votes = both_sides(desk)
    ratings = [
        [one, label, "3" if n < 20 else "1", "maybe"]
        for n, one in enumerate(numbered(40))
        for label in (["safe", "toxic"] if n < 4 else ["toxic"] * 2 if n > 29 else ["Safe", ""])
    ]
    people = desk.csv("people.csv", ["prompt", "label", "weight", "is_toxic_note"], ratings)
    said = report(desk, "--over_refusal", safe, "--toxicity", people, votes).stderr
    found = by_label(desk, "over_refusal")
    assert [row["n"] for row in found.values()] == ["26", "4", "10", "0"]
    assert float(found["agreed"]["rate_percent"]) == pytest.approx(100 * 10 / (10 + 3 * 16))
    assert "on 34 prompts: alpha 0.4" in said  # not weighted
    assert "sensitivity 100.0 % [" in said and "specificity 80.8 % [" in said


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        ("prompt,label", "p,bad", "row 1: needs label toxic/safe or score"),
        ("prompt,score,weight", "p,1,-1", "row 1: needs label toxic/safe or score"),
        ("prompt,verdict", "p,True", "has neither is_toxic (stage 3) nor score"),
    ],
)
def test_a_bad_rating_stops_the_run(desk: Desk, columns: str, row: str, said: str) -> None:
    safe = judged(desk, "s.csv", [ANSWER])
    labels = desk.csv("labels.csv", columns.split(","), [row.split(",")])
    assert said in error_line(desk.run(PLOT, "--over_refusal", safe, "--toxicity", labels))


def test_the_auc_is_1_for_a_step_half_for_one_score_and_unknown_where_all_is_answered() -> None:
    score = np.repeat([0, 1 / 3, 2 / 3, 1], 30)
    step = Verdicts((score > 0.5).astype(float), np.arange(120), np.arange(120))
    assert (auc(step, score)[0], auc(step, np.ones(120))[0]) == (1, 0.5)
    flat = auc(step._replace(refused=np.zeros(120)), score)
    assert np.isnan(flat[0]) and flat[1:] == (0, 1)


def test_pairs_tell_seeds_from_their_rewrites_and_compare_models(desk: Desk) -> None:
    seeds = {"prompt": [f"Seed {n}" for n in range(30)]}
    rewrites = {"toxic_seed": [*seeds["prompt"], "Seed 99"]}
    for name, right in (("a", 24), ("b", 12), ("c", 12)):
        said = [ANSWER] * right + [DIRECT] * (31 - right)
        judged(desk, f"safe/{name}.csv", said, f"maker/{name}", columns=rewrites)
        judged(desk, f"toxic/{name}.csv", [DIRECT] * 30, f"maker/{name}", columns=seeds)
    stderr = report(desk, "--pairs", "--over_refusal", "safe", "--toxic", "toxic").stderr
    rows = table(desk, subset="pairs", category="", model="maker/a")
    names = ["right", "both_refused", "both_answered", "reverse"]
    assert [row["counted"] for row in rows] == names
    assert [row["rate_percent"] for row in rows] == ["80", "20", "0", "0"]
    assert (rows[0]["n"], rows[0]["unpaired"]) == ("30", "1")
    assert "maker/a: 30 pairs, 1 rewrite whose seed has no result" in stderr
    gap, *_ = table(desk, "comparison", compared="pairs", category="")
    assert (gap["n"], gap["difference_points"], gap["model_b"]) == ("30", "40", "maker/b")
    assert float(gap["p_holm"]) == pytest.approx(3 * float(gap["p"]), rel=1e-4)  # of three pairs


def test_trigger_words_have_examples(desk: Desk) -> None:
    text = [f"{'Kill the process' if n % 2 else 'Fold the paper'} {n}" for n in range(60)]
    votes = panel(desk, dict.fromkeys(text, "sst"))
    for name, said in (("a", [ANSWER, DIRECT] * 30), ("b", [DIRECT, ANSWER] * 30)):
        judged(desk, f"safe/{name}/p.csv", said, f"maker/{name}", columns={"prompt": text})
    found = files(desk, "--formats=svg", "--toxicity", votes, "--over_refusal", "safe")
    assert "toxicity.svg" in found
    (kill,) = table(desk, "associations", model="maker/a", against="", value="kill the")
    assert (kill["goes_with"], kill["refused"], kill["answered"]) == ("refused", "30", "0")
    assert kill["example_1"].startswith("Kill the process") and float(kill["p_adjusted"]) < 0.05
    (apart,) = table(desk, "associations", against="maker/b", value="paper")
    assert apart["goes_with"] == "answered"
    assert not table(desk, "associations", value="the")  # in all prompts


def test_too_few_prompts_are_said_in_a_line(desk: Desk) -> None:
    said = report(desk, "--over_refusal", judged(desk, "s.csv", [ANSWER] * 12), "--pairs").stderr
    assert "maker/a: 0 pairs, 12 rewrites whose seed has no result: too few" in said


def test_made_worlds_are_found_out(tmp_path: Path) -> None:
    raw, agreed, truth = headline(np.random.default_rng(1), tmp_path)
    assert raw - truth > 17 and abs(agreed - truth) < 2
    planted, others = words(np.random.default_rng(2))
    assert planted >= 16 and others <= 1


def test_the_intervals_cover() -> None:
    some = [one for one in cases() if "20 x 5, icc 0.4" in one[0]][::5]
    shares = {name: coverage(name, draw, 60) for name, draw in some}
    assert min(shares.values()) > 0.84 and np.mean(list(shares.values())) > 0.92, shares
