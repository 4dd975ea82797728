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

from orbench.base.messages import UserError, clean, counted, listed, one_line
from orbench.base.prompts import MESSAGES, TOOLS, Turn, asked_in, json_in, with_prompt
from orbench.base.records import FAILED_COLUMNS
from orbench.base.tables import cell_text, read_csv, records_in, start_of
from orbench.base.toml_files import toml_beside
from orbench.base.words import Json, Row
from orbench.models.client import parts
from orbench.models.requests import Answer, Missing, user
from orbench.refusals.api import at, category_in
from orbench.stages.responses import COLUMNS
from orbench.stages.settings import in_words

FORMATS = toml_beside(__file__)  # by the word of --from
TURN = ("role", "content", "tool_calls", "tool_call_id")  # in a conversation of ours
# Parts of a turn that can be read as a text: what is no text among them is no part of it.
TEXT_PARTS = ("text", "output_text", "reasoning", "thinking", "redacted_thinking", "tool_use")
EMPTY: list[Any] = [None, "", []]
CHUNK = 2**18  # characters of a JSON document that are read at once
NO_TEXT = Missing("unscored", "responses that are no text but a list or an object")
# Columns that mean something to later stages.
OURS = (
    "prompt",
    MESSAGES,
    TOOLS,
    "sample",
    "refused",
    "answer_category",
    *FAILED_COLUMNS,
    *COLUMNS,
)

Place = Json  # `run`: what a log says of its run; `sample`; also `answer` in one


class Logged(dict[str, str]):
    """A row, with its answer or why it has none."""

    answer: Answer | Missing
    tried: str  # what it shares with other tries of the sample


class Logs:
    """What was read from logs of one tool."""

    def __init__(self, args: Namespace) -> None:
        """Raises UserError, OSError."""
        self.form: Json = dict(FORMATS[args.format])
        if args.prompt_column:
            self.form["question"] = [f"sample.{args.prompt_column}"]
        if args.response_column:
            self.form |= {"answers": f"sample.{args.response_column}", "content": ["answer"]}
        self.wanted = args.model  # "" for any
        self.rows: list[Logged] = []
        self.asked = Counter[str]()  # question -> answers
        self.left_out = Counter[str]()  # what -> samples
        self.status: dict[str, str] = {}  # task -> how its runs ended, the best one
        self.runs: dict[tuple[str, str], Place] = {}  # model, settings -> where they were found
        self.seen: set[str] = set()  # what tells samples apart
        paths = dict.fromkeys(args.input)
        for path in paths:
            self._read(path)
        if "tried" in self.form:
            self._leave_out_failed_tries()
        if not self.rows:
            left_out = ", ".join(self.left_out) or self.form["no_log"]
            of = f" of {args.model}" if args.model else ""
            logs = listed([*map(str, paths)])
            raise UserError(f"no samples{of} in {logs} can be imported: {clean(left_out)}")
        if len(self.runs) > 1:
            runs = [", ".join(filter(None, run)) or "(no model)" for run in self.runs]
            raise UserError(
                f"name one model with --model, or import logs apart: {clean('; '.join(runs))}"
            )

    def value(self, place: Place, field: str) -> Any:
        """Return what a log holds in a field, None for nothing."""
        for path in self.form.get(field, ()):
            for value in filter(None, at_path(place, path)):
                return value
        return None

    def text(self, place: Place, field: str) -> str:
        """Return a field as text."""
        return cell_text(self.value(place, field))

    def _read(self, path: Path) -> None:
        """Add the rows of a log. Raises UserError, OSError."""
        samples = 0
        try:
            for place in places_in(path, self.form):
                samples += 1
                if why := self._add(place):
                    self.left_out[why] += 1
        except (UserError, OSError, ModuleNotFoundError):
            raise
        except Exception as error:  # each reader has its own
            raise UserError(
                f"{path} is cut off or damaged after {counted(samples, 'sample')}, or "
                f"{self.form['no_log']} ({one_line(str(error))})"
            ) from None

    def _add(self, place: Place) -> str:
        """Add a row for each answer in a sample. Return why none is added, "" if any is."""
        model = self.text(place, "model") or self.wanted
        if self.wanted not in ("", model):
            return f"samples of {model}"
        task = self.text(place, "task")
        if self.status.get(task) != "success":
            self.status[task] = self.text(place, "status")
        once = str([at_path(place, path) for path in self.form["once"]])
        if self.form["once"] and once in self.seen:
            return "samples that were read before"
        self.seen.add(once)
        question = self.value(place, "question")
        turns = turns_in(question)
        row = {MESSAGES: json.dumps(turns), "prompt": ""}
        tools = self.text(place, "tools")
        if tools and turns != [user(question)]:  # beside a text they are something else
            row[TOOLS] = tools
        with suppress(UserError):
            row = with_prompt(row, "")
        if not row["prompt"].strip():
            return "samples without a prompt, or with tools or images"
        asked = asked_in(row)
        if asked == row["prompt"]:
            del row[MESSAGES]
        self._add_columns(row, place)
        for answer in at_path(place, self.form["answers"]) or [None]:
            logged = Logged({**row, "sample": str(self.asked[asked])})
            logged.answer = self._answer({**place, "answer": answer})
            logged.tried = str([at_path(place, path) for path in self.form.get("tried", ())])
            if logged.answer == NO_TEXT:
                self.left_out[NO_TEXT.why] += 1
            else:
                self.asked[asked] += 1
                self.rows.append(logged)
        self.runs.setdefault((model, self._settings(place)), place)
        return ""

    def _leave_out_failed_tries(self) -> None:
        """Leave out samples that failed where another run of the task has the answer."""
        answered = {row.tried for row in self.rows if isinstance(row.answer, Answer)}
        kept = []
        for row in self.rows:
            if isinstance(row.answer, Missing) and row.tried in answered:
                self.left_out["samples that failed and were run again"] += 1
            else:
                kept.append(row)
        self.rows = kept

    def _settings(self, place: Place) -> str:
        """Return what the model was asked with, in words: without lm_eval's `until []`."""
        settings = self.value(place, "parameters")
        if not isinstance(settings, dict):
            return ""
        given = {name: value for name, value in settings.items() if value not in EMPTY}
        return in_words(given)

    def _add_columns(self, row: Row, place: Place) -> None:
        """Add what the log has beside prompt and response; objects in objects are left out."""
        for path in self.form["columns"]:
            for value in at_path(place, path):
                members = value if isinstance(value, dict) else {path.rpartition(".")[2]: value}
                for name, cell in members.items():
                    if name in OURS:
                        name = self.form["prefix"] + name
                    if not (name in OURS or cell == row["prompt"] or isinstance(cell, dict)):
                        row[name] = cell_text(cell)

    def _answer(self, place: Place) -> Answer | Missing:
        """Return an answer, or why there is none."""
        error = self.text(place, "error")
        if place["answer"] is None:
            error = error or self.text(place, "no_answer") or "the log has no response here"
        if error:
            return Missing("gave_up", one_line(error))
        text = text_in(self.value(place, "content"))
        if text is None:
            return NO_TEXT
        finish_reason = self.text(place, "finish_reason")
        return Answer(
            text,
            finish_reason,
            refusal=text if self.value(place, "refused") else "",
            model=self.text(place, "served_by"),
            api_category=category_in(self.value(place, "details"), finish_reason),
        )


def at_path(place: Any, path: str) -> list[Any]:
    """Return what stands at a dotted path. Text on the way is read as JSON; names may have dots."""
    if not path:
        return [place]
    if isinstance(place, str):
        place = json_in(place)
    values = at(place, [path])
    if not values:
        first, _, rest = path.partition(".")
        for inner in at(place, [int(first) if first.isdigit() else first]):
            values += at_path(inner, rest)
    return values


def turns_in(question: Any) -> list[Turn]:
    """Return the turns before the answer, with what a conversation of ours holds. question: a chat,
    a text, or a chat as JSON.
    """
    chat = json_in(question) if isinstance(question, str) else question
    if not (isinstance(chat, list) and at(chat, ["*", "role"])):
        chat = [user(question)]
    turns = []
    for turn in chat:
        members = {name: value for name in TURN for value in filter(None, at(turn, [name]))}
        turns.append({"role": "", **members, "content": text_in(members.get("content"))})
    while turns and turns[-1]["role"] == "assistant":
        turns.pop()
    return turns


def text_in(content: Any) -> str | None:
    """Return a content as text: of a list of parts the texts. None for what is no text."""
    if isinstance(content, list | dict):
        texts = [kind in TEXT_PARTS for kind in at(content, ["*", "type"])]
        return parts(content, "text") if sum(texts) == len(content) else None
    return cell_text(content)


# -- files ---------------------------------------------------------------------------------------


def places_in(path: Path, form: Json) -> Iterator[Place]:
    """Yield the samples of a log. Raises what its reader does."""
    start = start_of(path)
    if start.startswith(b"PK"):
        yield from _zipped(path)
    elif start.startswith(b"{"):
        yield from _json(path, form)
    else:
        for sample in records_in(path) or read_csv(path).rows:
            yield {"run": {}, "sample": sample}


def _zipped(path: Path) -> Iterator[Place]:
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
        run = {"status": "started"} | json.loads(archive.read(head))
        for name in names:
            if name.startswith("samples/"):
                yield {"run": run, "sample": json.loads(archive.read(name))}


def _json(path: Path, form: Json) -> Iterator[Place]:
    """Yield the samples in JSON lines or a JSON document. Each reads like a document of its own;
    what stands around them is the run, whose end is known at the end.
    """
    decode = json.JSONDecoder().raw_decode  # as Python's json writes it, it may hold NaN
    run = {"log": path.name}
    beside = path.with_name(form["run"].format(path.stem.rpartition("_")[2]))
    if beside.exists():
        run |= json.loads(beside.read_text("utf-8"))
    text = ""
    start = None  # of the samples
    with path.open(encoding="utf-8-sig") as file:
        for chunk in iter(partial(file.read, CHUNK), ""):
            text += chunk
            if not start:
                start = re.search(form["samples"], text)
                if not start:
                    continue
                run |= json.loads(text[: start.start()] + form["closes"])
                text = text[start.end() :]
            with suppress(ValueError):  # the next chunk has the rest of a sample, or none is left
                while True:
                    text = text.lstrip(" ,\r\n\t")
                    sample, end = decode(text)
                    text = text[end:]
                    yield {"run": run, "sample": sample}
    if start:
        run |= json.loads(form["opens"] + text)
