"""What scripts stop at before anything is sent or written: `doors.toml`, a line a case."""

import shlex
from pathlib import Path

import pytest

from orbench.base.toml_files import toml_beside
from tests.conftest import Desk

DOORS = toml_beside(__file__, "doors.toml")
SCRIPTS = sorted(DOORS["stops"] | DOORS["wrong"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: Path(script).stem)
def test_a_script_stops_at_its_door_with_one_line(desk: Desk, script: str) -> None:
    for name, text in DOORS["files"].items():
        desk.write(name, text)
    server = desk.serve()
    before = desk.files()
    for status, kind in ((1, "stops"), (2, "wrong")):
        for words, line in DOORS[kind].get(script, {}).items():
            done = desk.run(script, *shlex.split(words), status=status)
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            assert (errors, done.stdout) == ([f"error: {line}"], ""), words
    assert desk.files() == before and not server.sent
