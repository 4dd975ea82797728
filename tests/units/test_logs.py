"""Logs of other tools; what becomes of their samples is in tests/contract/transcripts/imports."""

import json
from pathlib import Path

import pytest

from orbench.stages import logs

FOLDER = Path(__file__).parents[1] / "contract" / "logs"


@pytest.mark.parametrize("name", ["folding.json", "promptfoo.json"])
@pytest.mark.parametrize("size", [7, 100, 2**18])
def test_a_document_is_read_in_pieces_of_any_size(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "CHUNK", size)
    whole = json.loads((FOLDER / name).read_text())
    form = logs.FORMATS["inspect" if "eval" in whole else "promptfoo"]
    found = list(logs.places_in(FOLDER / name, form))
    assert [place["sample"] for place in found] == whole.get(
        "samples", whole["results"].get("results")
    )
    assert whole.keys() | {"log"} == found[-1]["run"].keys()
