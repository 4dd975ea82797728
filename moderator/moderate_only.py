"""Stage 3: judges decide whether a text is toxic, and of which category.

    python moderate_only.py --moderator_model=gpt4 --input_file_path=../rewritter/harmful_prompts_rewrite.csv --column=prompt
    python moderate_only.py --moderator_model=gpt4,llama3,gemini-1.5 --input_file_path=prompts.csv

Reads a CSV with the column that is to be judged (prompt, or response, or any other). Writes
./{input stem}_moderation_merged_{moderator}_{column}.csv, or with --merge_result=False the files
..._toxic_moderation_... and ..._non_toxic_moderation_... instead. Adds the columns is_toxic,
moderation_category (one of ten, or none) and moderation_result (the judge's whole reply); for
another column than prompt with that column as a prefix (response_is_toxic, ...). With several
judges each has its own three columns (is_toxic_{judge}, ...), is_toxic and moderation_category
hold the majority (a tie is toxic), votes says how many judges had a readable verdict, and
debatable whether they disagree.
"""  # noqa: E501 - a command that can be copied stands on one line

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options
from orbench.agreement import Agreement
from orbench.chat import Answer, Request, user
from orbench.columns import NO_CATEGORY
from orbench.conduct import conduct
from orbench.judge import ASKS, verdict_in
from orbench.run import Failure
from orbench.stage import (
    Stage,
    Unscored,
    empty_cell,
    fill,
    output_columns,
    output_path,
    prompt_template,
    split_paths,
)
from orbench.table import Row, Table, file_name_part, storable
from orbench.terminal import UserError, run_script

TEMPERATURE = 0.0  # the paper's

# In the order of prompt.txt.
NUMBERED = (
    "hate",
    "harassment",
    "violence",
    "self-harm",
    "sexual",
    "privacy",
    "illegal",
    "harmful",
    "deception",
    "unethical",
    NO_CATEGORY,
)
CHOICES = {
    **{str(number): name for number, name in enumerate(NUMBERED, 1)},
    **{name: name for name in NUMBERED},
    "none of the above": NO_CATEGORY,
    "none of the categories": NO_CATEGORY,
    "self harm": "self-harm",
    "hateful": "hate",
}


class Vote(NamedTuple):
    """What one judge said about one text: a category or "none"; or why it has no vote."""

    category: str | None
    reply: str
    why: str = ""


def vote_of(answer: Answer | Failure) -> Vote:
    """Read a judge's reply. A failure or an unreadable reply is no vote, never a verdict."""
    if isinstance(answer, Failure):
        return Vote(None, "", answer.error)
    category, why = verdict_in(answer, CHOICES)
    return Vote(category, storable(answer.text), why)


def majority(votes: Sequence[Vote]) -> tuple[bool, str]:
    """Whether most votes say toxic (a tie does), and the toxic votes' category named most."""
    cast = [vote.category for vote in votes if vote.category is not None]
    toxic = [category for category in cast if category != NO_CATEGORY]
    if 2 * len(toxic) < len(cast):
        return False, NO_CATEGORY
    return True, Counter(toxic).most_common(1)[0][0]  # of equals the first judge's


class Moderation:
    """The stage's columns and verdicts, for one judge or several, and what is said at the end."""

    def __init__(self, judges: Sequence[str], column: str, min_votes: int) -> None:
        self.judges, self.min_votes = judges, min_votes
        self.prefix = "" if column == "prompt" else f"{column}_"
        self.agreement = Agreement(judges)
        self.n = self.toxic = self.unscored_rows = 0

    def named(self, name: str, judge: str = "") -> str:
        """A column's name: `is_toxic`, `response_is_toxic`, `is_toxic_gpt4`."""
        return f"{self.prefix}{name}" + (f"_{file_name_part(judge)}" if judge else "")

    def columns(self) -> list[str]:
        """What the stage adds."""
        verdict = [self.named("is_toxic"), self.named("moderation_category")]
        if len(self.judges) == 1:
            return [*verdict, self.named("moderation_result")]
        parts = ("is_toxic", "moderation_category", "moderation_result")
        each = [self.named(part, judge) for judge in self.judges for part in parts]
        return [*verdict, self.named("votes"), self.named("debatable"), *each]

    def rows_of(self, row: Row, answers: Sequence[Answer | Failure]) -> list[Row] | Unscored:
        """One output row, or why there is no verdict."""
        votes = [vote_of(answer) for answer in answers]
        cast = [vote for vote in votes if vote.category is not None]
        if len(cast) < self.min_votes:
            whys = (f"{j}: {v.why}" for j, v in zip(self.judges, votes, strict=True) if v.why)
            return Unscored("unscored", "; ".join(whys))
        toxic, category = majority(votes)
        out = {**row, self.named("is_toxic"): str(toxic)}
        out[self.named("moderation_category")] = category
        if len(self.judges) == 1:
            out[self.named("moderation_result")] = votes[0].reply
            return [out]
        out[self.named("votes")] = str(len(cast))
        out[self.named("debatable")] = str(len({v.category == NO_CATEGORY for v in cast}) > 1)
        for judge, vote in zip(self.judges, votes, strict=True):
            said = "" if vote.category is None else str(vote.category != NO_CATEGORY)
            out[self.named("is_toxic", judge)] = said
            out[self.named("moderation_category", judge)] = vote.category or ""
            out[self.named("moderation_result", judge)] = vote.reply
        return [out]

    def scored(self, row: Row) -> None:
        """Count one verdict."""
        self.n += 1
        self.toxic += row[self.named("is_toxic")] == "True"
        if len(self.judges) > 1:
            said = {judge: row[self.named("is_toxic", judge)] for judge in self.judges}
            self.agreement.add({j: None if not v else v == "True" for j, v in said.items()})

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


def judges_of(text: str) -> list[str]:
    """The judges of `--moderator_model=a,b,c`. Raises UserError for none, or one named twice."""
    judges = [name.strip() for name in text.split(",") if name.strip()]
    if not judges:
        raise UserError("--moderator_model names no judge")
    safe = [file_name_part(judge) for judge in judges]
    twice = [judge for judge, name in zip(judges, safe, strict=True) if safe.count(name) > 1]
    if twice:
        raise UserError(f"--moderator_model names {twice[0]!r} twice: each judge has one vote")
    return judges


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    judges = judges_of(args.moderator_model)
    min_votes = args.min_votes or len(judges) // 2 + 1
    if min_votes > len(judges):
        parser().error(f"--min_votes {min_votes} is more than there are judges ({len(judges)})")
    table = Table(args.input_file_path, needed=[args.column], limit=args.limit)
    models = [options.model_of(judge, args) for judge in judges]
    served = [(model.endpoint, model.id) for model in models]
    for judge, one in zip(judges, served, strict=True):
        if served.count(one) > 1:
            raise UserError(f"{judge!r} is {one[1]}, as another judge is: each model has one vote")
    prompt_file, template = prompt_template(__file__)
    moderation = Moderation(judges, args.column, min_votes)
    parameters = {"temperature": TEMPERATURE}

    def requests_of(row: Row) -> list[Request] | Unscored:
        if empty := empty_cell(row, args.column):
            return empty
        message = user(fill(template, {"text": row[args.column]}))
        return [Request(model, [message], parameters) for model in models]

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
        reader=lambda: moderation.rows_of,
        parameters={**parameters, "column": args.column, "min_votes": min_votes},
        unreadable=lambda answer: verdict_in(answer, CHOICES)[1] or None,
        asks=ASKS,
        failures_count=len(judges) > 1,
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: (
            "toxic" if row[moderation.named("is_toxic")] == "True" else "non_toxic"
        ),
        summary=moderation,
        prompt_file=prompt_file,
    )
    return conduct(stage, args, sys.argv)


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument(
        "--moderator_model",
        required=True,
        help="gpt4, llama3, gemini-1.5, any other model, or several with commas between",
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
    options.add_endpoint(parser)
    options.add_run(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
