"""Stage 3: judges decide whether a text is toxic, and in which category.

    python moderate_only.py --moderator_model=gpt-5.4 --input_file=../rewritter/harmful_prompts_rewrite.csv --column=prompt
    python moderate_only.py --moderator_model=gpt-5.4,claude-opus-4-6 --input_file=prompts.csv

Reads a CSV with the column to be judged. Writes ./{input
stem}_moderation_merged_{moderator}_{column}.csv, or with --merge_result=False the files
..._toxic_moderation_... and ..._non_toxic_moderation_... instead. Adds the columns is_toxic,
moderation_category (one of the ten, a new one, "none", or a guard model's "other") and
moderation_result (the whole reply). For a column other than prompt, each name has that column as a prefix
(response_is_toxic, ...). With several judges, each has its own three columns (is_toxic_{judge},
...); is_toxic and moderation_category hold the majority; votes says how many gave a readable
verdict, and debatable whether they disagree.
"""  # noqa: E501 - a command that can be copied stands on one line

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

from orbench.asking.inquiry import Inquiry
from orbench.base.prompts import Turns, earlier_turns
from orbench.base.tables import file_name_part
from orbench.base.words import CATEGORIES_OR_NONE, Lines, Row, numbered_list, optional_flag
from orbench.judging.kinds import JUDGE_TEMPERATURE, About
from orbench.judging.panels import (
    agreement_lines,
    check_different,
    judges_named,
    verdict_cells,
    verdict_columns,
)
from orbench.models.providers import Model
from orbench.models.requests import Missing, Request
from orbench.stages import flags, settings
from orbench.stages.judges import JudgedStage
from orbench.stages.prompt_sets import read_input
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.stage import (
    Closing,
    Plan,
    Readings,
    Result,
    Written,
    empty_cell,
    output_columns,
)


class Moderator(JudgedStage):
    """Stage 3."""

    name = "moderator"
    brings = "votes"

    def __init__(self, args: Namespace) -> None:
        """Raises UserError for an input without the column, and for unusable judges."""
        self.column = args.column
        self.judges = judges_named(args.moderator_model)
        table = read_input(args.input_file, [self.column], args)
        names = list(self.judges)
        if args.substitute:
            names.append(args.substitute)
        models = [settings.model_of(name, args, "OPENAI_BASE_URL") for name in names]
        check_different(models)
        self.verdict_columns = verdict_columns(self.column, names)
        self.panel = len(names) > 1
        self.of_response = self.column == "response" and "prompt" in table.columns
        if self.of_response:
            self.about = About.RESPONSE
        word = file_name_part(f"{'+'.join(self.judges)}_{self.column}")
        stem = table.path.stem
        columns = output_columns(table, [*chain(*self.verdict_columns.values())])
        csv = Path(f"{stem}_moderation_merged_{word}.csv")
        super().__init__(args, table, models, csv, columns)
        self.split(f"{stem}_", ("toxic", "non_toxic"), f"_moderation_{word}.csv")
        categories = [*CATEGORIES_OR_NONE]
        if args.new_category:
            categories.insert(-1, args.new_category)
        self.seat_judges(categories, __file__)
        sent = {model.asked: seat.parameters for model, seat in self.seats.items()}
        self.parameters = {"judges": sent, "column": self.column}
        n = len(self.judges)
        self.min_votes = args.min_votes or n // 2 + 1
        if self.min_votes > n:
            parser().error(f"--min_votes {self.min_votes} exceeds the number of judges ({n})")
        self.reading = {"min_votes": self.min_votes}
        self.closing = Votes(self)

    def inquiries(self, row: Row) -> Plan:
        if empty := empty_cell(row, self.column):
            return empty
        requests = [self.ask(model, row) for model in self.models]
        substitute = requests.pop() if self.args.substitute else None
        return [Inquiry(request, substitute) for request in requests]

    def ask(self, judge: Model, row: Row) -> Request:
        """Return what a judge is asked about a row."""
        seat = self.seats[judge]
        text = row[self.column]
        earlier: Turns = ()
        if self.column == "prompt" or (self.of_response and not seat.template):
            earlier = earlier_turns(row)
        values = {"prompt": text, "response": ""}
        if seat.template:
            values = {"text": text, "categories": numbered_list(seat.choices)}
        elif self.of_response:
            values = {"prompt": row["prompt"], "response": text}
        return self.request(judge, values, earlier)

    def rows(self, row: Row, readings: Readings) -> Written:
        cells = verdict_cells(self.verdict_columns, readings, self.min_votes)
        if isinstance(cells, Missing):
            return cells
        return [row | cells]

    def label(self, row: Row) -> str:
        (is_toxic, *_), *_ = self.verdict_columns.values()
        return "toxic" if row[is_toxic] == "True" else "non_toxic"


class Votes(Closing):
    """How many texts are toxic, and how far several judges agree."""

    def __init__(self, stage: Moderator) -> None:
        self.stage = stage
        self.votes = defaultdict[str, list[bool | None]](list)  # of each judge
        self.counts = Counter[str]()  # by label

    def add(self, result: Result) -> None:
        if isinstance(result.rows, Missing):
            self.counts["unscored"] += 1
            return
        (row,) = result.rows
        self.counts[self.stage.label(row)] += 1
        for judge in self.stage.judges:
            vote, *_ = self.stage.verdict_columns[judge]
            self.votes[judge].append(optional_flag(row, vote, ""))

    def lines(self) -> Lines:
        if len(self.votes) > 1:
            yield from agreement_lines(self.votes)
        n = self.counts
        verdicts = f"toxic {n['toxic']:,} · not toxic {n['non_toxic']:,}"
        yield f"{verdicts} · unscored {n['unscored']:,}"


def run(args: Namespace) -> Outcome:
    """Run stage 3 with these flags. Raises UserError."""
    return run_stage(Moderator(args))


def parser() -> flags.Parser:
    return flags.stage_parser(
        __doc__,
        "moderate_only",
        "merge",
        "new_category",
        "output",
        "columns",
        "rows",
        parts="one for toxic and one for non-toxic rows",
        default="./{input stem}_moderation_merged_{moderator}_{column}.csv",
        temperature=JUDGE_TEMPERATURE,
    )


if __name__ == "__main__":
    as_script(run, parser)
