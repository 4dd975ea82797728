"""What prompts may come from: files in several formats, the web, named sets."""

import json
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ALIGN, Desk
from tests.contract.test_bad_input import hub_env
from tests.hub_server import HubServer

pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
from orbench.base.prompts import prompt_id  # noqa: E402
from orbench.base.words import HUMAN_LABELS  # noqa: E402
from orbench.stages.prompt_sets import LABELED_SETS, PROMPT_SETS  # noqa: E402

ROWS: list[dict[str, Any]] = [
    {"question": "How do I fold a crane; and when?", "kind": "paper", "n": 1, "x": None},
    {"question": "How do I fold a boat?", "kind": "paper", "n": 2, "x": ["a"]},
]


def parquet_of(path: Path, rows: list[dict[str, Any]]) -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def as_json_lines(path: Path) -> None:
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n", "utf-8-sig")


def with_semicolons(path: Path) -> None:
    lines = ["question;kind;n;x", '"How do I fold a crane; and when?";paper;1;']
    path.write_text("\n".join([*lines, 'How do I fold a boat?;paper;2;"[""a""]"']))


FORMATS: dict[str, Callable[[Path], object]] = {
    "p.jsonl": as_json_lines,
    "p.json": lambda path: path.write_text(json.dumps(ROWS, indent=1)),
    "p.parquet": lambda path: parquet_of(path, ROWS),
    "p.csv": with_semicolons,
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_told_by_its_content_and_all_columns_pass_through(
    desk: Desk, name: str
) -> None:
    FORMATS[name](desk.folder / name)
    desk.serve()
    columns = ("--prompt_column=question", "--category_column=kind")
    desk.stage(ALIGN, f"--input_file={name}", *columns)
    found = [(row["prompt"], row["category"], row["n"], row["x"]) for row in desk.rows()]
    crane, boat = (row["question"] for row in ROWS)
    assert found == [(crane, "paper", "1", ""), (boat, "paper", "2", '["a"]')]


def test_dates_and_decimals_of_parquet_are_text(desk: Desk) -> None:
    nested = {"day": date(2026, 1, 2), "price": Decimal("1.50")}
    parquet_of(desk.folder / "p.parquet", [{"prompt": "Why?", "about": nested, **nested}])
    desk.serve()
    desk.stage(ALIGN, "--input_file=p.parquet")
    (row,) = desk.rows()
    assert row["about"] == '{"day": "2026-01-02", "price": "1.50"}'
    assert (row["day"], row["price"]) == ("2026-01-02", "1.50")


def test_every_named_set_is_pinned_and_has_a_side_and_a_license() -> None:
    for name, one in PROMPT_SETS.items():
        assert re.fullmatch("[0-9a-f]{40}", one.revision), name
        assert one.side in ("over_refusal", "toxic") and one.license, name
    for name, entry in LABELED_SETS.items():
        assert re.fullmatch(r"[\w-]+/[\w-]+/[0-9a-f]{40}", entry["commit"]), name
        assert {"", *HUMAN_LABELS} >= {entry["other_labels"], *entry["labels"].values()}, name


def test_both_sides_of_a_paired_set_share_the_seed_of_a_row(desk: Desk) -> None:
    rows = [{"adversarial_prompt": f"Bad {n}", "benign_prompt": f"Good {n}"} for n in range(3)]
    content = parquet_of(desk.folder / "f", [row | {"risk_domain": "folds"} for row in rows])
    name = "ScaleAI/fortress_public/data/train-00000-of-00001.parquet"
    with HubServer({name: content.read_bytes()}, gated=("allenai/wildguardmix",)) as hub:
        env = hub_env(desk, hub.url)
        for side in ("benign", "adversarial"):
            flags = (f"--input_file=fortress-{side}", "--model=scripted", "--output_path=o.csv")
            desk.run(ALIGN, *flags, "--overwrite", env=env, own_process=True)
            found = [(row["prompt"][:-2], row["seed_id"]) for row in desk.rows()]
            word = {"benign": "Good", "adversarial": "Bad"}[side]
            assert found == [(word, prompt_id(f"Bad {n}")) for n in range(3)]
        gated = ("--model=scripted", "--input_file=wildguardtest-harmful")
        line = desk.stopped(ALIGN, *gated, env=env, own_process=True)
        assert "huggingface.co/datasets/allenai/wildguardmix" in line and "HF_TOKEN" in line
