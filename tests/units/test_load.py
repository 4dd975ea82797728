"""Result files of stages 4 and 5, with failed rows and run records, as results."""

import json
import os
import tomllib
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbench.base.messages import UserError
from orbench.base.prompts import prompt_id, prompt_set_hash
from orbench.base.tables import sha256_of
from orbench.report.load import load_results, sources_of
from orbench.report.results import SAFE, UNCORRECTED, Result, Source, Text
from tests.conftest import write_csv
from tests.results import ANSWER, DIRECT, loaded, lost, numbered, record_output, written

STAGE_4 = "prompt,is_rejected\nfold a bird?,True\nfold a hat?,False\n"
STAGE_5 = "prompt,answer_category\nfold a bird?,direct_refusal\nfold a hat?,direct_answer\n"
TESTED: dict[str, Any] = {"under_test": {"asked": "m"}}
CASES = tomllib.loads(Path(__file__).with_name("records.toml").read_text(encoding="utf-8"))


def put(path: Path, text: str = STAGE_4, **record: Any) -> Path:
    """A result file, with a record if it has entries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if record:
        path.with_suffix(".run.json").write_text(json.dumps(record))
    if "output" not in record:
        record_output(path)
    return path


def one(path: Path) -> Result:
    """The only result in a file of safe prompts."""
    (result,) = loaded(path)
    return result


def of_record(folder: Path, text: str = STAGE_4, **record: Any) -> Result:
    """The result of a small file with a run record."""
    return one(put(folder / "r.csv", text, **TESTED | record))


def of_columns(folder: Path, name: str = "s", **columns: list[str]) -> Result:
    """The result of a file of direct refusals with these columns."""
    (*_, values) = columns.values()
    return one(written(folder, f"{name}.csv", [DIRECT] * len(values), name, columns=columns))


# -- what the user named ---------------------------------------------------------------------------


def test_a_file_may_have_a_model_in_front_unless_it_is_the_name_of_a_file(tmp_path: Path) -> None:
    equals = put(tmp_path / "x=y.csv")
    assert sources_of(str(equals), "toxic") == [Source(equals, "", "toxic")]
    named = Source(Path(f"a={equals}"), "my model", "toxic")
    assert sources_of(f" my\tmodel =a={equals}", "toxic") == [named]
    assert sources_of("m=r.csv", SAFE.name) == [Source(Path("r.csv"), "m", SAFE.name)]
    for empty in ("", "m="):
        with pytest.raises(UserError, match="file's name is empty"):
            sources_of(empty, "toxic")


def test_a_folder_stands_for_its_csvs_the_oldest_first_without_failed_rows(tmp_path: Path) -> None:
    for age, name in enumerate(("deep/er/c.csv", "a.csv", "b.csv", "b_failed.csv", "n.txt")):
        os.utime(put(tmp_path / name), (age, age))
    found = sources_of(f"m={tmp_path}", "toxic")
    assert [f"{one.model} {one.path.name}" for one in found] == ["m c.csv", "m a.csv", "m b.csv"]


# -- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["row"], ids=str)
def test_a_row_becomes_a_response(tmp_path: Path, case: dict[str, Any]) -> None:
    usual = {"prompt": "Fold?", "response": "No.", "answer_category": DIRECT, "category": "a"}
    row = usual | case["cells"]
    write_csv(tmp_path / "r.csv", list(row), [list(row.values())])
    tested = {"under_test": {"asked": "a", "id": "gpt-4o"}}
    (tmp_path / "r.run.json").write_text(json.dumps(tested))
    responses = one(tmp_path / "r.csv").responses
    assert {name: getattr(responses, name)[0] for name in case["wanted"]} == case["wanted"]


def test_what_a_file_does_not_say_is_not_known(tmp_path: Path) -> None:
    by_rules = of_record(tmp_path).responses
    assert np.isnan([by_rules.direct, by_rules.indirect, by_rules.cut_off]).all()
    assert list(by_rules.refused) == [1, 0] and list(by_rules.tier) == ["", ""]
    by_judge = of_record(tmp_path, STAGE_5).responses
    assert list(by_judge.direct) == [1, 0] and list(by_judge.graded) == ["", ""]


def test_failed_rows_are_unscored_and_count_among_the_prompts(tmp_path: Path) -> None:
    path = written(tmp_path, "s.csv", [DIRECT, ANSWER])
    lost(path, ["Lost", "Prompt 1 again"], error_type="judge_refused")
    result = one(path)
    assert list(result.responses.scored) == [True, True, False, False]
    assert list(result.responses.judge_refused) == [False, False, True, True]
    assert result.unscored_known
    texts = [*numbered(2), "Lost", "Prompt 1 again"]
    assert result.prompt_set == prompt_set_hash(map(prompt_id, texts))


def test_prompts_and_seeds_have_the_same_numbers_in_all_files(tmp_path: Path) -> None:
    a = put(tmp_path / "a.csv", "prompt,toxic_seed,is_rejected\nP,S,True\nQ,S,True\nR,,True\n")
    b = put(tmp_path / "b.csv", "prompt,seed_id,is_rejected\nr,,True\nq,7,True\nX,7,False\n")
    results, prompts = load_results([Source(a, "a", SAFE.name), Source(b, "b", SAFE.name)])
    assert [list(one.responses.prompt) for one in results] == [[0, 1, 2], [2, 1, 3]]
    (p, q, r), (again, *others) = (list(one.responses.seed) for one in results)
    assert p == q and r == again and len({p, r, *others}) == 3
    assert list(prompts.values()) == ["P", "Q", "R", "X"]
    assert list(prompts)[3] == prompt_id("X")


def test_a_merged_file_is_a_result_on_each_side(tmp_path: Path) -> None:
    columns = {"is_toxic": ["True", "FALSE", "true"]}
    path = written(tmp_path, "m.csv", [DIRECT, ANSWER, ANSWER], columns=columns)
    lost(path, ["Lost"], is_toxic="False")
    results, _ = load_results([Source(path, "", "merged")], texts=True)
    shown = [
        f"{one.side.name} {one.responses.scored.sum()} of {len(one.responses.prompt)}, "
        f"{len(one.texts)} {one.responses_hash > ''}"
        for one in results
    ]
    assert shown == ["toxic 2 of 2, 2 True", "over_refusal 1 of 2, 1 False"]


def test_a_prompt_on_both_sides_stops_the_report(tmp_path: Path) -> None:
    safe = written(tmp_path, "s.csv", [DIRECT] * 2)
    toxic = written(tmp_path, "x.csv", [DIRECT], "b")
    with pytest.raises(
        UserError, match=r"s.csv, row 1, and .*x.csv, row 1: one prompt on both sides; "
    ):
        loaded(safe, toxic=(toxic,))


def test_texts_for_the_page_are_those_with_a_verdict(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{name}.csv", [DIRECT] * 9, name) for name in "ab"]
    lost(paths[0], ["Lost"])
    a, b = loaded(*paths, texts=True)
    assert a.texts[0] == Text("a", DIRECT, 0, "Prompt 0", "Response 0 of a", 0, "because")
    assert [text.prompt for text in a.texts] == [text.prompt for text in b.texts] == [*range(9)]
    assert one(paths[0]).texts == []


ALIKE = [f"How do I fold a paper bird with wings in number {n}?" for n in range(10)]
APART = [f"{prompt_id(str(n))} {prompt_id(f'b{n}')}" for n in range(150)]


@pytest.mark.parametrize(
    ("prompts", "found"),
    [
        ([*APART[:19], f"{APART[18]} x"] * 2, []),  # one of twenty
        ([*APART[:18], f"{APART[17]} x", "Fold?"], ["1 of the first 19"]),
        ([one[-20:] for one in ALIKE], ["9 of the first 10"]),
        ([one[-19:] for one in ALIKE], []),  # short ones are easily alike
        ([*APART[:140], *ALIKE], ["9 of the first 150"]),
        ([*APART, *ALIKE], []),
    ],
)
def test_prompts_that_look_like_rewrites_are_counted(
    tmp_path: Path, prompts: list[str], found: list[str]
) -> None:
    notes = of_columns(tmp_path, prompt=prompts).notes
    assert [note.partition(" prompts without a seed look")[0] for note in notes] == found
    seeds = ["known"] * len(prompts)
    assert of_columns(tmp_path, prompt=prompts, toxic_seed=seeds).notes == ()


# -- what a run record says ------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["case"], ids=str)
def test_a_run_record_gives_a_result_its_fields(tmp_path: Path, case: dict[str, Any]) -> None:
    found = of_record(tmp_path, STAGE_4 if "stage" in case else STAGE_5, **case["record"])
    fields = {name: getattr(found, name) for name in case["wanted"]}
    shown = {name: list(one) if isinstance(one, tuple) else one for name, one in fields.items()}
    assert shown == case["wanted"]


def test_a_model_that_the_user_names_gives_the_family_if_the_record_has_none(
    tmp_path: Path,
) -> None:
    path = put(tmp_path / "r.csv", under_test={"asked": "m", "settings": "low"})
    (given,) = loaded(f"claude={path}")
    assert (given.label, given.family) == ("claude (m) (low)", "Claude")
    assert np.isnan(given.certain)


def test_a_file_that_was_not_edited_needs_no_caution(tmp_path: Path) -> None:
    hashes = {"csv": sha256_of(put(tmp_path / "r.csv")), "failed": ""}
    assert of_record(tmp_path, output=hashes).cautions == ()
    lost(tmp_path / "r.csv", ["Lost"])
    assert of_record(tmp_path, output=hashes).cautions == ("edited since its stage wrote it",)


def test_a_record_that_does_not_say_what_was_written_hides_no_edit(tmp_path: Path) -> None:
    found = of_record(tmp_path, output={})
    assert found.cautions == ("edited since its stage wrote it",)
    assert not found.unscored_known


def test_without_a_record_much_is_unknown_but_the_rows_in_the_failed_file(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv")
    (found,) = loaded(f"m={path}")
    note = "no run record: settings, date and unscored rows are unknown"
    assert (found.against, found.notes) == (["unknown judge"], (note,))
    assert not found.unscored_known
    lost(path, ["Lost"])
    assert of_record(tmp_path, output={"failed": "0"}).unscored_known


def test_several_models_that_answered_are_told_the_most_frequent_first(tmp_path: Path) -> None:
    tested = {"under_test": {"asked": "a", "id": "gpt-4o"}}
    found = []
    for served in (
        ["gpt-5 via x", "o1", "gpt-5", ""],
        ["gpt-4o-2024-08-06"] * 4,
        ["my-deployment"] * 4,
    ):
        columns = {"served_by": served}
        result = one(written(tmp_path, "s.csv", [DIRECT] * 4, columns=columns, **tested))
        found.append(f"{result.ids} {result.cautions}")
    # Where another one answered, the one asked counts, too.
    assert found[0] == "gpt-4o gpt-5 o1 ('answered by gpt-5 (2 rows), o1 (1 row)',)"
    assert found[1:] == ["gpt-4o-2024-08-06 ()", "my-deployment ()"]


@pytest.mark.parametrize("side", ["over_refusal", "", "toxic"])
def test_the_rate_by_peoples_labels_is_that_of_the_side(tmp_path: Path, side: str) -> None:
    path = put(tmp_path / "r.csv", **TESTED)
    about = {"made_for": {"csv": sha256_of(path)}, "corrected": {side: [0.2, 0.1, 0.3], "x": None}}
    path.with_suffix(".validation.json").write_text(json.dumps(about))
    assert one(path).corrected == (UNCORRECTED if side == "toxic" else (0.2, (0.1, 0.3)))
    assert one(path).cautions == ()
    other = "the validation beside it is damaged or was made for other results, and is not used"
    rates = [1, [0.1, 0.05], [0.2, 0.1, "x"], [0.2, None, 0.3], [0.2, 0.3, 0.4]]
    wrong: list[Any] = [{"corrected": {side: rate}} for rate in rates]
    for change in ({"made_for": {}}, {"corrected": 1}, *wrong):
        path.with_suffix(".validation.json").write_text(json.dumps(about | change))
        assert (one(path).cautions, one(path).corrected) == ((other,), UNCORRECTED)


@pytest.mark.parametrize(
    ("columns", "validation", "people"),
    [
        ({}, {}, [1, 0, nan]),
        ({"weight": ["1"] * 3}, {}, [nan] * 3),
        ({}, {"corrected": {"": None}}, [nan] * 3),  # drawn unevenly
        ({}, {"made_for": {}}, [nan] * 3),
    ],
)
def test_labels_that_correct_a_rate_without_weights_are_read(
    tmp_path: Path, columns: dict[str, Any], validation: dict[str, Any], people: list[float]
) -> None:
    columns = {"human": ["refusal", "compliance", ""]} | columns
    path = written(tmp_path, "s.csv", [DIRECT] * 3, columns=columns)
    about = {"made_for": {"csv": sha256_of(path)}, "column": "human", "corrected": {"": [1, 0, 1]}}
    path.with_suffix(".validation.json").write_text(json.dumps(about | validation))
    assert one(path).responses.people == pytest.approx(people, nan_ok=True)


@pytest.mark.parametrize(
    ("responses", "doubt"),
    [
        (["", " nan ", "Fold"], "2 of 3 responses are empty"),
        (["", "Fold", "", "Fold"], ""),
        (["", "", "API", "Fold", "Fold"], ""),
        (["", "", "API", "API", "Fold"], "2 of 3 responses are empty"),
    ],
)
def test_mostly_empty_responses_are_a_doubt(
    tmp_path: Path, responses: list[str], doubt: str
) -> None:
    reasons = ["api:refusal" if text == "API" else "because" for text in responses]
    found = of_columns(tmp_path, response=responses, answer_type_response=reasons)
    assert found.doubt == doubt


# -- together --------------------------------------------------------------------------------------


def test_the_hash_of_responses_is_that_of_copies_and_empty_if_all_are_alike(tmp_path: Path) -> None:
    p, q = numbered(2)
    a = of_columns(tmp_path, "a", prompt=[p, q], response=[" Fold ", "Cut"])
    copy = of_columns(tmp_path, "b", prompt=[q, p], response=["Cut", "Fold"])
    other = of_columns(tmp_path, "c", prompt=["x", "y"], response=["Fold", "Cut"])
    assert a.responses_hash == copy.responses_hash
    assert len({"", a.responses_hash, other.responses_hash}) == 3
    alike = written(tmp_path, "d.csv", [DIRECT] * 2, columns={"response": ["No."] * 2})
    lost(alike, ["Lost"], response="Else")
    assert one(alike).responses_hash == ""


@pytest.mark.parametrize("other", ["copy.csv", "a.csv"])
def test_a_result_given_twice_stops_the_report(
    tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "copy.csv"):
        written(tmp_path, name, [DIRECT, ANSWER], "a")
    with pytest.raises(UserError, match=f"a.csv and {other}: the same model, prompts and judge"):
        loaded("a.csv", other)
    _, second = loaded("a.csv", f"M={other}")
    assert second.unranked[0].startswith("the same responses as a throughout, a copy")
    assert load_results([])[0] == []


def test_with_a_record_a_column_of_models_came_with_the_prompts(tmp_path: Path) -> None:
    assert of_record(tmp_path, "prompt,model,is_rejected\nP,a,True\nQ,b,True\n").model == "m"
