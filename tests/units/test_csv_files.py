"""Tables in and CSV files out."""

import csv
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from orbench.base import tables
from orbench.base.messages import UserError
from orbench.base.toml_files import toml_beside

FILES = toml_beside(__file__, "files.toml")
NAMED = {case["name"]: case for case in FILES["read"]}


def stopped(path: Path, *needed: str, **more: str) -> str:
    """The line that reading a file stops with, from the file's name on."""
    with pytest.raises(UserError) as error:
        tables.read_csv(path, needed, **more)
    return str(error.value).removeprefix(f"{path.parent}/")


@pytest.mark.parametrize("name", NAMED)
def test_a_table_is_read(tmp_path: Path, name: str) -> None:
    case: dict[str, Any] = NAMED[name]
    path = tmp_path / case.get("file", "p.csv")
    path.write_bytes(case["text"].encode())
    table = tables.read_csv(path)
    head, *rows = case["rows"]
    assert table.columns == head
    assert [list(row.values()) for row in table.rows] == rows
    assert table.path == table.file == path


def test_a_broken_table_is_named_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    for text, line in FILES["broken"].items():
        path.write_bytes(text.encode())
        assert stopped(path, "prompt", "n") == line


def test_what_is_no_table_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    with pytest.raises(FileNotFoundError):
        tables.read_csv(path)
    path.write_text("PAR1,prompt\nx,1\n")
    line = stopped(path.rename(tmp_path / ("p" * 200)))
    assert line.startswith(f"{'p' * 200} is not a parquet file: Could not open Parquet input")
    assert len(line.partition("file: ")[2]) == 200
    path.write_bytes(b"prompt\n\xff\xfe\n")
    line = "p.csv is not UTF-8 text; save it as CSV UTF-8 and run again; then"
    assert stopped(path, hint="; then") == line
    with pytest.raises(UserError, match="the input file's name is empty"):
        tables.read_csv("")


def test_a_long_list_of_columns_is_cut_and_the_hint_follows(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    columns = ", ".join(f"column_{n}" for n in range(60))
    path.write_text(columns.replace(" ", ""))
    line = f"p.csv has no column 'prompt'; it has: {columns[:300]}; so"
    assert stopped(path, "prompt", hint="; so") == line


def test_a_prompt_may_come_from_the_conversation(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "Why?"}]}\n')
    table = tables.read_csv(path, ["prompt"])
    assert table.columns == ["messages", "prompt"] and table.rows[0]["prompt"] == "Why?"
    assert tables.read_csv(path, ["messages"]).columns == ["messages"]


def test_every_cell_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = [
        {"a": 'x, "y"\nz', 'b, "b"': ""},
        {"a": "lone\rreturn", "c": "c"},
        {'b, "b"': " ünï — 你好 "},
    ]
    columns = tables.columns_in(rows, ['b, "b"'])
    assert columns == ['b, "b"', "a", "c"]
    tables.write_csv(path, columns, rows)
    written = path.read_bytes()
    assert written.startswith(b'"b, ""b""",a,c\n,"x, ""y""\nz",\n"","lone\rreturn","c"\n')
    with path.open(newline="") as file:
        cells = list(csv.reader(file))
    assert cells[1:] == [[row.get(name, "") for name in columns] for row in rows]


def test_a_csv_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a[b].csv"
    with tables.CsvWriter(path, ["n"]) as writer:
        writer.write({"n": "1"})
        assert not path.exists()
        assert (tmp_path / f"a[b].csv.{os.getpid()}.tmp").exists()
        digest = hashlib.sha256(b"n\n1\n").hexdigest()
        assert writer.sha256() == digest
        writer.commit()
    assert path.read_text() == "n\n1\n" and tables.sha256_of(path) == digest
    with tables.CsvWriter(path, ["n"]) as writer:
        writer.write({"n": "2"})  # never committed
    assert path.read_text() == "n\n1\n" and list(tmp_path.iterdir()) == [path]


def test_a_text_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.txt"
    tables.write_text(path, "é")
    assert path.read_bytes() == "é".encode()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as raised:
        tables.write_text(path, "more")
    assert raised.value.filename == path
    assert path.read_bytes() == "é".encode() and list(tmp_path.iterdir()) == [path]
    tables.sync_folder(tmp_path)  # of network file systems that cannot


def test_an_input_is_never_an_output_by_whatever_path(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("prompt\n")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    for output, given in (
        (path, path),
        (link, path),
        (path, link),
        (tmp_path / "x/../p.csv", path),
    ):
        with pytest.raises(UserError, match="is an input and would be overwritten"):
            tables.check_outputs([tmp_path / "o.csv", output], [given])
    tables.check_outputs([path], [tmp_path / "q.csv"])
    missing = tmp_path / "none.csv"
    tables.check_outputs([missing], [missing])  # which says itself that it is missing


def test_folders_are_made_with_those_above_them(tmp_path: Path) -> None:
    for _ in range(2):
        tables.make_folder(tmp_path / "a" / "b")
    assert tables.beside(Path("a/p.q.csv"), "_x.csv") == Path("a/p.q_x.csv")


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    (tmp_path / f"o.csv.{os.getpid()}.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as raised:
        tables.write_text(path, "x")
    assert raised.value.filename == path
    assert not list(tmp_path.iterdir())
