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
        path = desk.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    server = desk.serve()
    before = desk.files()
    for status, kind in ((1, "stops"), (2, "wrong")):
        for words, line in DOORS[kind].get(script, {}).items():
            done = desk.run(script, *shlex.split(words))
            assert (done.returncode, done.stdout) == (status, ""), words
            assert done.stderr.splitlines()[-1] == f"error: {line}", words
            assert (done.stderr.count("error: ") == 1) and "Traceback" not in done.stderr
    assert desk.files() == before and not server.requests
