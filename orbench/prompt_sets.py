"""Named sets of prompts, and files of the Hugging Face Hub, where a stage takes an input file.

    --input_file=or-bench-hard-1k
    --input_file=hf://datasets/OWNER/NAME/FILE --prompt_column=question --category_column=topic

A file there is CSV, JSON lines or Parquet (by its ending: .csv, .jsonl, .parquet); a revision may
follow the name, OWNER/NAME@REVISION. It is downloaded into huggingface_hub's cache. What a stage
reads stands in `orbench/` of the same cache: a CSV with the columns prompt and, where there is one,
category, and a run record, which says where it came from (`source`); the records of the stages
repeat it.
"""

import argparse
import csv
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from orbench import record
from orbench.columns import SIDES, Row
from orbench.hub import INSTALL, HubFile
from orbench.table import NO_NAME, Table, file_name_part, sha256_of, storable, write_rows
from orbench.terminal import UserError, clean, did_you_mean


class PromptSet(NamedTuple):
    """A public set of prompts: where it is, and how its columns map to ours."""

    repository: str  # of datasets on the Hub
    file: str
    revision: str  # the commit; empty: the newest, which the record names
    licence: str
    side: str  # a key of SIDES; empty: not known
    rows: str  # how many, as the makers say; for the list
    prompt: str = "prompt"
    category: str = "category"  # empty: none
    only: tuple[str, str] | None = None  # (column, value) of the rows that belong to it
    sha256: str = ""  # of the file; empty: not known


OR_BENCH = ("bench-llm/or-bench", "e36d8b80e81837c8a8f264bbb2a49f1b32c7e272")
XSTEST = ("Paul/XSTest", "xstest_prompts.csv", "f600c994b256f12867dfa5b3eb3d545a3e62f8b5")
XSTEST_SHA256 = "11783fb294ed017473ee53c207d71f2161c7672c8d0b037501e78387f801cb5a"
JBB = ("JailbreakBench/JBB-Behaviors", "886acc352a31533ffbcf4ef22c744658688086fc")

# Licences and columns as the sets' cards give them. XSTest and JBB-Behaviors hold both sides.
# fmt: off
PROMPT_SETS = {
    "or-bench-hard-1k": PromptSet(
        OR_BENCH[0], "or-bench-hard-1k.csv", OR_BENCH[1], "CC-BY-4.0", "over_refusal", "1,319",
        sha256="a6e2f1166416efe5901f3bb05c47dc92ab3aca3acfe143693d38b8057d841e6d",
    ),
    "or-bench-80k": PromptSet(
        OR_BENCH[0], "or-bench-80k.csv", OR_BENCH[1], "CC-BY-4.0", "over_refusal", "80,359",
    ),
    "or-bench-toxic": PromptSet(
        OR_BENCH[0], "or-bench-toxic.csv", OR_BENCH[1], "CC-BY-4.0", "toxic", "655",
    ),
    # Its commit is only known by its first digits (cb25d89), which the Hub does not take.
    "or-bench-toxic-all": PromptSet(
        "bench-llms/or-bench-toxic-all", "all_toxic_prompts.csv", "",
        "CC-BY-4.0", "toxic", "22,911",
    ),
    "xstest": PromptSet(
        *XSTEST, "CC-BY-4.0", "over_refusal", "250",
        category="type", only=("label", "safe"), sha256=XSTEST_SHA256,
    ),
    "xstest-unsafe": PromptSet(
        *XSTEST, "CC-BY-4.0", "toxic", "200",
        category="type", only=("label", "unsafe"), sha256=XSTEST_SHA256,
    ),
    "falsereject": PromptSet(
        "AmazonScience/FalseReject", "test.jsonl", "493ba967714ea54c6f01067e1f61e389cc2c9b3e",
        "CC-BY-NC-4.0", "over_refusal", "1,187", category="category_text",
        sha256="644b243987b4d16f36b1b668b03a17fa49d18174fee80fbaeef94a53facc462d",
    ),
    "coconot-contrast": PromptSet(
        "allenai/coconot", "contrast/test-00000-of-00001.parquet",
        "2cbe16aabf9069f17e48c8daad8aeabc29469eb7", "ODC-BY", "over_refusal", "379",
        sha256="d2d4f9ea33eac017cfdd2b56669e417e979933418276083d3acb28be170a588f",
    ),
    "jbb-benign": PromptSet(
        JBB[0], "data/benign-behaviors.csv", JBB[1], "MIT", "over_refusal", "100",
        prompt="Goal", category="Category",
        sha256="3cda234d21a991fa309bbfea4b6d9dae31ccdf8e9d452424b6a983e4fdc33468",
    ),
    "jbb-harmful": PromptSet(
        JBB[0], "data/harmful-behaviors.csv", JBB[1], "MIT", "toxic", "100",
        prompt="Goal", category="Category",
        sha256="4a8ec6832056b631eb092dccc60d37a61c3d441268268888b3d006288afeffa1",
    ),
}
# fmt: on

HUB_FILE = re.compile(
    r"hf://datasets/(?P<repository>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?/(?P<file>.+)"
)
FORMAT = 1  # of the CSVs made here; another one is made anew


# ---------------------------------------------------------------------------------- the flags


class _List(argparse.Action):
    """Print the named sets on stdout and end, as --help does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["name", "rows", "prompts", "licence", "repository", "file", "revision"])
        for name, one in PROMPT_SETS.items():
            prompts = SIDES[one.side].prompts
            where = (one.repository, one.file, one.revision or "newest")
            writer.writerow([name, one.rows.replace(",", ""), prompts, one.licence, *where])
        parser.exit()


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a stage whose input can be a named set."""
    group = parser.add_argument_group("prompt sets")
    group.add_argument(
        "--list_prompt_sets",
        action=_List,
        nargs=0,
        help="print the named sets that can stand for an input file, as CSV",
    )
    for column in ("prompt", "category"):
        group.add_argument(
            f"--{column}_column",
            default="",
            metavar="COLUMN",
            help=f"of an input file hf://...: the column of the {column} (default: {column})",
        )


# ---------------------------------------------------------------------------------- a set as CSV


def local_csv(name: str, prompt_column: str = "", category_column: str = "") -> Path:
    """The CSV that an input file's name stands for: itself, a named set's or a Hub file's.

    A set's CSV has the columns prompt and category (only prompt where it has no categories), and a
    run record beside it with `source`: name, repository, file, revision, licence, side, sha256.
    Raises UserError for an unknown name, a file that cannot be had or a column that is not there.
    """
    asked = wanted(name, prompt_column, category_column)
    if asked is None:
        return Path(name)
    hub = HubFile(asked.repository, asked.file, asked.revision)
    asked = asked._replace(revision=hub.commit)
    key = json.dumps([FORMAT, asked])
    folder = hub.cache / "orbench" / hashlib.sha256(key.encode()).hexdigest()[:12]
    known = name in PROMPT_SETS
    path = folder / f"{file_name_part(name if known else Path(asked.file).stem)}.csv"
    if path.is_file() and record.read(path):  # the record is written last
        return path
    downloaded = hub.fetch(asked.licence)
    sha256 = sha256_of(downloaded)
    if asked.sha256 not in ("", sha256):
        raise UserError(
            f"{downloaded} is not the file that {name} names (sha256 {sha256[:12]}..., expected "
            f"{asked.sha256[:12]}...); delete it and run again"
        )
    if not (known or asked.category):
        asked = asked._replace(category="category" if "category" in first_row(downloaded) else "")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        columns = ["prompt", "category"] if asked.category else ["prompt"]
        write_rows(path, columns, rows_of(downloaded, asked))
        source = {"name": name} | asked._asdict() | {"sha256": sha256}
        record.write(path, {"stage": "prompt_sets", "source": source})
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return path


def wanted(name: str, prompt_column: str, category_column: str) -> PromptSet | None:
    """The set that a name stands for; None for a file on this machine. Raises UserError."""
    if not name:
        raise UserError(NO_NAME)
    if found := HUB_FILE.fullmatch(name):
        return PromptSet(
            *(found["repository"], found["file"], found["revision"] or "", "", "", ""),
            prompt=prompt_column or "prompt",
            category=category_column,
        )
    if name.startswith("hf://"):
        raise UserError(f"{name} is no hf://datasets/OWNER/NAME/FILE")
    if prompt_column or category_column:
        raise UserError("--prompt_column and --category_column go with an input file hf://...")
    if name in PROMPT_SETS and not Path(name).exists():
        return PROMPT_SETS[name]
    if name and "." not in name and "/" not in name and not Path(name).exists():
        meant = did_you_mean(name, PROMPT_SETS)
        raise UserError(f"{name}: no such file or prompt set; --list_prompt_sets names them{meant}")
    return None


# ---------------------------------------------------------------------------------- reading


def rows_of(path: Path, asked: PromptSet) -> Iterator[Row]:
    """The rows of a downloaded file that belong to a set, as prompt and category.

    Raises UserError for a file of another kind, a broken one, and a column that is not there.
    """
    columns = {"prompt": asked.prompt} | ({"category": asked.category} if asked.category else {})
    only, value = asked.only or ("", "")
    for row in _reader(path)(path):
        if missing := [name for name in (*columns.values(), only) if name and name not in row]:
            raise UserError(
                f"{asked.file} of {asked.repository} has no column {missing[0]!r}; it has: "
                f"{clean(', '.join(row))} (--prompt_column, --category_column)"
            )
        if not only or _cell(row[only]) == value:
            yield {name: _cell(row[column]) for name, column in columns.items()}


def first_row(path: Path) -> Mapping[str, Any]:
    """The first row of a downloaded file; empty where there is none. Raises UserError."""
    return next(iter(_reader(path)(path)), {})


def _reader(path: Path) -> Callable[[Path], Iterable[Mapping[str, Any]]]:
    ending = path.suffix.lower()
    if ending not in READERS:
        raise UserError(f"{path.name}: only {', '.join(READERS)} can be read")
    return READERS[ending]


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                raise UserError(f"{path}, line {number} is not JSON") from None
            if isinstance(row, dict):
                yield row


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(f"Parquet needs pyarrow, which is not installed: {INSTALL}") from None
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except ArrowException as error:
        raise UserError(f"{path} is no Parquet file: {clean(str(error))[:200]}") from None


READERS: dict[str, Callable[[Path], Iterable[Mapping[str, Any]]]] = {
    ".csv": Table,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}


def _cell(value: object) -> str:
    """A value as a CSV holds it."""
    return "" if value is None else storable(str(value))


def path_of(name: str, args: argparse.Namespace) -> Path:
    """The CSV that an input flag names. Raises UserError, see `local_csv`."""
    return local_csv(name, args.prompt_column, args.category_column)
