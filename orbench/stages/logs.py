"""Logs of other tools as rows: what was asked, and what was answered.

Where a log holds what is in logs.toml. A log is JSON lines, one JSON document, a zip of documents
(inspect_ai) or a table; samples are read one at a time. What a log does not say stays empty.
"""

import json
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from orbench.base.messages import UserError, clean, one_line
from orbench.base.prompts import MESSAGES, TOOLS, Turn, asked_in, json_in, with_prompt
from orbench.base.records import FAILED_COLUMNS
from orbench.base.tables import cell_text, read_csv
from orbench.base.toml_files import toml_beside
from orbench.base.words import Json, Row, Words
from orbench.models.client import parts
from orbench.models.requests import Answer, Missing, message, user
from orbench.refusals.api import at, category_in
from orbench.stages.settings import in_words

FORMATS = toml_beside(__file__)  # by the word of --from
TEXT_PARTS = {"text", "reasoning"}  # of a turn that can be read as a text
CHUNK = 2**18  # characters of a JSON document that are read at once
LACKING = "samples that were to be there but are not in the log"
# Columns that mean something to later stages.
OURS = ("prompt", MESSAGES, TOOLS, "sample", *FAILED_COLUMNS, "refused", "answer_category")

Samples = Iterator[tuple[Json, Any]]  # what a log says of its run, and a sample


class Logged(dict[str, str]):
    """A row, with its answer or why it has none."""

    answer: Answer | Missing


class Logs:
    """What was read from logs of one tool."""

    def __init__(self, args: Namespace, taken: Words) -> None:
        """taken: columns of stage 4. Raises UserError, OSError."""
        given = {"question": args.prompt_column, "content": args.response_column}
        self.form: Json = dict(FORMATS[args.format])
        self.form |= {field: [f"sample.{path}"] for field, path in given.items() if path}
        self.taken = (*OURS, *taken)
        self.rows: list[Row] = []  # each a Logged
        self.asked = Counter[str]()  # question -> answers
        self.left_out = Counter[str]()  # what -> samples
        self.runs: dict[tuple[str, str], Json] = {}  # model, settings -> where they were found
        self.seen: set[str] = set()  # what tells samples apart
        for path in args.input:
            try:
                self._read(path, args.model)
            except (UserError, OSError, ModuleNotFoundError):
                raise
            except Exception as error:  # each reader has its own
                raise UserError(
                    f"{path} is cut off, or {self.form['no_log']} ({one_line(str(error))})"
                ) from None
        if not self.rows:
            left_out = ", ".join(+self.left_out) or "none at all"
            of = f" of {args.model}" if args.model else ""
            raise UserError(f"{path} has no samples{of} that can be imported: {clean(left_out)}")
        if len(self.runs) > 1:
            names = "; ".join(", ".join(filter(None, run)) for run in self.runs)
            raise UserError(f"name one model with --model, or import logs apart: {clean(names)}")

    def value(self, place: Json, field: str) -> Any:
        """Return what a log holds in a field, None for nothing."""
        for path in self.form.get(field, ()):
            for value in filter(None, at_path(place, path)):
                return value
        return None

    def text(self, place: Json, field: str) -> str:
        """Return a field as text."""
        return cell_text(self.value(place, field))

    def _read(self, path: Path, wanted: str) -> None:
        """Add the rows of a log. wanted: the model, "" for any."""
        samples = 0
        for run, sample in samples_in(path, self.form):
            place = {"run": run, "sample": sample}
            samples += 1
            once = [at_path(place, path) for path in self.form["once"]]
            model = self.text(place, "model") or wanted
            if wanted not in ("", model):
                self.left_out[f"samples of {model}"] += 1
            elif once and str(once) in self.seen:
                self.left_out["samples that were read before, as of another filter"] += 1
            else:
                self.seen.add(str(once))
                self._add(place, model)
        if samples and (planned := self.value(place, "planned")):
            lacking = len(planned) * self.value(place, "times") - samples
            self.left_out[LACKING] += max(0, lacking)

    def _add(self, place: Json, model: str) -> None:
        """Add a row for each answer in a sample."""
        turns = turns_in(self.value(place, "question"))
        try:
            row = with_prompt({MESSAGES: json.dumps(turns)}, "")
        except UserError:
            self.left_out["samples without a prompt, or with tools or images"] += 1
            return
        if len(turns) == 1:
            del row[MESSAGES]
        asked = asked_in(row)
        settings = in_words(self.value(place, "parameters") or {})
        self.runs.setdefault((model, settings), place)
        self._add_columns(row, place)
        for answer in at_path(place, self.form["answers"]) or [None]:
            logged = Logged({**row, "sample": str(self.asked[asked])})
            logged.answer = self._answer({**place, "answer": answer})
            self.asked[asked] += 1
            self.rows.append(logged)

    def _add_columns(self, row: Row, place: Json) -> None:
        """Add what the log has beside prompt and response; objects in objects are left out."""
        for path in self.form["columns"]:
            for value in at_path(place, path):
                members = value if isinstance(value, dict) else {path.rpartition(".")[2]: value}
                for name, cell in members.items():
                    if name in self.taken:
                        name = self.form["prefix"] + name
                    if not (name in self.taken or cell == row["prompt"] or isinstance(cell, dict)):
                        row[name] = cell_text(cell)

    def _answer(self, place: Json) -> Answer | Missing:
        error = self.text(place, "error")
        if not place["answer"]:
            error = error or self.text(place, "no_answer")
        if error:
            return Missing("gave_up", one_line(error))
        text = text_in(self.value(place, "content"))
        finish_reason = self.text(place, "finish_reason")
        return Answer(
            text,
            finish_reason,
            refusal=text if self.value(place, "refused") else "",
            model=self.text(place, "served_by"),
            api_category=category_in(self.value(place, "details"), finish_reason),
        )


def at_path(place: Json, path: str) -> list[Any]:
    """Return what stands at a dotted path. A text on the way is read as JSON; a column may have
    dots in its name.
    """
    first, _, name = path.partition(".")
    if first == "sample" and name in place["sample"]:
        return [place["sample"][name]]
    values: list[Any] = [place]
    for step in path.split("."):
        opened = [json_in(value) if isinstance(value, str) else value for value in values]
        values = at(opened, ["*", int(step) if step.isdigit() else step])
    return values


def turns_in(question: Any) -> list[Turn]:
    """Return the turns before the answer. question: a chat, a text, or a chat as JSON."""
    turns = json_in(question) if isinstance(question, str) else question
    match turns:
        case [{"role": _, "content": _}, *_]:
            pass
        case _:
            turns = [user(question)]
    while turns and turns[-1]["role"] == "assistant":
        turns.pop()
    return list(map(plain, turns))


def plain(turn: Turn) -> Turn:
    """Return a turn's role and text; the whole turn if it is no text, as with tools or images."""
    content = turn["content"]
    kinds = {part["type"] for part in content} if isinstance(content, list) else set()
    if content is None or turn.get("tool_calls") or kinds - TEXT_PARTS:
        return turn
    return message(turn["role"], text_in(content))


def text_in(content: Any) -> str:
    """Return a content as text: of a list of parts the texts."""
    return parts(content, "text") if isinstance(content, list) else cell_text(content)


# -- files ---------------------------------------------------------------------------------------


def samples_in(path: Path, form: Json) -> Samples:
    """Yield what a log says of its run, with each sample. Raises what its reader does."""
    with path.open("rb") as file:
        start = file.read(2)
    if start == b"PK":
        return _zipped(path)
    if start[:1] == b"{":
        return _json(path, form)
    return (({}, row) for row in read_csv(path).rows)


def _zipped(path: Path) -> Samples:
    """Yield the samples in a zip of JSON files, such as inspect_ai's."""
    try:
        # It reads zstd, as Python's own does from 3.14 on.
        from backports.zstd import zipfile  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError:
        import zipfile  # type: ignore[no-redef, unused-ignore]
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        head = "header.json"
        if head not in names:  # the run has not ended
            head = "_journal/start.json"
        run = json.loads(archive.read(head))
        for name in names:
            if name.startswith("samples/"):
                yield run, json.loads(archive.read(name))


def _json(path: Path, form: Json) -> Samples:
    """Yield the samples in JSON lines or a JSON document. Each reads like a document of its own;
    what stands around them is the run, whose end is known at the end.
    """
    decode = json.JSONDecoder().raw_decode  # as Python's json writes it, it may hold NaN
    run = {"log": path.name}
    beside = path.with_name(form["run"].format(path.stem.rpartition("_")[2]))
    if beside.exists():
        run |= json.loads(beside.read_text("utf-8"))
    text = ""
    start = None
    with path.open(encoding="utf-8") as file:
        for chunk in iter(partial(file.read, CHUNK), ""):
            text += chunk
            if not start:
                start = re.search(form["samples"], text)
                if not start:
                    continue
                run |= json.loads(text[: start.end()] + form["closes"])
                text = text[start.end() :]
            with suppress(ValueError):  # the next chunk has the rest of a sample, or none is left
                while True:
                    text = text.lstrip(" ,\r\n\t")
                    sample, end = decode(text)
                    text = text[end:]
                    yield run, sample
    if start:
        run |= json.loads(form["opens"] + text)
