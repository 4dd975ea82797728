"""Splits of datasets on the Hugging Face Hub as input."""

import io
import json
from hashlib import sha256
from typing import Any

import pytest

from tests.conftest import ALIGN, Desk, run
from tests.contract.test_bad_input import hub_env
from tests.hub_server import COMMIT, CONVERTED_COMMIT, HubServer

pytest.importorskip("huggingface_hub")
pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
SCRIPTED = ("--model=scripted", "--output_path=o.csv", "--overwrite")


def asking(*prompts: str, column: str = "prompt", **more: object) -> bytes:
    """A parquet file with a row for each prompt."""
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([{column: p} | more for p in prompts]), file)
    return file.getvalue()


CONVERTED_FILES = {
    "me/mine/en/test/0000.parquet": asking("A?", "B?", column="question", seed_id="s"),
    "me/mine/en/test/0001.parquet": asking("C?", column="question", seed_id="t"),
    "me/mine/fr/test/0000.parquet": asking("D?", column="question", seed_id="u"),
}


def test_a_split_is_read_recorded_and_read_again_offline(desk: Desk) -> None:
    with HubServer({}, converted=CONVERTED_FILES) as hub:
        address = "hf://datasets/me/mine?config=en&split=test"
        column = "--prompt_column=question"
        env = hub_env(desk, hub.url)
        input_file = f"--input_file={address}"
        run(ALIGN, input_file, column, *SCRIPTED, cwd=desk.folder, env=env, own_process=True)
    record = desk.record()
    source = record["source"]
    assert (source["revision"], source["config"]) == (CONVERTED_COMMIT, "en")
    english = {name[8:]: body for name, body in CONVERTED_FILES.items() if "/en/" in name}
    assert source["files"] == {name: sha256(body).hexdigest() for name, body in english.items()}
    assert input_file in record["command"]
    env["HF_HUB_OFFLINE"] = "1"
    pinned = f"{input_file}&revision={CONVERTED_COMMIT}"
    run(ALIGN, pinned, column, *SCRIPTED, cwd=desk.folder, env=env, own_process=True)
    found = [(row["prompt"], row["seed_id"]) for row in desk.rows()]
    assert found == [("A?", "s"), ("B?", "s"), ("C?", "t")]


def test_files_of_a_revision_are_measured_beside_each_other(desk: Desk) -> None:
    turns = [{"role": "user", "content": text} for text in ("Fold it.", "Again?")]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    files = {
        "me/mine/data/test-00000-of-00002.parquet": asking("B?", category="red"),
        "me/mine/data/test-00001-of-00002.parquet": asking("A?", category="red"),
        "me/mine/chats/test.jsonl": json.dumps({"messages": turns, "tools": tools}).encode(),
    }
    with HubServer(files, converted=CONVERTED_FILES) as hub:
        flags = [
            "--model=scripted",
            "--prompts=hf://datasets/me/mine@main/data/test-*.parquet",
            "--toxic=hf://datasets/me/mine@main/chats/test.jsonl",
            "--output_dir=results",
        ]
        env = hub_env(desk, hub.url)
        run("measure.py", *flags, cwd=desk.folder, env=env, own_process=True)
    responses = {"over_refusal/test-_": ["B?", "A?"], "toxic/test": ["Again?"]}
    for name, prompts in responses.items():
        path = f"results/responses/{name}/scripted.csv"
        assert desk.cells("prompt", path) == prompts
        assert desk.record(path)["source"]["revision"] == COMMIT
    (row,) = desk.rows(path)
    assert (json.loads(row["messages"]), json.loads(row["tools"])) == (turns, tools)


def test_a_split_that_is_not_there_is_one_line_with_those_that_are(desk: Desk) -> None:
    there = "the files there are en/test/*.parquet, fr/test/*.parquet"
    says = {
        "mine": f"split (none named), config default, of me/mine cannot be read: {there}",
        "mine?config=en&split=*": f"split *, config en, of me/mine cannot be read: {there}",
        "bare?split=test": "no revision refs/convert/parquet; name another one, or a file",
        "bare?split=test&revision=main": "the files there are test.csv",
        "half@main/data/*.csv": "the files there are data/test-*-of-00002.csv",
    }
    names = ("me/bare/test.csv", "me/half/data/test-00000-of-00002.csv")
    files = {name: b"prompt\nA?\n" for name in names}
    with HubServer(files, converted=CONVERTED_FILES) as hub:
        for name, what in says.items():
            flag = f"--input_file=hf://datasets/me/{name}"
            env = hub_env(desk, hub.url)
            assert what in desk.stopped(ALIGN, *SCRIPTED, flag, env=env, own_process=True)
