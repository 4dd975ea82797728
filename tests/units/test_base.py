"""The rules that all scripts share: words, prompts, records, near-duplicates."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from platform import python_version
from typing import Any
from unittest import mock

import datasketch  # type: ignore[import-untyped]
import pytest

from orbench.base import messages, near_duplicates, prompts, records, words
from orbench.base.tables import Table, check_single, file_name_part
from orbench.base.toml_files import toml_beside

TEXTS = toml_beside(__file__, "texts.toml")
RECORDS = toml_beside(__file__, "run_records.toml")
TURNS = toml_beside(__file__, "conversations.toml")
Rule = Callable[[Any], object]
ROW = "r.csv, row 7"


def side(cell: str) -> str | None:
    found = words.side_of({"is_toxic": cell}, ROW)
    return found and next(name for name, one in words.SIDES.items() if one is found)


RULES: dict[str, Rule] = {
    "clean": messages.clean,
    "one_line": messages.one_line,
    "without_query": messages.without_query,
    "file_name_part": file_name_part,
    "same": prompts.same,
    "seed_id": lambda text: prompts.seed_id_of({"seed_id": text}),
    "is_no_value": prompts.is_no_value,
    "set_name": lambda text: prompts.set_name(Path(text)),
    "category_of": lambda text: words.category_of({"category": text}),
    "tier_of": lambda text: words.tier_of({"tier": text}),
    "flag": lambda text: words.optional_flag({"is_toxic": text}, "is_toxic", "p.csv, row 2"),
    "side_of": side,
    "tiers_in_order": lambda text: " ".join(words.tiers_in_order(text.split())),
}
OF_RECORDS: dict[str, Rule] = {
    "shown": lambda known: records.under_test({"under_test": known}).shown,
    "verdicts": lambda row: words.verdict_of(row, ROW),
    "graded": lambda row: words.graded_class_of(row, ROW),
    "refused_by_api": words.refused_by_api,
    "after_text": words.after_text,
}


def said_by(rule: Rule, given: object) -> str:
    """What a rule gives, or the line that it stops with."""
    try:
        return str(rule(given))
    except messages.UserError as error:
        return str(error)


@pytest.mark.parametrize("name", RULES)
def test_a_text_becomes_what_the_table_says(name: str) -> None:
    for text, wanted in TEXTS[name].items():
        assert said_by(RULES[name], text) == str(wanted), text


@pytest.mark.parametrize("name", OF_RECORDS)
def test_a_row_or_record_is_read_as_the_table_says(name: str) -> None:
    for cells, wanted in RECORDS[name].items():
        assert said_by(OF_RECORDS[name], json.loads(cells)) == str(wanted), cells


def test_peoples_labels_are_read_whatever_their_spelling() -> None:
    for name, means in {"refusals": True, "answers": False, "no_labels": None}.items():
        assert {words.human_label(cell) for cell in TEXTS[name]} == {means}


def test_rows_without_a_column_have_no_category_tier_flag_or_side() -> None:
    assert words.category_of({}) == "(no category)" and words.tier_of({}) == ""
    assert words.optional_flag({}, "refused", ROW) is None and words.side_of({}, ROW) is None


def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    assert messages.storable("a \ud83d b \ud83d\ude00 é") == "a \ufffd b \U0001f600 é"
    assert messages.clean("a\udcff") == "a "


def test_lines_names_and_counts_are_shortened() -> None:
    assert messages.one_line("x" * 300) == "x" * 300
    assert messages.one_line("x" * 301) == "x" * 299 + "…"
    assert [messages.counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    shortened = [messages.shortened("abcdefgh", n) for n in (8, 7, 6)]
    assert shortened == ["abcdefgh", "abc…fgh", "abc…gh"]
    assert messages.did_you_mean("gtp4", ["gpt4", "zzz"]) == ". Did you mean gpt4?"
    assert messages.listed("abcd") == "a, b and 2 more"
    assert messages.did_you_mean("qqq", ["gpt4", "zzz"]) == ""


# -- prompts and conversations -----------------------------------------------------------------

CALL = '{"id": "%s", "type": "function", "function": {"name": "look", "arguments": "{}"}}'
NEEDS = (
    "messages needs in turn %d a role (one of system, user, assistant) and a text as content, "
    "nothing else; if the column tools offers some, also tool_calls such as "
    f"[{CALL % 1}], each with an id of its own and its result right behind it"
)
END = "messages does not end with the user or the results of all tool calls"
NO_USER = "the prompt must be the user's last turn in messages; add that turn, or drop the prompt"
WRONG: dict[str | int, str] = {"end": END, "user": NO_USER}
FAULTS = {
    "not_a_list": 'messages is not a JSON list such as [{"role": "user", "content": "Hello"}]',
    "bad_first_turn": NEEDS % 1,
    "bad_second_turn": NEEDS % 2,
    "another_end": END,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_malformed_conversation_is_named(name: str) -> None:
    for cell in TURNS[name]:
        with pytest.raises(messages.UserError) as stopped:
            prompts.with_prompt({"messages": cell}, "p.csv, row 3")
        assert str(stopped.value) == f"p.csv, row 3: {FAULTS[name]}", cell


SHORT = {  # in a conversation of the table
    r"look\((\d)\)": r'{"role": "assistant", "tool_calls": [call(\1)]}',
    r"call\((\d)\)": CALL.replace("%s", r"\1"),
    r"args\((.*?)\)": CALL.replace("%s", "1").replace("{}", r"\1"),
    r"tool\((\d)\)": r'{"role": "tool", "tool_call_id": "\1", "content": "Seen."}',
    r"\buser\b(?!\")": '{"role": "user", "content": "Look."}',
}
TOOLS = '[{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]'


@pytest.mark.parametrize("talk", TURNS["with_tools"])
def test_calls_of_tools_and_their_results_belong_together(talk: str) -> None:
    cell = talk
    for short, long in SHORT.items():
        cell = re.sub(short, long, cell)
    turn = TURNS["with_tools"][talk]
    wanted = "Look."
    if turn:
        wanted = f"p.csv, row 3: {WRONG.get(turn) or NEEDS % turn}"
    assert said_by(prompt_in, {"messages": cell, "tools": TOOLS}) == wanted
    if not turn:
        nothing_offered = said_by(prompt_in, {"messages": cell, "tools": ""})
        assert nothing_offered == f"p.csv, row 3: {NEEDS % 2}"


@pytest.mark.parametrize("cell", TURNS["tools"])
def test_tools_are_a_list_of_functions_with_names_and_parameters(cell: str) -> None:
    row = {"messages": "", "prompt": "Look.", "tools": cell}
    wanted = "Look."
    if not TURNS["tools"][cell]:
        wanted = f"p.csv, row 3: tools is not a JSON list such as {TOOLS}"
    assert said_by(prompt_in, row) == wanted
    assert prompts.tools_of({"prompt": "Look.", "tools": "hammer"}) == []  # another column


def test_brackets_without_end_are_no_conversation() -> None:
    with pytest.raises(messages.UserError, match="is not a JSON list"):
        prompts.with_prompt({"messages": "[" * 100_000 + "]" * 100_000}, ROW)


def test_the_last_turn_is_the_prompt() -> None:
    for given, wanted in TURNS["prompts"].items():
        talk, _, prompt = given.partition(" | ")
        assert said_by(prompt_in, {"messages": talk, "prompt": prompt}) == wanted
    assert prompt_in({"messages": ""}) == ""


def prompt_in(row: dict[str, str]) -> str:
    return prompts.with_prompt(row, "p.csv, row 3")["prompt"]


def test_a_conversation_is_shown_and_told_apart_by_all_its_turns() -> None:
    ids = {prompts.prompt_id("One?")}
    for cell, shown in TURNS["shown"].items():
        row = prompts.with_prompt({"messages": cell}, ROW)
        assert prompts.shown_question(row) == shown
        ids.add(prompts.prompt_id_of(row))
        row["messages"] = json.dumps(json.loads(cell), sort_keys=True)
        assert prompts.prompt_id_of(row) in ids  # whatever the order of keys
    assert len(ids) == 2


def test_conversations_have_no_place_where_only_single_prompts_do() -> None:
    with pytest.raises(messages.UserError, match="t has a column 'messages'; only single prompts"):
        check_single(Table(Path("t"), ["prompt", "messages"], []))


def test_ids_are_hashes_of_what_spellings_share() -> None:
    assert prompts.prompt_id("  Is it LATE?! ") == hashed("is it late", 12)
    assert prompts.text_id(" is it late\n") == hashed("is it late", 12)
    for cells, text in RECORDS["seeds"].items():
        wanted = hashed(text, 12) if text == "fold" else text
        assert prompts.seed_id_of(json.loads(cells)) == wanted, cells
    assert prompts.prompt_set_hash(["b", "a", "b"]) == hashed("ab", 16)
    assert prompts.prompt_set_hash([]) == ""


def hashed(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


# -- run records -------------------------------------------------------------------------------


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.run.json"
    damaged = [*RECORDS["not_json"], *RECORDS["no_object"], "[" * 100_000]
    for name, values in RECORDS["wrong_type"].items():
        damaged += [f'{{"inputs": [], "{name}": {value}}}' for value in values]
    line = f"{path} is damaged; restore it, or delete it to go on without a run record"
    for text in damaged:
        path.write_text(text)
        assert said_by(records.read_record, tmp_path / "p.csv") == line, text
    path.unlink()
    path.mkdir()
    assert said_by(records.read_record, tmp_path / "p.csv") == line


def test_a_sound_record_is_read_and_a_missing_one_is_empty(tmp_path: Path) -> None:
    csv = tmp_path / "p.csv"
    for text in RECORDS["sound"].values():
        records.record_path(csv).write_text(text)
        assert records.read_record(csv) == json.loads(text)
    for missing in (Path(), tmp_path / "no" / "q.csv", csv / "file" / "below.csv"):
        assert records.read_record(missing) == {}


def test_the_record_names_model_families_and_what_is_scripted() -> None:
    known = {"asked": "a", "family": "fam\nily", "settings": None}
    assert records.under_test({"under_test": known}) == ("a", "", "fam ily", "", "")
    assert records.selectors({"selectors": ["Q\u200bwen"]}) == ["Q wen"]
    for name in ("scripted", "scripted_input"):
        assert records.is_scripted({name: True}) and not records.is_scripted({name: 1})
    assert not records.is_scripted({})
    for part, has_rate in RECORDS["whole"].items():
        line = said_by(lambda part: records.check_whole(Path("r.csv"), {"part": part}), part)
        assert (line == "None") == has_rate, part
        assert has_rate or f"r.csv holds only the responses of the part {part!r}" in line


def test_a_record_holds_no_secret_and_keeps_a_side(tmp_path: Path) -> None:
    csv = tmp_path / "p.csv"
    command = ["x.py", "--base_url=https://me:key@host/v1?token=1"]
    records.write_record(csv, "x", command, {"versions": {"rules": "r"}, "counts": {"done": 1}})
    records.add_to_record(csv, "source", side="toxic")
    found = records.read_record(csv)
    assert found.pop("versions").items() >= {"rules": "r", "python": python_version()}.items()
    expected = {
        "stage": "x",
        "command": ["x.py", "--base_url=https://host/v1"],
        "source": {"side": "toxic"},
        "counts": {"done": 1},
    }
    assert found.items() >= expected.items()


def test_rates_by_peoples_labels_count_for_the_csv_they_were_made_for(tmp_path: Path) -> None:
    csv, validation = tmp_path / "c.csv", tmp_path / "c.validation.json"
    assert records.validation_of(csv) == {}
    csv.write_text("prompt")
    sound = '{"made_for": {"csv": "HASH"}, "corrected": {"": [0.5, 0, 1]}}'
    of_this = sound.replace("HASH", hashed("prompt", 64))
    validation.write_text(of_this)
    assert (records.validation_of(csv) or {})["corrected"] == {"": [0.5, 0, 1]}
    for damaged in ("{", "[]", of_this.replace("corrected", "x"), sound):
        validation.write_text(damaged)
        assert records.validation_of(csv) is None


def test_failed_rows_stand_beside_a_csv(tmp_path: Path) -> None:
    csv, failed = tmp_path / "c.csv", tmp_path / "c_failed.csv"
    assert records.failed_rows(csv) == [] and records.failed_hash(csv) == ""
    text = "prompt,error_type\nWhy?,timeout\n"
    failed.write_text(text)
    assert records.failed_rows(csv) == [{"prompt": "Why?", "error_type": "timeout"}]
    assert records.failed_hash(csv) == hashed(text, 64)
    failed.write_text("prompt\nWhy?\n")
    assert "has no column 'error_type'" in said_by(records.failed_rows, csv)


# -- near-duplicates ---------------------------------------------------------------------------


def test_texts_are_compared_by_their_pieces_of_four_characters() -> None:
    assert near_duplicates.pieces(" ABC  de") == {"abc ", "bc d", "c de"}
    assert near_duplicates.pieces("Straße") == near_duplicates.pieces("STRASSE")
    assert near_duplicates.pieces("") == {""} and near_duplicates.pieces("cat") == {"cat"}
    assert near_duplicates.jaccard("abcdef", "bcdefg") == 2 / 4
    assert near_duplicates.jaccard("cat", "CAT") == 1 and near_duplicates.jaccard("cat", "dog") == 0


def test_a_text_exactly_at_the_threshold_is_a_near_duplicate() -> None:
    ten, eight, four = "abcdefghijklm", "abcdefghijk", "abcdefg"  # as many pieces
    seven = eight[:-1]
    for least, found in ((0.8, {eight: ("a", ten)}), (0.81, {})):
        of_two = near_duplicates.near_duplicates({"a": [ten, eight], "b": [seven]}, least)
        assert of_two == {**found, seven: ("a", eight)}
    assert near_duplicates.like_rewrites((ten, four)) == {four}
    assert near_duplicates.like_rewrites((ten, four[:-1])) == set()
    assert near_duplicates.like_rewrites((four, "other", ten)) == {ten}


@pytest.mark.parametrize("similarity", [0.5, 0.65, 0.8, 0.9, 1.0])
def test_a_pair_at_the_threshold_is_found_with_99_percent(similarity: float) -> None:
    with mock.patch.object(datasketch, "MinHashLSH") as made:
        near_duplicates.near_duplicates({}, similarity)
    bands, rows = made.call_args.kwargs["params"]
    assert bands * rows <= 60 and 1 - (1 - similarity**rows) ** bands >= 0.99
    more = rows + 1
    assert rows == 10 or 1 - (1 - similarity**more) ** (60 // more) < 0.99
