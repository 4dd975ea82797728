"""Which files of a dataset on the Hugging Face Hub make up a split, by their names."""

from pathlib import Path

import huggingface_hub
import pytest

from orbench.base.messages import UserError
from orbench.stages.hub import fetch, prompt_set_at

# Files -> the config that they are of; their split is called train.
LAYOUTS = {
    "default/train/0000.parquet default/train/0001.parquet": "",
    "data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet": "",
    "train-00000-of-00001.csv": "",
    "train-00000-of-00001.jsonl": "",
    "data/train.parquet": "",
    "train.csv": "",
    "train.jsonl": "",
    "C/train/0000.parquet": "C",
    "C/train.csv": "C",
}
INCOMPLETE = [
    "train-00000-of-00002.csv",
    "train/0001.parquet",
    "train.csv train.jsonl",
    "train-00000-of-00001.csv train-00000-of-00001.jsonl",
    "test.csv",
]


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


@pytest.mark.parametrize(("names", "config"), LAYOUTS.items())
def test_a_split_is_found_by_the_names_of_its_files(
    names: str, config: str, downloaded: Path
) -> None:
    paths = write(downloaded, names)
    query = f"config={config}&split=train" if config else "split=train"
    wanted = prompt_set_at(f"hf://datasets/owner/name?{query}", {})
    assert fetch(wanted) == (downloaded, paths)


@pytest.mark.parametrize("names", INCOMPLETE)
def test_a_split_that_lacks_a_part_or_has_two_forms_is_not_read(
    names: str, downloaded: Path
) -> None:
    write(downloaded, names)
    with pytest.raises(UserError, match="split train, config default, of owner/name cannot be"):
        fetch(prompt_set_at("hf://datasets/owner/name?split=train", {}))


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
    write(downloaded, "a.csv")
    wanted = prompt_set_at(address, {})
    fetch(wanted)
    assert (asked, wanted.name) == ([revision], name)
