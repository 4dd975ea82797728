"""Prompts on the Hugging Face Hub: a file of a dataset, or one of its splits; labeled responses on
GitHub.

    hf://datasets/OWNER/NAME@REVISION/FILE
    hf://datasets/OWNER/NAME?config=C&split=S&revision=R

Without a revision, a split is read from the parquet files that the Hub makes of every dataset, on
the branch refs/convert/parquet; else from the files in that revision. A file's name tells the
config (its folder) and the split. Splits that only the dataset's card defines are not covered.
"""

import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from orbench.base.messages import UserError, clean, one_line, without_query
from orbench.base.tables import Paths, file_name_part, make_folder, sha256_of, write_bytes
from orbench.base.words import Json, Texts

ADDRESS = re.compile(
    r"hf://datasets/([^/@?]+/[^/@?]+)"
    r"(?:(?:@([^/?]+))?/([^?]+)|(?:\?((?:(?:config|split|revision)=[^&]+&?)+))?)"
)
FORMS = (
    "hf://datasets/OWNER/NAME?config=C&split=S&revision=R or hf://datasets/OWNER/NAME@REVISION/FILE"
)
CONVERTED = "refs/convert/parquet"
# Config -> its folders; those of other configs are called like them.
FOLDERS = {"default": ["default/", "data/", ""]}
# What follows a split's name in its files.
ENDINGS = (
    "/????.parquet",  # the Hub's own files: CONFIG/SPLIT/0000.parquet
    ".parquet",
    ".csv",
    ".jsonl",
    "-?????-of-?????.parquet",  # train-00000-of-00002.parquet
    "-?????-of-?????.csv",
    "-?????-of-?????.jsonl",
)
NUMBER = re.compile(r"\d{4,}(?=\.parquet$|-of-\d)")  # of a file among those of a split


class PromptSet(NamedTuple):
    """A public set of prompts: where it is, and how its columns map to ours."""

    repository: str
    file: str  # none for a split
    revision: str  # a commit; "" is the newest
    license: str = ""
    side: str = ""  # a key of SIDES
    rows: int = 0  # as the makers say
    prompt: str = "prompt"
    category: str = "category"
    only: Mapping[str, str] = {}  # column and value of the rows that belong to it
    seed: str = ""  # the column with the toxic prompt that a row's prompt is paired with
    name: str = ""
    config: str = "default"
    split: str = ""


def prompt_set_at(address: str, columns: Json) -> PromptSet:
    """Return what an address on the Hub names, with these columns. Raises UserError."""
    parts = ADDRESS.fullmatch(address)
    if not parts:
        raise UserError(f"{without_query(address)}: an address on the Hub is {FORMS}")
    repository, revision, file, query = parts.groups("")
    given: Json = dict(parse_qsl(query))
    revision = given.pop("revision", revision)
    words = [Path(file or repository).stem, *given.values()]
    name = file_name_part("-".join(words))
    return PromptSet(repository, file, revision, name=name, **given, **columns)


def fetch(wanted: PromptSet) -> tuple[Path, Paths]:
    """Return a set's folder in huggingface_hub's cache, called like the commit, and its files in
    order. Raises UserError.
    """
    import logging

    from httpx2 import HTTPError
    from huggingface_hub import HfApi, errors, snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line for each attempt
    repository = wanted.repository
    what = wanted.file or f"split {wanted.split or '(none named)'}, config {wanted.config},"
    revision = wanted.revision or ("main" if wanted.file else CONVERTED)
    at: Json = {"repo_type": "dataset", "revision": revision}
    patterns = _patterns(wanted)
    try:
        folder = Path(snapshot_download(repository, **at, allow_patterns=patterns))
        files = []
        for pattern in patterns:
            files += sorted(folder.glob(pattern))
        if len({NUMBER.sub("", str(file)) for file in files}) == 1 and _all_parts(files):
            return folder, files
        names = HfApi().list_repo_files(repository, **at)
        available = sorted({NUMBER.sub("*", name) for name in names})
        why = f"the files there are {clean(', '.join(available))[:600]}"
    except errors.GatedRepoError:
        raise UserError(
            f"accept the terms on huggingface.co/datasets/{repository}, then set HF_TOKEN"
        ) from None
    except errors.LocalEntryNotFoundError:
        why = "the Hugging Face Hub cannot be reached, and the file is not in its cache"
    except errors.RevisionNotFoundError:
        why = f"there is no revision {revision}; name another one, such as main"
    except (HTTPError, errors.HFValidationError, OSError) as error:
        why = clean(str(error))[:200]
    raise UserError(f"{what} of {repository} cannot be read: {why}")


def fetch_from_github(commit: str, files: Texts) -> Iterator[Path]:
    """Yield files of `OWNER/NAME/COMMIT`; what is not in our cache is downloaded.

    files: with their SHA-256. Raises UserError, OSError.
    """
    from httpx2 import HTTPError, InvalidURL, get

    for name, sha256 in files.items():
        path = Path.home() / ".cache/orbench" / commit / name
        if not path.is_file():
            endpoint = os.environ.get("GITHUB_RAW_ENDPOINT", "https://raw.githubusercontent.com")
            try:
                reply = get(f"{endpoint}/{commit}/{name}").raise_for_status()
            except (HTTPError, InvalidURL) as error:
                why = f"{name} of {commit} cannot be read: {error}"
                raise UserError(one_line(without_query(why))) from None
            make_folder(path.parent)
            write_bytes(path, reply.content)
        if sha256_of(path) != sha256:
            path.unlink()
            raise UserError(f"{name} of {commit} is not the file expected: its SHA-256 differs")
        yield path


def _all_parts(files: Paths) -> bool:
    """Return whether all of a split's files are there: 0000 on, or 00000-of-00002 on."""
    parts = re.search(r"-of-(\d+)|^(\d{4})\.parquet$", files[-1].name)
    if not parts:
        return True
    of, last = parts.groups()
    return len(files) == (int(of) if of else int(last) + 1)


def _patterns(wanted: PromptSet) -> list[str]:
    """Return what the names of a set's files look like; one of the patterns fits."""
    if wanted.file:
        return [glob.escape(wanted.file)]
    split = wanted.split or "(none)"
    folders = FOLDERS.get(wanted.config, [glob.escape(f"{wanted.config}/")])
    return [folder + glob.escape(split) + ending for folder in folders for ending in ENDINGS]
