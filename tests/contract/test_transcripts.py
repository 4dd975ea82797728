"""What people read, word for word: `transcripts/AREA/NAME.txt` holds commands and their output.

A case is short, and its first line says what must hold. Numbers are asserted in Python. A line
`$ command` runs a script in an empty folder against a loopback server; behind it stand the
messages, stdout and the exit status, if it is not 0; models that are measured side by side stand
one below the other. $URL is the server's address. These commands
are none of the project's:

    $ rows FILE N WORD=VALUE ...   a CSV with N rows. A verdict and its number, such as
                          direct_refusal=12 (the others are direct answers) or rejected=12; columns,
                          in which {n} is the number of the row and {n%2}, {n/5} are taken from it;
                          model=NAME and judge=NAME, for its run record; lost=3, the rows of its
                          _failed.csv, after the others
    $ show FILE COLUMN ... [COLUMN=VALUE ...]   these columns, of rows with these values; of a
                          JSON file these entries
    $ write FILE          the lines that follow, each after `> `; a run record without `output`
                          says that its stage wrote the CSV as it is
    $ cat FILE ...        what is in files
    $ ls FOLDER           the names in a folder
    $ cp FILE FILE        a copy; $LOGS/NAME is a file in tests/contract/logs
    $ reply TEXTS => REPLY to requests whose JSON holds these texts (`a & b`); of several, the
                          latest counts. REPLY is the text of an answer, or STATUS BODY
    $ ends OUTCOME ...    how batches end, see tests/batch_server.py; `completed` until then
    $ sent                what was sent live since the last time, in the order of the alphabet

After a change of behavior, `ORBENCH_WRITE=AREA/NAME pytest tests/contract/test_transcripts.py`
writes that case again and prints the difference. There is no way to write all of them.
"""

import difflib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import pytest

from orbench.base.messages import UserError
from orbench.base.words import VERDICTS
from orbench.refusals import rules
from tests.batch_server import BatchServer
from tests.conftest import Desk, read_csv, write_csv
from tests.results import record_output
from tests.server import Body, Reply, answer

FOLDER = Path(__file__).parent / "transcripts"
LOGS = str(Path(__file__).parent / "logs")
FILES = sorted(FOLDER.rglob("*.txt"))
# What differs from run to run, or from machine to machine.
VARIES = {
    r"(127\.0\.0\.1|localhost):\d+": "SERVER",
    r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d": "TIME",
    r"\d{4}-\d\d-\d\d": "DATE",
    r"\b1[789]\d{8}\b": "SECONDS",
    r"'sha256-[^']+'": "HASH",
    r'"custom_id": "\w+"': '"custom_id": "KEY"',
    r'("(?:commit|python|openai)": )"[^"]*"': r'\1"VERSION"',
    rules.version(): "RULES",
}
# Of a long text that was sent, the middle is left out.
LONG = re.compile(r'((?:[^"\\]|\\.){60})(?:[^"\\]|\\.)+((?:[^"\\]|\\.){60})')


class Shell:
    """Runs the lines of a transcript."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.replies = desk, [("", "Fold it.")]
        self.server = desk.server = BatchServer(self.reply)

    def reply(self, body: Body, seen: int) -> Reply:
        text = json.dumps(body, ensure_ascii=False)
        reply = next(
            reply
            for marks, reply in reversed(self.replies)
            if all(mark in text for mark in marks.split(" & "))
        )
        reply = reply.replace("\\n", "\n")
        status, _, rest = reply.partition(" ")
        return Reply(rest, int(status)) if status.isdigit() and rest else answer(reply)

    def run(self, command: str, lines: list[str]) -> str:
        if command.startswith("reply "):
            marks, _, reply = command.removeprefix("reply").partition("=> ")
            self.replies.append((marks.strip(), reply))
            return ""
        name, *words = shlex.split(command)
        if name == "write":
            typed = "".join(f"{line}\n" for line in lines if line.startswith("> "))
            self.desk.folder.joinpath(words[0]).write_text(typed.replace("\n> ", "\n")[2:])
            return typed
        if name == "rows":
            write_rows(self.desk.folder / words[0], int(words[1]), words[2:])
            return ""
        if name == "show":
            return columns_of(self.desk.folder / words[0], words[1:])
        if name == "ends":
            self.server.ends(*words)
            return ""
        if name == "cp":
            source, copy = words
            shutil.copy(self.desk.folder / source.replace("$LOGS", LOGS), self.desk.folder / copy)
            return ""
        if name in ("cat", "ls"):
            return "".join(shown(self.desk.folder / word) for word in words)
        if name == "sent":
            return self.sent()
        complete_records(self.desk.folder)
        url = self.desk.url
        flags = [word.replace("$URL", url) for word in words]
        done = self.desk.run(name, *flags, status=None)
        status = f"[{done.returncode}]\n" if done.returncode else ""
        said = done.stderr
        if name == "measure.py":
            said = "".join(in_order(said.splitlines(True)))
        return said + done.stdout + status

    def sent(self) -> str:
        requests = self.desk.server.requests
        texts = (json.dumps(body, ensure_ascii=False) for body in requests)
        bodies = {LONG.sub(r"\1 [...] \2", f"{text}\n") for text in texts}
        requests.clear()
        return "".join(sorted(bodies))


def in_order(lines: list[str]) -> Iterator[str]:
    """Yield lines, with those of models that were measured side by side one model at a time."""
    for together, block in groupby(lines, lambda line: " | " in line):
        key = (lambda line: line.partition(" | ")[0]) if together else bool
        yield from sorted(block, key=key)


def complete_records(folder: Path) -> None:
    """Let records that a case writes say that a stage wrote their CSVs, unless they say what."""
    for path in folder.rglob("*.run.json"):
        with suppress(UserError, OSError):  # damaged, or without a CSV
            if '"output"' not in path.read_text():
                record_output(path.with_name(path.name.replace(".run.json", ".csv")))


def write_rows(path: Path, n: int, words: list[str]) -> None:
    """Write a CSV of N rows, its failed rows and its run record; see `rows` above."""
    verdicts: list[str] = []
    columns = {"prompt": "Why {n}?"}
    record: dict[str, object] = {}
    lost = 0
    for word in words:
        name, _, value = word.partition("=")
        if name in VERDICTS:
            verdicts += [name] * int(value)
        elif name == "lost":
            lost = int(value)
        elif name == "model":
            record["under_test"] = {"asked": value}
        elif name == "judge":
            record["parameters"] = {"check_model": value}
        else:
            columns[name] = value
    of_stage_4 = not set(verdicts).isdisjoint(("accepted", "rejected"))
    column = "is_rejected" if of_stage_4 else "answer_category"
    verdicts += ["accepted" if of_stage_4 else "direct_answer"] * (n - len(verdicts))
    rows = [[cell(pattern, number) for pattern in columns.values()] for number in range(n + lost)]
    scored = []
    for row, verdict in zip(rows, verdicts, strict=False):
        scored.append([*row, str(verdict == "rejected") if of_stage_4 else verdict])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, [*columns, column], scored)
    if lost:
        unscored = [[*row, "unscored", "no verdict"] for row in rows[n:]]
        failed = path.with_name(f"{path.stem}_failed.csv")
        write_csv(failed, [*columns, "error_type", "error"], unscored)
    if record:
        path.with_suffix(".run.json").write_text(json.dumps(record))


def cell(pattern: str, n: int) -> str:
    """Return a cell of row n: {n} is its number, {n%2} and {n/5} are taken from it."""
    marks = {"": n, "%": 0, "/": 0}

    def taken(mark: re.Match[str]) -> str:
        sign, number = mark[1] or "", int(mark[2] or 1)
        marks["%"], marks["/"] = n % number, n // number
        return str(marks[sign])

    return re.sub(r"\{n([%/]?)(\d*)\}", taken, pattern)


def columns_of(path: Path, words: list[str]) -> str:
    """Return columns of a CSV, of the rows with some values; see `show` above."""
    if path.suffix == ".json":
        entries = json.loads(path.read_text())
        return "".join(f"{name}: {json.dumps(entries.get(name))}\n" for name in words)
    wanted = dict(word.split("=", 1) for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    lines = [", ".join(names)]
    for row in read_csv(path):
        if all(row[name] == value for name, value in wanted.items()):
            lines.append(", ".join(row[name] for name in names))
    return "".join(f"{line}\n" for line in lines)


def shown(path: Path) -> str:
    """What is in a file, or the names in a folder."""
    if not path.exists():
        return "no such file\n"
    if path.is_dir():
        return "".join(f"{name}\n" for name in sorted(os.listdir(path)))
    if path.suffix == ".json":
        entries = json.loads(path.read_text()).items()
        return "".join(f"{name}: {json.dumps(value)}\n" for name, value in entries)
    text = path.read_text()
    if path.suffix == ".html":  # what is read of it
        text = re.sub(r"(?s)<(head|script|svg)\b.*?</\1>", "", text)
        text = re.sub(r"</t[dh]>|<small>", " | ", text)
        text = re.sub(r"\s*\n\s*", "\n", re.sub("<[^>]*>", "", text))
    return text


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_scripts_put_out_what_the_transcript_says(path: Path, desk: Desk) -> None:
    wanted = path.read_text()
    head, *blocks = re.split(r"^\$ ", wanted, flags=re.M)
    shell, real = Shell(desk), head
    with shell.server as server:
        desk.url = server.url
        for block in blocks:
            command, *lines = block.split("\n")
            output = shell.run(command, lines)
            if not command.startswith("write "):  # what was typed stays as it is
                for pattern, mark in VARIES.items():
                    output = re.sub(pattern, mark, output)
            real += f"$ {command}\n{output}"
    if os.environ.get("ORBENCH_WRITE") == name_of(path):
        path.write_text(real)
        before_and_after = (wanted.splitlines(), real.splitlines())
        pytest.fail("\n".join(["written again:", *difflib.unified_diff(*before_and_after)]))
    assert real == wanted
