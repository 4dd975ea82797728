"""CSV in and out: every text comes back as it was, every broken file gets one clear line."""

import csv
import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench.table import (
    PromptSet,
    Table,
    Waves,
    Writer,
    file_name_part,
    prompt_set_hash,
    remove,
    storable,
    write_text,
)
from orbench.terminal import UserError
from tests.conftest import DiskOrder

AWKWARD = st.sampled_from(
    [
        *["", " ", "NA", "null", "None", "nan", "007", "1e5", "True", "a,b", '"', 'say "no"', "'"],
        *["\n", "a\nb", "\r", "a\rb", "a\r\nb", "\r\n", "\t", "\x00", "a\x00b", "\x1a", "\x85"],
        *["\ufeff", "\ufeffa", "👩‍👩‍👧", "מה שלומך", "\u202eright to left\u202c", "\u2028"],
        *["{braces}", "=1+1", "#", "\\"],
    ]
)
TEXT = AWKWARD | st.text(max_size=12)
# Hypothesis leaves lone surrogates out of st.text(); a model's JSON does not.
ANY_TEXT = TEXT | st.text(st.characters(exclude_categories=()), max_size=12)


def tables(
    cells: st.SearchStrategy[str], least_columns: int = 1
) -> st.SearchStrategy[tuple[list[str], list[list[str]]]]:
    """Column names and rows. A first name that begins with a BOM is no name but a BOM."""

    def rows(columns: list[str]) -> st.SearchStrategy[tuple[list[str], list[list[str]]]]:
        row = st.lists(cells, min_size=len(columns), max_size=len(columns))
        return st.tuples(st.just(columns), st.lists(row, max_size=6))

    columns = st.lists(cells, min_size=least_columns, max_size=4, unique=True)
    return columns.filter(lambda names: not names[0].startswith("\ufeff")).flatmap(rows)


def write(path: Path, columns: list[str], rows: list[list[str]]) -> Path:
    writer = Writer({"": path}, columns)
    for row in rows:
        writer.write(dict(zip(columns, row, strict=True)))
    writer.commit()
    return path


def cells_of(table: Table) -> list[list[str]]:
    return [list(row.values()) for row in table]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that hypothesis may use for many examples."""
    return tmp_path_factory.mktemp("tables")


# -- what was written is read ------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(tables(ANY_TEXT))
def test_any_text_comes_back_from_a_written_table(
    folder: Path, written: tuple[list[str], list[list[str]]]
) -> None:
    columns, rows = written
    (folder / "any.csv").unlink(missing_ok=True)  # what was read is not written over
    table = Table(write(folder / "any.csv", columns, rows))
    assert (table.columns, table.n) == (columns, len(rows))
    assert cells_of(table) == rows


@settings(deadline=None, max_examples=100)
@given(tables(TEXT, least_columns=2))
def test_pandas_reads_the_same_cells(
    folder: Path, written: tuple[list[str], list[list[str]]]
) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    columns, rows = written
    path = write(folder / "pandas.csv", columns, rows)
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, header=None)
    assert frame.to_numpy().tolist() == [columns, *rows]


@settings(deadline=None, max_examples=100)
@given(tables(ANY_TEXT))
def test_a_table_that_is_copied_row_by_row_stays_the_same_to_the_byte(
    folder: Path, written: tuple[list[str], list[list[str]]]
) -> None:
    columns, rows = written
    (folder / "original.csv").unlink(missing_ok=True)
    original = write(folder / "original.csv", columns, rows)
    copy = write(folder / "copy.csv", columns, cells_of(Table(original)))
    assert copy.read_bytes() == original.read_bytes()


@pytest.mark.parametrize("before", range(8185, 8193))
def test_a_surrogate_passes_through_wherever_the_reading_block_ends(
    tmp_path: Path, before: int
) -> None:
    cell = "a" * before + "\udc80\ud83d"
    path = write(tmp_path / "a.csv", ["prompt"], [[cell]])
    assert b"\xed\xb2\x80\xed\xa0\xbd" in path.read_bytes()
    assert cells_of(Table(path)) == [[cell]]


def test_a_file_of_windows_with_a_byte_order_mark_reads_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfprompt,category\r\n"a\r\nb",harmful\r\nc,\r\n')
    table = Table(path, needed=["prompt"])
    assert table.columns == ["prompt", "category"]
    assert cells_of(table) == [["a\r\nb", "harmful"], ["c", ""]]


def test_a_byte_order_mark_before_a_quoted_header_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"prompt"\nx\n')
    assert list(Table(path)) == [{"prompt": "x"}]


def test_a_cell_of_a_megabyte_is_a_cell(tmp_path: Path) -> None:
    cell = 'a"b\n' * 262_144
    path = write(tmp_path / "a.csv", ["prompt"], [[cell], ["next"]])
    assert cells_of(Table(path)) == [[cell], ["next"]]


def test_blank_lines_are_no_rows_and_an_empty_cell_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('prompt\n\na\n\n""\n\n')
    assert cells_of(Table(path)) == [["a"], [""]]


def test_a_table_can_be_read_again_and_cut_short(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ["prompt"], [["a"], ["b"], ["c"]])
    table = Table(path, limit=2)
    assert table.n == 2
    assert cells_of(table) == cells_of(table) == [["a"], ["b"]]
    assert (Table(path, limit=9).n, Table(path, limit=0).n) == (3, 0)
    assert list(Table(path, limit=0)) == []
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("prompt,category")
    table = Table(path, needed=["prompt"])
    assert (table.columns, table.n, list(table)) == (["prompt", "category"], 0, [])


# -- what cannot be used -----------------------------------------------------------------------

BROKEN = {
    "empty": (b"", "is empty"),
    "a byte order mark alone": (b"\xef\xbb\xbf", "is empty"),
    "latin-1": (b"prompt\ncaf\xe9\n", "not UTF-8"),
    "latin-1 in the header": (b"pr\xf6mpt\nx\n", "not UTF-8"),
    "UTF-16": ("prompt\nx\n".encode("utf-16"), "not UTF-8"),
    "latin-1 far down": (b"prompt\n" + b"x\n" * 50_000 + b"\xe9\n", "not UTF-8"),
    "unclosed quote": (b'prompt\na\n"b\nc\n', "line 3"),
    "unclosed quote after a cell of several lines": (b'prompt\n"a\nb"\n\n"c\n', "line 5"),
    "unclosed quote in the header": (b'"prompt\na\n', "header"),
    "text after a quote": (b'prompt\n"a"b\n', "line 2"),
    "too many cells": (b"prompt,category\na,b\nc,d,e\n", "line 3: 3 cells"),
    "too few cells": (b"prompt,category\n\na\n", "line 3: 1 cells"),
    "a column twice": (b"prompt,x,prompt\na,b,c\n", "'prompt' twice"),
    "a column missing": (b"text,label\na,b\n", "no column 'prompt'; it has: text, label"),
}


@pytest.mark.parametrize(("content", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_gets_one_line_that_names_it(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    with pytest.raises(UserError) as raised:
        Table(path, needed=["prompt"])
    assert str(path) in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_and_a_folder_get_one_line_that_names_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        Table(tmp_path / "none.csv")
    with pytest.raises(UserError, match="is a folder"):
        Table(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be read"):
        Table(tmp_path / "file" / "a.csv")


# -- writing -----------------------------------------------------------------------------------


def test_a_csv_stands_under_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("what stood here before")
    (tmp_path / "a.csv.tmp").write_text("what a killed run left" * 1000)
    writer = Writer({"": path}, ["prompt"])
    writer.write({"prompt": "new"})
    assert path.read_text() == "what stood here before"
    with path.open() as reader:
        writer.commit()
        assert reader.read() == "what stood here before"  # never a half of each
    writer.discard()  # as in a finally
    assert path.read_text() == "prompt\nnew\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_what_is_discarded_leaves_nothing_and_overwrites_nothing(tmp_path: Path) -> None:
    kept, new = tmp_path / "kept.csv", tmp_path / "new.csv"
    kept.write_text("kept")
    writer = Writer({"a": kept, "b": new}, ["prompt"])
    writer.write({"prompt": "x"}, "a")
    writer.discard()
    writer.discard()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"kept.csv": "kept"}


def test_rows_go_to_the_file_of_their_label_and_missing_cells_are_empty(tmp_path: Path) -> None:
    paths = {"yes": tmp_path / "yes.csv", "no": tmp_path / "no.csv"}
    writer = Writer(paths, ["prompt", "label"])
    writer.write({"prompt": "a", "other": "not asked for"}, "yes")
    writer.write({"label": "b"}, "no")
    writer.write({"prompt": "c", "label": "d"}, "yes")
    writer.commit()
    assert paths["yes"].read_text() == "prompt,label\na,\nc,d\n"
    assert paths["no"].read_text() == "prompt,label\n,b\n"


def test_a_folder_that_is_not_there_is_an_error_that_the_caller_can_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Writer({"": tmp_path / "none" / "a.csv"}, ["prompt"])


def test_a_text_file_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text(path, "é\n")
    write_text(path, "👍\n")
    assert path.read_text(encoding="utf-8") == "👍\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_on_disk_before_it_gets_its_name(disk_order: DiskOrder, tmp_path: Path) -> None:
    writer = Writer({"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}, ["prompt"])
    for number in range(9):
        writer.write({"prompt": f"row {number}"}, "ab"[number % 2])
    writer.commit()
    write_text(tmp_path / "c.json", "{}\n")
    assert disk_order.moved == ["a.csv", "b.csv", "c.json"]
    remove(tmp_path / "c.json")
    remove(tmp_path / "c.json")  # it need not be there
    assert disk_order.removed == ["c.json"]
    assert not disk_order.lost


@pytest.mark.parametrize("step", ["flush", "fsync"])
def test_on_a_full_disk_what_stood_there_stays(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv_path, text_path = tmp_path / "a.csv", tmp_path / "a.json"
    csv_path.write_text("kept")
    text_path.write_text("kept")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Writer({"": csv_path}, ["prompt"]) as writer:
        if step == "flush":  # a small file fails only when its buffer is written out
            writer._files[0] = _Unwritable()
        else:
            monkeypatch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                write_text(text_path, "new")
        with pytest.raises(OSError, match="No space"):
            writer.commit()
    assert (csv_path.read_text(), text_path.read_text()) == ("kept", "kept")


class _Unwritable(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_folder_that_cannot_be_synced_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def only_files(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")  # as SMB and some FUSE systems say
        sync(fd)

    monkeypatch.setattr(os, "fsync", only_files)
    write_text(tmp_path / "a.json", "{}")
    assert (tmp_path / "a.json").read_text() == "{}"


# -- small things ------------------------------------------------------------------------------


def is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


@given(ANY_TEXT)
def test_a_storable_text_is_utf8_and_otherwise_what_it_was(text: str) -> None:
    stored = storable(text)
    stored.encode("utf-8")
    assert storable(stored) == stored
    if not any(map(is_surrogate, text)):
        assert stored == text


def test_a_lone_surrogate_is_replaced_alone_and_a_pair_is_joined() -> None:
    assert storable("a\ud83db") == "a\ufffdb"
    assert storable("\udc00\ud83d") == "\ufffd\ufffd"
    assert storable("\ud83d\ude00!") == "😀!"
    assert storable("\ufeffa\ud800") == "\ufeffa\ufffd"


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=()), max_size=50)
    | st.sampled_from(["", ".", "..", "../../etc/passwd", "a/b", "C:\\x", "a\x00b", ".env", "\n"])
)
def test_any_word_makes_a_file_name_of_one_part(folder: Path, text: str) -> None:
    name = file_name_part(text)
    assert name == Path(name).name == file_name_part(name)
    assert not name.startswith(".")
    assert not {"/", "\\", "\x00", "\n", ":"} & set(name)
    (folder / name).touch()
    (folder / name).unlink()


def test_a_model_id_stays_readable_in_a_file_name() -> None:
    assert file_name_part("meta-llama/Llama-3-70b-chat-hf") == "meta-llama_Llama-3-70b-chat-hf"
    assert file_name_part("gpt-3.5-turbo-0125") == "gpt-3.5-turbo-0125"
    assert file_name_part("../x") == "_x"


@given(st.lists(ANY_TEXT, max_size=6), st.randoms())
def test_the_prompt_set_is_the_same_in_any_order_and_with_repeats(
    prompts: list[str], random: Random
) -> None:
    again = [*prompts, *prompts[:2]]
    random.shuffle(again)
    assert prompt_set_hash(again) == prompt_set_hash(prompts)
    assert len(prompt_set_hash(prompts)) == (16 if prompts else 0)


@given(st.sets(ANY_TEXT), st.sets(ANY_TEXT))
def test_different_prompt_sets_have_different_hashes(one: set[str], other: set[str]) -> None:
    assert (prompt_set_hash(one) == prompt_set_hash(other)) == (one == other)


def test_a_prompt_set_that_grows_is_the_set_of_what_was_added() -> None:
    growing = PromptSet()
    assert growing.hexdigest() == ""
    for prompt in ("b", "a", "b"):
        growing.add(prompt)
    assert growing.hexdigest() == prompt_set_hash(["a", "b"])


def test_waves_grow_while_they_are_read_again() -> None:
    waves = Waves("request")
    assert (list(waves), waves.columns) == ([], ["request"])
    waves.n = 3
    assert [row["request"] for row in waves] == ["0", "1", "2"]


def test_the_csv_module_of_others_reads_a_lone_carriage_return_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ["prompt", "a\rb"], [["x\ry", "z"]])

    def lines() -> Iterator[list[str]]:
        with path.open(newline="") as file:
            yield from csv.reader(file, strict=True)

    assert list(lines()) == [["prompt", "a\rb"], ["x\ry", "z"]]
