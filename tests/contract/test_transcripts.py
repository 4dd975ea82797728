"""What scripts write, word for word: `transcripts/` holds commands and all that they put out.

A line `$ command` runs a script in an empty folder against a loopback server; behind it stand the
messages, stdout and the exit status, if it is not 0. $URL is the server's address. Six commands
are none of the project's:

    $ write FILE          the lines that follow, each after `> `
    $ cat FILE ...        what is in files
    $ ls FOLDER           the names in a folder
    $ cp FILE FILE        a copy
    $ reply TEXTS => REPLY to requests whose JSON holds these texts (`a & b`); of several, the
                          latest counts. REPLY is the text of an answer, or STATUS BODY
    $ sent                what was sent since the last time, in the order of the alphabet

After a change of behavior, `ORBENCH_WRITE=1 pytest tests/contract/test_transcripts.py` writes the
files again; what has changed is then read in the diff.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from orbench.refusals import rules
from tests.conftest import Desk
from tests.server import KEY, Body, Reply, answer

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
# What differs from run to run, or from machine to machine.
VARIES = {
    r"(127\.0\.0\.1|localhost):\d+": "SERVER",
    r"\d{4}-\d\d-\d\dT[\d:.+]+Z?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d": "TIME",
    r"\d{4}-\d\d-\d\d": "DATE",
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
        desk.serve(self.reply)

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
        if name == "cp":
            shutil.copy(*(self.desk.folder / word for word in words))
            return ""
        if name in ("cat", "ls"):
            return "".join(shown(self.desk.folder / word) for word in words)
        if name == "sent":
            return self.sent()
        url = self.desk.url
        env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
        done = self.desk.run(name, *(word.replace("$URL", url) for word in words), env=env)
        status = f"[{done.returncode}]\n" if done.returncode else ""
        return done.stderr + done.stdout + status

    def sent(self) -> str:
        requests = self.desk.server.requests
        texts = (json.dumps(body, ensure_ascii=False) for body in requests)
        bodies = {LONG.sub(r"\1 [...] \2", f"{text}\n") for text in texts}
        requests.clear()
        return "".join(sorted(bodies))


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
        text = re.sub(r'(?s)<(style|script|svg).*?</\1>|"data:[^"]*"', "", text) + "\n"
    return text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scripts_put_out_what_the_transcript_says(path: Path, desk: Desk) -> None:
    wanted = path.read_text()
    head, *blocks = re.split(r"^\$ ", wanted, flags=re.M)
    shell, real = Shell(desk), head
    for block in blocks:
        command, *lines = block.split("\n")
        output = shell.run(command, lines)
        if not command.startswith("write "):  # what was typed stays as it is
            for pattern, mark in VARIES.items():
                output = re.sub(pattern, mark, output)
        real += f"$ {command}\n{output}"
    if os.environ.get("ORBENCH_WRITE"):
        path.write_text(real)
    assert real == wanted
