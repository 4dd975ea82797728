"""Prompts on the Hugging Face Hub: files of a dataset, or one of its splits; labeled responses on
GitHub.

    hf://datasets/OWNER/NAME@REVISION/FILE
    hf://datasets/OWNER/NAME?config=C&split=S&revision=R

A split is read from the parquet files that the Hub makes of every dataset, on the branch
refs/convert/parquet; a revision is a commit of that branch. A * in FILE names several files.
"""

import glob
import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from orbench.base.grouping import grouped
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
# A file among several: 0001.parquet, train-00000-of-00002.csv.
PART = re.compile(r"(\d{4,})(?=\.parquet$|-of-(\d+))")


class PromptSet(NamedTuple):
    """A public set of prompts: where it is, and how its columns map to ours."""

    repository: str
    file: str  # or several, with *; none for a split
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
    pattern = glob.escape(f"{wanted.config}/{wanted.split}/") + "*.parquet"
    if wanted.file:
        pattern = glob.escape(wanted.file).replace("[*]", "*")
    try:
        folder = Path(snapshot_download(repository, **at, allow_patterns=pattern))
        files = _named(folder, pattern)
        if files and ("*" not in pattern or _are_all(files, converted=not wanted.file)):
            return folder, files
        names = HfApi().list_repo_files(repository, **at)
        available = sorted({PART.sub("*", name) for name in names})
        why = f"the files there are {clean(', '.join(available))[:600]}"
    except errors.GatedRepoError:
        raise UserError(
            f"accept the terms on huggingface.co/datasets/{repository}, then set HF_TOKEN"
        ) from None
    except errors.LocalEntryNotFoundError:
        why = "the Hugging Face Hub cannot be reached, and the file is not in its cache"
    except errors.RevisionNotFoundError:
        why = f"there is no revision {revision}; name another one, or a file: NAME@main/FILE"
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
                why = one_line(without_query(f"{name} of {commit} cannot be read: {error}"))
                raise UserError(
                    f"{why}; check the network, or name a mirror in GITHUB_RAW_ENDPOINT"
                ) from None
            make_folder(path.parent)
            write_bytes(path, reply.content)
        if sha256_of(path) != sha256:
            path.unlink()
            raise UserError(f"{name} of {commit} is not the file expected: its SHA-256 differs")
        yield path


def _named(folder: Path, pattern: str) -> Paths:
    """Return the files that are named, by the Hub's own rule: a * stands for folders, too."""
    files = filter(Path.is_file, folder.rglob("*"))
    return sorted(file for file in files if fnmatch(file.relative_to(folder).as_posix(), pattern))


def _are_all(files: Paths, *, converted: bool) -> bool:
    """Return whether no part is missing, as after a download that was cut off. converted: by the
    Hub, which calls parts 0000 on; elsewhere such a number may be a year.
    """
    for parts in grouped(files, lambda file: PART.sub("", str(file))).values():
        last = PART.search(parts[-1].name)
        if not last:
            continue
        number, of = last.groups()
        if converted:
            of = of or int(number) + 1
        if of and len(parts) != int(of):
            return False
    return True
