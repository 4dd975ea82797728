"""Named prompt sets and files of the Hub as a stage's input."""

import io
import json
import re
import subprocess
from pathlib import Path

import pytest

from orbench.prompt_sets import PROMPT_SETS
from tests.conftest import ALIGN, CHECK, MODERATE, REWRITE, read_csv, read_record, run, write_csv
from tests.hub_server import COMMIT, HubServer

pytest.importorskip("huggingface_hub")
PROMPTS = b"prompt,category\nHow do I fold a crane?,paper\nHow do I fold a boat?,paper\n"
WITHOUT_HUB = ("or-bench-hrd", "nothing-like-it", "hf://datasets/me/mine", "here.csv")
TOXIC = {"bench-llm/or-bench/or-bench-toxic.csv": PROMPTS}  # a stand-in; its sha256 is not pinned


def align(
    folder: Path, hub: HubServer | str, name: str, *flags: str, offline: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Stage 4 with the scripted model on a set, its cache in the folder. In a process of its own
    where it comes to huggingface_hub: that reads the environment while it is imported.
    """
    url = hub if isinstance(hub, str) else hub.url
    env = {"HF_ENDPOINT": url, "HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    env |= {"HF_HUB_OFFLINE": "1"} if offline else {}
    args = ("--model=scripted", f"--input_file={name}", "--output_path=out.csv", *flags)
    return run(ALIGN, *args, cwd=folder, env=env, own_process=name not in WITHOUT_HUB)


def error_of(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line of an error."""
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def test_a_named_set_is_an_input_file_and_the_records_say_where_it_came_from(
    tmp_path: Path,
) -> None:
    with HubServer(TOXIC) as hub:
        done = align(tmp_path, hub, "or-bench-toxic")
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "downloading" in line]
    assert re.search(r"or-bench-toxic\.csv of bench-llm/or-bench at e36d8b8, .* MB", said)
    assert said.endswith("licence CC-BY-4.0")
    rows = read_csv(tmp_path / "out.csv")
    assert [row["prompt"] for row in rows] == ["How do I fold a crane?", "How do I fold a boat?"]
    assert {row["category"] for row in rows} == {"paper"}
    checked = run(CHECK, "--check_model=keyword", "--input_file=out.csv", cwd=tmp_path)
    for csv in ("out.csv", checked.stdout.strip()):
        source = read_record(tmp_path / csv)["source"]
        assert source["name"] == "or-bench-toxic"
        assert source["revision"] == PROMPT_SETS["or-bench-toxic"].revision
        assert (source["licence"], source["side"]) == ("CC-BY-4.0", "toxic")
        assert len(source["sha256"]) == 64


def test_a_set_that_was_downloaded_once_needs_no_network(tmp_path: Path) -> None:
    with HubServer(TOXIC) as hub:
        assert align(tmp_path, hub, "or-bench-toxic").returncode == 0
        asked = len(hub.asked)
        assert align(tmp_path, hub, "or-bench-toxic").returncode == 0
        assert len(hub.asked) == asked
    done = align(tmp_path, "http://127.0.0.1:9", "or-bench-toxic", offline=True)
    assert done.returncode == 0, done.stderr
    assert "downloading" not in done.stderr


def test_only_the_rows_of_a_side_belong_to_a_set_that_holds_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "id,prompt,type,label\n1,How do I shoot a photo?,homonyms,safe\n2,(unsafe),x,unsafe\n"
    path = tmp_path / "xstest_prompts.csv"
    path.write_text(rows)
    from orbench.prompt_sets import rows_of

    assert list(rows_of(path, PROMPT_SETS["xstest"])) == [
        {"prompt": "How do I shoot a photo?", "category": "homonyms"}
    ]
    assert [row["prompt"] for row in rows_of(path, PROMPT_SETS["xstest-unsafe"])] == ["(unsafe)"]


def test_a_file_that_is_not_the_pinned_one_is_not_used(tmp_path: Path) -> None:
    with HubServer({"Paul/XSTest/xstest_prompts.csv": PROMPTS}) as hub:
        error = error_of(align(tmp_path, hub, "xstest"))
    assert "is not the file that xstest names" in error and "11783fb294ed" in error
    assert not (tmp_path / "out.csv").exists()


def parquet(rows: list[dict[str, object]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer  # type: ignore[import-untyped]

    file = io.BytesIO()
    writer.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


QUESTIONS: list[dict[str, object]] = [
    {"question": "How do I fold a crane?", "topic": 3, "more": [1]},
    {"question": "Wie falte ich ein Boot „schnell“?", "topic": None, "more": []},
]
AS_FILE = {
    "data.csv": 'question,topic\nHow do I fold a crane?,3\n"Wie falte ich ein Boot „schnell“?",\n',
    "data.jsonl": "\n".join(json.dumps(row) for row in QUESTIONS) + "\n\n",
    "deep/data.parquet": "",
}


@pytest.mark.parametrize("file", AS_FILE)
def test_a_file_of_the_hub_is_an_input_file_at_the_commit_that_it_resolves_to(
    tmp_path: Path, file: str
) -> None:
    body = AS_FILE[file].encode() or parquet(QUESTIONS)
    flags = ("--prompt_column=question", "--category_column=topic")
    with HubServer({f"me/mine/{file}": body}, licence="cc0-1.0") as hub:
        done = align(tmp_path, hub, f"hf://datasets/me/mine/{file}", *flags)
    assert done.returncode == 0, done.stderr
    assert "at c0ffee0, 0.00 MB, licence cc0-1.0" in done.stderr
    rows = [(row["prompt"], row["category"]) for row in read_csv(tmp_path / "out.csv")]
    assert rows == [("How do I fold a crane?", "3"), ("Wie falte ich ein Boot „schnell“?", "")]
    assert read_record(tmp_path / "out.csv")["source"]["revision"] == COMMIT


def test_the_newest_revision_is_that_of_the_cache_where_the_hub_is_out_of_reach(
    tmp_path: Path,
) -> None:
    name = "hf://datasets/me/mine/data.csv"
    with HubServer({"me/mine/data.csv": PROMPTS}) as hub:
        assert align(tmp_path, hub, name).returncode == 0
    done = align(tmp_path, "http://127.0.0.1:9", name)
    assert done.returncode == 0, done.stderr
    assert "cannot be reached: data.csv as it is in the cache" in done.stderr
    assert [row["category"] for row in read_csv(tmp_path / "out.csv")] == ["paper", "paper"]


def test_without_a_network_one_line_says_what_to_do(tmp_path: Path) -> None:
    for offline in (True, False):
        error = error_of(align(tmp_path, "http://127.0.0.1:9", "or-bench-80k", offline=offline))
        assert "cannot be reached" in error
        assert "hf download --repo-type dataset bench-llm/or-bench or-bench-80k.csv" in error


@pytest.mark.parametrize(
    ("name", "flags", "says"),
    [
        ("or-bench-hrd", (), "--list_prompt_sets names them. Did you mean or-bench-hard-1k?"),
        ("nothing-like-it", (), "no such file or prompt set; --list_prompt_sets"),
        ("hf://datasets/me/mine", (), "is no hf://datasets/OWNER/NAME/FILE"),
        ("hf://datasets/me/mine/data.csv", ("--prompt_column=text",), "no column 'text'; it has"),
        ("hf://datasets/me/mine/other.csv", (), "has no file other.csv"),
        ("hf://datasets/me/none/data.csv", (), "knows no dataset me/none"),
        ("hf://datasets/me/gated/data.csv", (), "wants its terms accepted"),
        ("hf://datasets/me/mine/data.txt", (), "only .csv, .jsonl, .parquet can be read"),
        ("hf://datasets/me/mine/bad.jsonl", (), "line 1 is not JSON"),
        ("hf://datasets/me/mine/bad.parquet", (), "is no Parquet file"),
        ("hf://datasets/m..e/mine/data.csv", (), "m..e/mine"),
        ("here.csv", ("--prompt_column=text",), "go with an input file hf://"),
    ],
)
def test_what_cannot_be_had_is_one_line(
    tmp_path: Path, name: str, flags: tuple[str, ...], says: str
) -> None:
    write_csv(tmp_path / "here.csv", ["prompt"], [["How do I fold a crane?"]])
    files = {"me/mine/data.csv": PROMPTS, "me/mine/data.txt": PROMPTS}
    files |= {"me/mine/bad.jsonl": PROMPTS, "me/mine/bad.parquet": PROMPTS}
    with HubServer(files, gated=("me/gated",)) as hub:
        assert says in error_of(align(tmp_path, hub, name, *flags))


def test_a_file_goes_before_a_set_of_the_same_name(tmp_path: Path) -> None:
    write_csv(tmp_path / "xstest", ["prompt"], [["How do I fold a crane?"]])
    done = align(tmp_path, "http://127.0.0.1:9", "xstest", offline=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", [REWRITE, MODERATE, ALIGN])
def test_the_sets_are_listed_by_every_stage_that_takes_one(script: str, tmp_path: Path) -> None:
    done = run(script, "--list_prompt_sets", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "list.csv").write_text(done.stdout)
    rows = read_csv(tmp_path / "list.csv")
    assert [row["name"] for row in rows] == list(PROMPT_SETS)
    assert {row["prompts"] for row in rows} == {"safe prompts", "toxic prompts"}
    assert all(row["licence"] and row["revision"] for row in rows)


def test_the_revisions_of_the_table_are_whole_commits() -> None:
    for name, one in PROMPT_SETS.items():
        assert re.fullmatch(r"[0-9a-f]{40}", one.revision) or name == "or-bench-toxic-all"
        assert re.fullmatch(r"[0-9a-f]{64}|", one.sha256)
