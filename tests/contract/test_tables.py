r"""Cases that differ in a value or two: `tables/*.toml`, a line or two of output each.

each.run = "..."              # in front of the words of each case
each.files = {"p.csv" = "prompt\nWhy?\n"}   # for all; a case may replace some

[[case]]
name = "a prompt that is empty"
files = {"p.csv" = "prompt\n\n"}
reply = "Fold it."            # the text of each answer; with status 400 and so on, a body
run = "--limit=0"
says = ["error: p.csv ..."]   # lines of stderr, in this order, others may stand between them
silent = ["unscored"]         # texts that stand nowhere in it
tells = "o.csv"               # stdout's line
status = 1                    # 0 if it is left out
sends = 0                     # requests
sent = {temperature = 0}      # fields of each request's body
rows = {"o.csv" = [{prompt = "Why?"}]}      # cells of CSVs, all their rows
"""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Desk
from tests.server import Reply, answer

Case = dict[str, Any]
FOLDER = Path(__file__).parent / "tables"


def cases() -> list[Any]:
    """All cases, named after their file."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        each = table.get("each", {})
        for case in table["case"]:
            words = f"{each.get('run', '')} {case.get('run', '')}"
            files = each.get("files", {}) | case.get("files", {})
            whole = each | case | {"run": words, "files": files}
            found.append(pytest.param(whole, id=f"{path.stem}: {case['name']}"))
    return found


@pytest.mark.parametrize("case", cases())
def test_a_case_of_a_table(case: Case, desk: Desk) -> None:
    for name, text in case["files"].items():
        desk.write(name, text)
    reply = case.get("reply", "Fold it.")
    code = case.get("code", 200)
    desk.serve(answer(reply) if code == 200 else Reply(reply, code))
    script, *words = shlex.split(case["run"])
    flags = [word.replace("$URL", desk.url) for word in words]
    done = desk.run(script, *flags, env=case.get("env"), status=case.get("status", 0))
    said = done.stderr.replace(desk.url.removeprefix("http://").split("/")[0], "SERVER")
    check_lines(said, case.get("says", []))
    for text in case.get("silent", []):
        assert text not in said
    if "tells" in case:
        assert done.stdout == f"{case['tells']}\n"
    if "sends" in case:
        assert desk.sent == case["sends"]
    for body in desk.server.requests:
        fields = case.get("sent", {})
        assert {name: body.get(name) for name in fields} == fields, json.dumps(body)
    for name, wanted in case.get("rows", {}).items():
        rows = desk.rows(name)
        shown = [
            {column: row[column] for column in cells}
            for row, cells in zip(rows, wanted, strict=True)
        ]
        assert shown == wanted


def check_lines(text: str, wanted: list[str] | str) -> None:
    """Assert that these lines stand in a text, in this order."""
    lines = iter(text.splitlines())
    for line in [wanted] if isinstance(wanted, str) else wanted:
        assert line in lines, f"{line!r} is not in:\n{text}"
