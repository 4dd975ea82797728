"""Which files of a dataset on the Hugging Face Hub make up a split, by their names."""

from pathlib import Path

import huggingface_hub
import pytest

from orbench.base.messages import UserError
from orbench.stages.hub import fetch, prompt_set_at

# What is named -> its files, among which are others.
WHOLE = {
    "?split=train": "default/train/0000.parquet default/train/0001.parquet",
    "?config=C&split=train": "C/train/0000.parquet",
    "@main/data/train-*.parquet": (
        "data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet"
    ),
    "@main/*.csv": "test-00000-of-00001.csv train-00000-of-00001.csv",
    "@main/d*/*.txt": "d/2023.txt d/2025.txt d/e/a**.txt",
    "@main/y/*.parquet": "y/2023.parquet y/2025.parquet",
    "@main/data/train-00000-of-00002.parquet": "data/train-00000-of-00002.parquet",
}
INCOMPLETE = {
    "?split=train": "default/train/0001.parquet",
    "@main/*.csv": "test-00000-of-00001.csv train-00000-of-00002.csv",
    "@main/t*.jsonl": "u.jsonl",
    "@main/a**.jsonl": "u.jsonl",
    "@main//*.jsonl": "u.jsonl",
    "@main/folder/../*.jsonl": "u.jsonl folder/v.csv",
}


@pytest.fixture
def downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the download, whatever is asked for."""
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **given: tmp_path)
    listed = lambda *_, **given: [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*")]  # noqa: E731
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    return tmp_path


def write(folder: Path, names: str) -> list[Path]:
    """Write empty files."""
    paths = [folder / name for name in names.split()]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return paths


@pytest.mark.parametrize(("named", "names"), WHOLE.items())
def test_a_split_is_in_a_folder_and_a_star_names_several_files(
    named: str, names: str, downloaded: Path
) -> None:
    paths = write(downloaded, names)
    write(downloaded, "other/train/0000.parquet data/test-00000-of-00001.parquet")
    assert fetch(prompt_set_at(f"hf://datasets/owner/name{named}", {})) == (downloaded, paths)


@pytest.mark.parametrize(("named", "names"), INCOMPLETE.items())
def test_files_of_which_one_is_missing_are_not_read(
    named: str, names: str, downloaded: Path
) -> None:
    write(downloaded, names)
    with pytest.raises(UserError, match="of owner/name cannot be read: the files there are"):
        fetch(prompt_set_at(f"hf://datasets/owner/name{named}", {}))


@pytest.mark.parametrize(
    ("address", "revision", "name"),
    [
        ("hf://datasets/owner/name/a.csv", "main", "a"),
        ("hf://datasets/owner/name@abc/a.csv", "abc", "a"),
        ("hf://datasets/owner/name?split=a", "refs/convert/parquet", "name-a"),
        ("hf://datasets/owner/name?split=a&revision=abc", "abc", "name-a"),
    ],
)
def test_without_a_revision_a_file_is_read_from_main_and_a_split_from_what_the_hub_converted(
    address: str, revision: str, name: str, downloaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def download(repository: str, revision: str, **given: object) -> Path:
        asked.append(revision)
        return downloaded

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    write(downloaded, "a.csv default/a/0000.parquet")
    wanted = prompt_set_at(address, {})
    fetch(wanted)
    assert (asked, wanted.name) == ([revision], name)
