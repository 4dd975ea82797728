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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import exchange, options, prompt_sets
from orbench.agreement import Agreement
from orbench.answers import Answer, Missing
from orbench.chat import Request, user
from orbench.columns import NO_CATEGORY, Row, category_choices, category_list, read_flag
from orbench.conduct import conduct
from orbench.judge import JUDGE_TEMPERATURE, VERDICT_ASKS, verdict_in
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
from orbench.table import file_name_part, storable
from orbench.terminal import UserError, run_script


class Vote(NamedTuple):
    """What one judge said about one text: a category or "none"."""

    category: str
    reply: str

    @property
    def toxic(self) -> bool:
        """Whether it is a category at all."""
        return self.category != NO_CATEGORY


def vote_in(answer: Answer, choices: Mapping[str, str]) -> Vote | Missing:
    """Read a judge's reply. An unreadable one is no vote, never a verdict."""
    category = verdict_in(answer, choices)
    return category if isinstance(category, Missing) else Vote(category, storable(answer.text))


def majority(votes: Sequence[Vote]) -> tuple[bool, str]:
    """Whether most votes say toxic (a tie does), and the toxic votes' category named most."""
    toxic = [vote.category for vote in votes if vote.toxic]
    if 2 * len(toxic) < len(votes):
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

    def rows_of(self, row: Row, votes: Sequence[Vote | Missing]) -> list[Row] | Missing:
        """One output row, or why there is no verdict."""
        cast = [vote for vote in votes if isinstance(vote, Vote)]
        if len(cast) < self.min_votes:
            lost = zip(self.judges, votes, strict=True)
            whys = (f"{judge}: {vote.why}" for judge, vote in lost if isinstance(vote, Missing))
            return Missing("unscored", "; ".join(whys))
        toxic, category = majority(cast)
        out = {**row, self.named("is_toxic"): str(toxic)}
        out[self.named("moderation_category")] = category
        if len(self.judges) == 1:
            out[self.named("moderation_result")] = cast[0].reply
            return [out]
        out[self.named("votes")] = str(len(cast))
        out[self.named("debatable")] = str(len({vote.toxic for vote in cast}) > 1)
        for judge, vote in zip(self.judges, votes, strict=True):
            if isinstance(vote, Missing):
                out[self.named("moderation_result", judge)] = storable(vote.said)
                continue
            out[self.named("is_toxic", judge)] = str(vote.toxic)
            out[self.named("moderation_category", judge)] = vote.category
            out[self.named("moderation_result", judge)] = vote.reply
        return [out]

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
    table = table_of(prompt_sets.path_of(args.input_file_path, args), [args.column], args)
    models = [options.model_of(judge, args) for judge in judges]
    served = [(model.endpoint, model.id) for model in models]
    for judge, one in zip(judges, served, strict=True):
        if served.count(one) > 1:
            raise UserError(f"{judge!r} is {one[1]}, as another judge is: each model has one vote")
    prompt_file, template = prompt_template(__file__)
    # Without the numbered list in the prompt a number means nothing.
    choices = category_choices(numbered="{categories}" in template)
    moderation = Moderation(judges, args.column, min_votes)
    parameters = {"temperature": JUDGE_TEMPERATURE}

    def requests_of(row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, args.column):
            return empty
        message = user(fill(template, {"text": row[args.column], "categories": category_list()}))
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
        read=lambda answer: vote_in(answer, choices),
        reader=lambda: moderation.rows_of,
        parameters={**parameters, "column": args.column, "min_votes": min_votes},
        asks=VERDICT_ASKS,
        missing_counts=len(judges) > 1,
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
    prompt_sets.add_flags(parser)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
