"""Stage 3: judges decide whether a text is toxic, and of which category.

    python moderate_only.py --moderator_model=gpt4 --input_file_path=../rewritter/harmful_prompts_rewrite.csv --column=prompt
    python moderate_only.py --moderator_model=gpt4,llama3,gemini-1.5 --input_file_path=prompts.csv

Reads a CSV with the column that is to be judged (prompt, or response, or any other). Writes
./{input stem}_moderation_merged_{moderator}_{column}.csv, or with --merge_result=False the files
..._toxic_moderation_... and ..._non_toxic_moderation_... instead. Adds the columns is_toxic,
moderation_category (one of ten, or none) and moderation_result (the judge's whole reply); for
another column than prompt with that column as a prefix (response_is_toxic, ...). With several
judges each has its own three columns (is_toxic_{judge}, ...), is_toxic and moderation_category
hold the majority, votes says how many judges had a readable verdict, and debatable whether they
disagree. A tie of all judges is toxic; a tie where a vote is missing leaves the row unscored.

A guard model (Qwen3Guard-Gen, WildGuard, Llama-Guard, gpt-oss-safeguard) is asked in its own form;
its unsafe categories that none of the ten matches are `other` in moderation_category.
"""  # noqa: E501 - a command that can be copied stands on one line

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import exchange, options, prompt_sets, record
from orbench.agreement import Agreement
from orbench.answers import Answer, Missing
from orbench.chat import Message, Request
from orbench.columns import (
    NO_CATEGORY,
    Choice,
    Row,
    category_choices,
    category_list,
    read_flag,
)
from orbench.conduct import conduct
from orbench.ensemble import majority
from orbench.judge import JUDGE_TEMPERATURE, VERDICT_ASKS, is_cut_off, unreadable, words_of
from orbench.judges import GENERAL, JudgeKind, JudgeReply, Question, kind_of
from orbench.models import Model
from orbench.sampling import table_of
from orbench.stage import (
    Stage,
    empty_cell,
    fill,
    output_columns,
    output_path,
    prompt_template,
    split_paths,
)
from orbench.table import file_name_part, prompt_id, storable
from orbench.terminal import UserError, run_script
from orbench.verdict_reading import response_format


class Vote(NamedTuple):
    """What one judge said about one text: a category, `other` or `none`."""

    category: str
    reply: str
    debatable: bool = False  # by the judge's own word

    @property
    def toxic(self) -> bool:
        """Whether it is a category at all."""
        return self.category != NO_CATEGORY


def vote_in(answer: Answer, kind: JudgeKind, form: JudgeReply) -> Vote | Missing:
    """Read a judge's reply. An unreadable one is no vote, never a verdict. form: how to read it."""
    text = words_of(answer)
    if isinstance(text, Missing):
        return text
    assert kind.moderation is not None  # every kind in the table can tell
    reading = kind.moderation(form._replace(text=text, cut_off=is_cut_off(answer)))
    if reading.verdict is None:
        return unreadable(answer, reading.why)
    return Vote(reading.category, storable(answer.text), reading.debatable)


class Moderation:
    """The stage's columns and verdicts, for one judge or several, and what is said at the end.

    substitute: a judge that is asked only where another one's vote is missing.
    """

    def __init__(
        self, judges: Sequence[str], substitute: str, column: str, min_votes: int, doubts: bool
    ) -> None:
        """doubts: whether a single judge can call a text debatable."""
        self.judges, self.substitute, self.min_votes = judges, substitute, min_votes
        self.named_judges = [*judges, *([substitute] if substitute else [])]
        self.doubts = doubts or len(self.named_judges) > 1
        self.prefix = "" if column == "prompt" else f"{column}_"
        self.agreement = Agreement(judges)
        self.n = self.toxic = self.unscored_rows = 0
        self.incomplete: set[bytes] = set()  # texts that lack a vote, by `prompt_id`
        self.column = column

    def named(self, name: str, judge: str = "") -> str:
        """A column's name: `is_toxic`, `response_is_toxic`, `is_toxic_gpt4`."""
        return f"{self.prefix}{name}" + (f"_{file_name_part(judge)}" if judge else "")

    def columns(self) -> list[str]:
        """What the stage adds."""
        verdict = [self.named("is_toxic"), self.named("moderation_category")]
        doubts = [self.named("debatable")] if self.doubts else []
        if len(self.named_judges) == 1:
            return [*verdict, self.named("moderation_result"), *doubts]
        parts = ("is_toxic", "moderation_category", "moderation_result")
        each = [self.named(part, judge) for judge in self.named_judges for part in parts]
        return [*verdict, self.named("votes"), *doubts, *each]

    def rows_of(self, row: Row, votes: Sequence[Vote | Missing]) -> list[Row] | Missing:
        """One output row, or why there is no verdict."""
        if any(isinstance(vote, Missing) for vote in votes[: len(self.judges)]):
            self.incomplete.add(prompt_id(row[self.column]))
        decided = majority(panel(votes, len(self.judges)), self.min_votes)
        if decided.toxic is None:
            pairs = zip(self.named_judges, votes, strict=False)
            whys = [f"{judge}: {vote.why}" for judge, vote in pairs if isinstance(vote, Missing)]
            return Missing("unscored", "; ".join([decided.why, *whys] if len(votes) > 1 else whys))
        out = {**row, self.named("is_toxic"): str(decided.toxic)}
        out[self.named("moderation_category")] = decided.category
        cast = [vote for vote in votes if isinstance(vote, Vote)]
        if self.doubts:
            debatable = decided.split or any(vote.debatable for vote in cast)
            out[self.named("debatable")] = str(debatable)
        if len(self.named_judges) == 1:
            out[self.named("moderation_result")] = cast[0].reply
            return [out]
        out[self.named("votes")] = str(decided.votes)
        for judge, vote in zip(self.named_judges, votes, strict=False):
            out |= self.cells_of(judge, vote)
        return [out]

    def cells_of(self, judge: str, vote: Vote | Missing) -> Row:
        """One judge's columns."""
        if isinstance(vote, Missing):
            return {self.named("moderation_result", judge): storable(vote.said)}
        return {
            self.named("is_toxic", judge): str(vote.toxic),
            self.named("moderation_category", judge): vote.category,
            self.named("moderation_result", judge): vote.reply,
        }

    def more(self, results: Iterable[list[Row] | Missing]) -> bool:
        """Whether texts lack a vote that the substitute has not been asked for yet."""
        if not self.substitute:
            return False
        before = set(self.incomplete)
        for _ in results:
            pass  # reading them finds the incomplete ones
        return bool(self.incomplete - before)

    def scored(self, row: Row) -> None:
        """Count one verdict."""
        self.n += 1
        self.toxic += row[self.named("is_toxic")] == "True"
        if len(self.judges) > 1:
            said = {judge: row.get(self.named("is_toxic", judge), "") for judge in self.judges}
            self.agreement.add({judge: read_flag(cell) for judge, cell in said.items()})

    def unscored(self, row: Row) -> None:
        """Count one text without a verdict."""
        self.unscored_rows += 1

    def findings(self) -> dict[str, object]:
        """For the run record: the counts, and the judges that never had a readable verdict."""
        silent = self.agreement.silent if self.n and len(self.judges) > 1 else []
        return {
            "toxic": self.toxic,
            "not_toxic": self.n - self.toxic,
            "unscored": self.unscored_rows,
            "silent_judges": silent,
        }

    def lines(self) -> list[str]:
        """What came out: toxic or not; with several judges, how far they agree."""
        line = f"toxic {self.toxic:,} · not toxic {self.n - self.toxic:,}"
        line += f" · unscored {self.unscored_rows:,}"
        return [*(self.agreement.lines() if len(self.judges) > 1 else []), line]


def panel(votes: Sequence[Vote | Missing], judges: int) -> list[str | None]:
    """The votes of a panel of so many judges; one behind them takes the place of a missing vote."""
    cast = [vote.category if isinstance(vote, Vote) else None for vote in votes]
    own, others = cast[:judges], [vote for vote in cast[judges:] if vote is not None]
    if others and None in own:
        own[own.index(None)] = others[0]
    return own


def judges_of(text: str, substitute: str) -> list[str]:
    """The judges of `--moderator_model=a,b,c`. Raises UserError for none, or one named twice."""
    judges = [name.strip() for name in text.split(",") if name.strip()]
    if not judges:
        raise UserError("--moderator_model names no judge")
    names = [*judges, *([substitute] if substitute else [])]
    safe = [file_name_part(judge) for judge in names]
    twice = [judge for judge, name in zip(names, safe, strict=True) if safe.count(name) > 1]
    if twice:
        raise UserError(f"{twice[0]!r} is named twice: each judge has one vote")
    return judges


def judge_models(names: Sequence[str], args: argparse.Namespace) -> list[Model]:
    """The judges' models. Raises UserError where two are the same."""
    models = [options.model_of(name, args) for name in names]
    served = [(model.address, model.id) for model in models]
    for name, one in zip(names, served, strict=True):
        if served.count(one) > 1:
            raise UserError(f"{name!r} is {one[1]}, as another judge is: each model has one vote")
    return models


class Asker:
    """What each judge is asked about a text, and how its reply is read."""

    def __init__(self, models: Sequence[Model], args: argparse.Namespace) -> None:
        """Raises UserError for a guard model of an unknown form, or a prompt file that is gone."""
        self.kinds = {model: kind_of(model.id) for model in models}
        self.parameters = {
            model: options.parameters_of(args, model, kind.parameters)
            for model, kind in self.kinds.items()
        }
        files = {kind.own_file for kind in self.kinds.values() if kind.own_file}
        self.templates = {name: prompt_template(__file__, name) for name in sorted(files)}
        self.column, self.controversial = args.column, args.controversial
        self.structured = args.structured

    def request(self, model: Model, row: Row) -> Request:
        """The request to a judge about a row."""
        kind, text = self.kinds[model], row[self.column]
        own = ""
        if kind.own_file:
            values = {"text": text, "categories": category_list()}
            own = fill(self.templates[kind.own_file][1], values)
        question = Question(text, own=own)
        if self.of_response(row) and not kind.own_file:
            question = Question(row["prompt"], text)
        parameters = dict(self.parameters[model])
        if self.structured and kind is GENERAL:
            parameters["response_format"] = response_format(self.choices(kind))
        return Request(model, kind.ask(question), parameters, protocol=kind.protocol)

    def asked_with(self, models: Sequence[Model]) -> dict[str, Any]:
        """What is asked of these judges, for the run record: of all alike, or of each."""
        first, *others = (self.parameters[model] for model in models)
        if all(other == first for other in others):
            return first
        return {"judges": {model.asked: self.parameters[model] for model in models}}

    def of_response(self, row: Row) -> bool:
        """Whether a guard sees the text as the response to the row's prompt."""
        return self.column == "response" and bool(row.get("prompt", "").strip())

    def choices(self, kind: JudgeKind) -> tuple[Choice, ...]:
        """What a judge may choose; numbers count only where its prompt lists the categories."""
        template = self.templates[kind.own_file][1] if kind.own_file else ""
        return category_choices(numbered="{categories}" in template)

    def read(self, answer: Answer, model: Model) -> Vote | Missing:
        """What a judge said."""
        kind = self.kinds[model]
        form = JudgeReply(
            "", self.choices(kind), False, self.column == "response", self.controversial
        )
        return vote_in(answer, kind, form)

    def repeat(self, model: Model, answer: Answer, why: str) -> list[Message]:
        """What to say after an unreadable reply."""
        kind = self.kinds[model]
        return kind.repeat(answer, why, self.choices(kind))

    def prompt_file(self) -> Path | None:
        """The first prompt file in use, for the run record."""
        return next((path for path, _ in self.templates.values()), None)


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    judges = judges_of(args.moderator_model, args.substitute)
    min_votes = args.min_votes or len(judges) // 2 + 1
    if min_votes > len(judges):
        parser().error(f"--min_votes {min_votes} is more than there are judges ({len(judges)})")
    table = table_of(prompt_sets.path_of(args.input_file_path, args), [args.column], args)
    models = judge_models([*judges, *([args.substitute] if args.substitute else [])], args)
    asker = Asker(models, args)
    doubts = any(kind.doubts for kind in asker.kinds.values())
    moderation = Moderation(judges, args.substitute, args.column, min_votes, doubts)

    def requests_of(row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, args.column):
            return empty
        wanted = models[: len(judges)]
        if args.substitute and prompt_id(row[args.column]) in moderation.incomplete:
            wanted = models
        return [asker.request(model, row) for model in wanted]

    ending = f"{'+'.join(map(file_name_part, judges))}_{file_name_part(args.column)}.csv"
    names = {
        kind: f"{table.path.stem}_{kind}_moderation_{ending}" for kind in ("toxic", "non_toxic")
    }
    default = Path(f"{table.path.stem}_moderation_merged_{ending}")
    output = output_path(args.output_path, default)
    stage = Stage(
        name="moderator",
        table=table,
        output=output,
        columns=output_columns(table, moderation.columns()),
        models=models,
        requests_of=requests_of,
        read=asker.read,
        repeat=asker.repeat,
        reader=lambda: moderation.rows_of,
        parameters={
            **asker.asked_with(models[: len(judges)]),
            "column": args.column,
            "min_votes": min_votes,
            "controversial": args.controversial,
            "substitute": args.substitute,
            "structured": args.structured,
        },
        asks=VERDICT_ASKS,
        missing_counts=len(models) > 1,
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: (
            "toxic" if row[moderation.named("is_toxic")] == "True" else "non_toxic"
        ),
        summary=moderation,
        prompt_file=asker.prompt_file(),
        more=moderation.more,
        notes=record.family_notes(models, record.read(table.path)),
    )
    return conduct(stage, args, sys.argv)


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument(
        "--moderator_model",
        required=True,
        help="gpt4, llama3, gemini-1.5, any other model, or several, comma-separated",
    )
    parser.add_argument("--input_file_path", required=True, help="the CSV with the texts to judge")
    parser.add_argument(
        "--column", default="prompt", help="the column to judge (default %(default)s)"
    )
    options.add_merge_result(parser, "one for toxic and one for non-toxic rows")
    options.add_output_path(parser, "./{input stem}_moderation_merged_{moderator}_{column}.csv")
    parser.add_argument(
        "--min_votes",
        type=options.whole_number(1),
        help="readable verdicts a row needs (default: a majority of the judges)",
    )
    parser.add_argument(
        "--substitute",
        default="",
        metavar="MODEL",
        help="a judge that is asked where the vote of another one is missing",
    )
    parser.add_argument(
        "--controversial",
        choices=("toxic", "safe"),
        default="toxic",
        help="how to count a text that a guard model calls controversial (default toxic)",
    )
    options.add_structured(parser)
    options.add_asking(parser, JUDGE_TEMPERATURE)
    options.add_endpoint(parser)
    options.add_run(parser)
    prompt_sets.add_flags(parser)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
