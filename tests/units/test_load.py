"""Result files of stages 4 and 5, with failed rows and run records, as results."""

import json
import os
import tomllib
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbench.base.messages import UserError
from orbench.base.prompts import prompt_id, prompt_set_hash
from orbench.base.tables import sha256_of
from orbench.report.load import BASELINE, Source, load_results, sources_of
from orbench.report.results import SAFE, TOXIC, Lookalikes, Result
from tests.conftest import write_csv
from tests.results import ANSWER, DIRECT, loaded, lost, numbered, written

STAGE_4 = "prompt,is_rejected\nfold a bird?,True\nfold a hat?,False\n"
STAGE_5 = "prompt,answer_category\nfold a bird?,direct_refusal\nfold a hat?,direct_answer\n"
Record = dict[str, Any]
CASES = tomllib.loads(Path(__file__).with_name("records.toml").read_text(encoding="utf-8"))


def put(path: Path, text: str = STAGE_4, record: Record | None = None) -> Path:
    """A result file with its record, if it has one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if record is not None:
        path.with_suffix(".run.json").write_text(json.dumps(record))
    return path


def one(path: Path) -> Result:
    """The only result in a file of safe prompts."""
    (result,) = loaded(path)
    return result


def of_record(folder: Path, record: Record, text: str = STAGE_4) -> Result:
    """The result of a small file with a run record."""
    return one(put(folder / "r.csv", text, record))


# -- what the user named ---------------------------------------------------------------------------


def test_a_file_may_have_a_model_in_front_unless_it_is_the_name_of_a_file(tmp_path: Path) -> None:
    equals = put(tmp_path / "x=y.csv")
    assert sources_of(str(equals), "toxic") == [Source(equals, "", "toxic")]
    assert sources_of(f" my\tmodel =a={equals}", "toxic") == [
        Source(Path(f"a={equals}"), "my model", "toxic")
    ]
    assert sources_of("m=r.csv", SAFE.name) == [Source(Path("r.csv"), "m", SAFE.name)]
    for empty in ("", "m="):
        with pytest.raises(UserError, match="file's name is empty"):
            sources_of(empty, "toxic")


def test_a_folder_stands_for_its_csvs_the_oldest_first_without_failed_rows(tmp_path: Path) -> None:
    for age, name in enumerate(("deep/er/c.csv", "a.csv", "b.csv", "b_failed.csv", "n.txt")):
        os.utime(put(tmp_path / name), (age, age))
    found = sources_of(f"m={tmp_path}", "toxic")
    assert [source.path.name for source in found] == ["c.csv", "a.csv", "b.csv"]
    assert {source.model for source in found} == {"m"}
    assert sources_of(str(tmp_path / "b_failed.csv"), "toxic") == []


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
    responses = of_record(tmp_path, {"under_test": {"asked": "a"}}).responses
    for flags in (responses.direct, responses.indirect, responses.cut_off):
        assert np.isnan(flags).all()
    assert list(responses.refused) == [1, 0] and list(responses.tier) == ["", ""]
    by_judge = of_record(tmp_path, {"under_test": {"asked": "a"}}, STAGE_5).responses
    assert list(by_judge.direct) == [1, 0] and list(by_judge.graded) == ["", ""]


def test_failed_rows_are_unscored_and_count_among_the_prompts(tmp_path: Path) -> None:
    path = written(tmp_path, "s.csv", [DIRECT, ANSWER])
    lost(path, ["Lost", "Prompt 1 again"], error_type="judge_refused")
    result = one(path)
    assert list(result.responses.scored) == [True, True, False, False]
    assert list(result.responses.judge_refused) == [False, False, True, True]
    assert (len(result.responses), result.scored, result.unscored_known) == (4, 2, True)
    texts = [*numbered(2), "Lost", "Prompt 1 again"]
    assert result.prompt_set == prompt_set_hash(map(prompt_id, texts))
    assert np.isnan(result.responses.refused[2:]).all()


def test_prompts_and_seeds_have_the_same_numbers_in_all_files(tmp_path: Path) -> None:
    a = put(tmp_path / "a.csv", "prompt,toxic_seed,is_rejected\nP,S,True\nQ,S,True\nR,,True\n")
    b = put(tmp_path / "b.csv", "prompt,seed_id,is_rejected\nr,,True\nq,7,True\nX,7,False\n")
    results, prompts = load_results([Source(a, "a", SAFE.name), Source(b, "b", SAFE.name)])
    assert [list(one.responses.prompt) for one in results] == [[0, 1, 2], [2, 1, 3]]
    seeds = [list(one.responses.seed) for one in results]
    assert seeds[0][0] == seeds[0][1] != seeds[0][2] == seeds[1][0]
    assert seeds[1][1] == seeds[1][2] not in seeds[0]
    assert prompts.text == ["P", "Q", "R", "X"] and prompts.id[3] == prompt_id("X")


def test_a_merged_file_is_a_result_on_each_side(tmp_path: Path) -> None:
    toxic = ["True", "FALSE", "true"]
    path = written(tmp_path, "m.csv", [DIRECT, ANSWER, ANSWER], columns={"is_toxic": toxic})
    lost(path, ["Lost"], is_toxic="False")
    results, _ = load_results([Source(path, "", "merged")])
    assert [(one.number, one.side) for one in results] == [(0, TOXIC), (1, SAFE)]
    assert [one.scored for one in results] == [2, 1]
    assert [len(one.responses) for one in results] == [2, 2]


def test_texts_for_the_page_are_taken_from_the_whole_file(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{name}.csv", [DIRECT] * 9, name) for name in "ab"]
    lost(paths[0], ["Lost"])
    results = loaded(*paths, texts=6)
    assert [[text.question for text in one.texts] for one in results] == [
        ["Prompt 0", "Prompt 4", "Prompt 8"]
    ] * 2
    first = results[0].texts[0]
    assert (first.category, first.verdict, first.reason) == ("a", DIRECT, "because")
    assert first.response == "Response 0 of a"
    assert len(loaded(paths[0], texts=50)[0].texts) == 9
    assert loaded(paths[0])[0].texts == []


ALIKE = [f"How do I fold a paper bird with wings in number {n}?" for n in range(10)]
APART = [f"{prompt_id(str(n))} {prompt_id(f'b{n}')}" for n in range(150)]


@pytest.mark.parametrize(
    ("prompts", "found"),
    [
        (ALIKE, Lookalikes(9, 10)),
        ([*APART[:19], f"{APART[18]} x"], None),  # one of twenty
        ([*APART[:18], f"{APART[17]} x"], Lookalikes(1, 19)),
        ([one[-20:] for one in ALIKE], Lookalikes(9, 10)),
        ([one[-19:] for one in ALIKE], None),  # short ones are easily alike
        ([*APART, *ALIKE], None),
    ],
)
def test_prompts_that_look_like_rewrites_are_counted(
    tmp_path: Path, prompts: list[str], found: Lookalikes | None
) -> None:
    path = written(tmp_path, "s.csv", [ANSWER] * len(prompts), columns={"prompt": prompts})
    assert one(path).lookalikes == found
    seeds = {"prompt": prompts, "toxic_seed": ["known"] * len(prompts)}
    assert (
        one(written(tmp_path, "s.csv", [ANSWER] * len(prompts), columns=seeds)).lookalikes is None
    )


# -- what a run record says ------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["case"], ids=str)
def test_a_run_record_gives_a_result_its_fields(tmp_path: Path, case: dict[str, Any]) -> None:
    record = {"under_test": {"asked": "m"}} | case["record"]
    found = of_record(tmp_path, record, STAGE_4 if "stage" in case else STAGE_5)
    fields = {name: getattr(found, name) for name in case["wanted"]}
    shown = {name: list(one) if isinstance(one, tuple) else one for name, one in fields.items()}
    assert shown == case["wanted"]


def test_a_model_that_the_user_names_gives_the_family_if_the_record_has_none(
    tmp_path: Path,
) -> None:
    path = put(tmp_path / "r.csv", STAGE_4, {"under_test": {"asked": "m", "settings": "low"}})
    (given,) = loaded(f"claude={path}")
    assert (given.label, given.family, isnan(given.certain)) == ("claude (low)", "Claude", True)


@pytest.mark.parametrize(("text", "stage"), [(STAGE_4, 4), (STAGE_5, 5)])
def test_an_edited_file_is_a_caution(tmp_path: Path, text: str, stage: int) -> None:
    path = put(tmp_path / "r.csv", text)
    hashes = {"csv": sha256_of(path), "failed": ""}
    about = {"under_test": {"asked": "m"}} | {"parameters": {"check_model": "j"}}
    assert of_record(tmp_path, about | {"output": hashes}, text).cautions == ()
    for edited in ({"csv": "0", "failed": ""}, hashes | {"failed": "0"}):
        found = of_record(tmp_path, about | {"output": edited}, text)
        assert found.cautions == (f"edited since stage {stage} wrote it",)


def test_unscored_rows_are_known_by_their_file_or_by_a_record_without_any(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv")
    tested = {"under_test": {"asked": "m"}}
    assert not loaded(f"m={path}")[0].unscored_known
    assert of_record(tmp_path, tested).unscored_known
    assert not of_record(tmp_path, tested | {"output": {"failed": "0"}}).unscored_known
    lost(path, ["Lost"])
    assert of_record(tmp_path, tested | {"output": {"failed": "0"}}).unscored_known


def test_without_a_record_the_gap_is_noted(tmp_path: Path) -> None:
    (found,) = loaded(f"m={put(tmp_path / 'r.csv')}")
    note = "no run record: settings, date and unscored rows are unknown"
    assert found.all_notes == ["unknown judge", note]
    told = of_record(tmp_path, {"under_test": {"asked": "m"}, "notes": ["odd\anote", "", "two"]})
    assert told.notes == ("odd note", "two")


def test_several_models_that_answered_are_told_the_most_frequent_first(tmp_path: Path) -> None:
    served = ["b via x", "gpt-4o", "b", ""]
    tested = {"under_test": {"asked": "a", "id": "gpt-4o"}}
    path = written(tmp_path, "s.csv", [DIRECT] * 4, columns={"served_by": served}, **tested)
    found = one(path)
    assert found.cautions == ("answered by b (2 rows), gpt-4o (1 row)",)
    assert found.ids == "b gpt-4o gpt-4o"  # another one answered: the one asked counts, too
    columns = {"served_by": ["gpt-4o-2024-08-06"] * 4}
    alone = one(written(tmp_path, "s.csv", [DIRECT] * 4, columns=columns, **tested))
    assert (alone.cautions, alone.ids) == ((), "gpt-4o-2024-08-06")


@pytest.mark.parametrize(
    ("corrected", "found"),
    [
        ({"over_refusal": [0.2, 0.1, 0.3]}, (0.2, 0.1, 0.3)),
        ({"": [0.2, 0.1, 0.3], "toxic": [0.9, 0.8, 1]}, (0.2, 0.1, 0.3)),
        ({"toxic": [0.9, 0.8, 1]}, None),
    ],
)
def test_the_rate_by_peoples_labels_is_that_of_the_side(
    tmp_path: Path, corrected: Record, found: tuple[float, ...] | None
) -> None:
    path = put(tmp_path / "r.csv", STAGE_4, {"under_test": {"asked": "m"}})
    made_for = {"csv": sha256_of(path)}
    validation = tmp_path / "r.validation.json"
    validation.write_text(json.dumps({"made_for": made_for, "corrected": corrected}))
    result = one(path)
    rate = result.corrected and (result.corrected.rate, *result.corrected.interval)
    assert (rate, result.cautions) == (found, ())
    validation.write_text(json.dumps({"made_for": {"csv": "0"}, "corrected": corrected}))
    caution = "the validation beside it was made for other results, and is not used"
    assert one(path).cautions == (caution,)


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
    columns = {"response": responses, "answer_type_response": reasons}
    path = written(tmp_path, "s.csv", [DIRECT] * len(responses), columns=columns)
    assert one(path).doubt == doubt
    assert one(
        written(tmp_path, "s.csv", [DIRECT] * len(responses), columns=columns, complete=False)
    ).doubt.startswith("partial")


# -- together --------------------------------------------------------------------------------------


def test_the_hash_of_responses_is_that_of_copies_and_empty_if_all_are_alike(tmp_path: Path) -> None:
    texts = {"response": [" Fold ", "Cut"]}
    swapped = {"prompt": ["Prompt 1", "Prompt 0"], "response": ["Cut", "Fold"]}
    a = one(written(tmp_path, "a.csv", [DIRECT] * 2, columns=texts))
    copy = one(written(tmp_path, "b.csv", [ANSWER] * 2, "b", columns=swapped))
    assert a.responses_hash == copy.responses_hash != ""
    other = one(written(tmp_path, "c.csv", [ANSWER] * 2, columns=texts | {"prompt": ["x", "y"]}))
    assert other.responses_hash not in ("", a.responses_hash)
    alike = written(tmp_path, "d.csv", [DIRECT] * 2, columns={"response": ["No."] * 2})
    lost(alike, ["Lost"], response="Else")
    assert one(alike).responses_hash == ""


def test_a_baseline_is_named_as_such_and_results_are_numbered(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{name}.csv", [DIRECT], name) for name in "ab"]
    sources = [Source(paths[0], "", SAFE.name), Source(paths[1], "", SAFE.name, baseline=True)]
    results, _ = load_results(sources)
    assert [(one.number, one.model, one.is_baseline) for one in results] == [
        (0, "a", False),
        (1, f"b{BASELINE}", True),
    ]
    assert [one.file for one in results] == [str(path) for path in paths]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("a.csv", "copy.csv"), "a.csv and .*copy.csv: the same model, prompts and judge"),
        (("a.csv", "M=a.csv"), "a.csv is given twice"),
        (("a.csv", "M=link.csv"), "link.csv is given twice|a.csv is given twice"),
    ],
)
def test_a_result_given_twice_stops_the_report(
    tmp_path: Path, names: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "copy.csv"):
        written(tmp_path, name, [DIRECT, ANSWER], "a")
    (tmp_path / "link.csv").symlink_to("a.csv")
    with pytest.raises(UserError, match=says):
        loaded(*names)
    assert load_results([])[0] == []


def test_with_a_record_a_column_of_models_came_with_the_prompts(tmp_path: Path) -> None:
    text = "prompt,model,is_rejected\nP,a,True\nQ,b,True\n"
    assert of_record(tmp_path, {"under_test": {"asked": "m"}}, text).scored == 2
