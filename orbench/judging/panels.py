"""Stage 3's judges: columns, the majority, how far judges agree, their families; and what people
say of the same prompts.

If a vote is missing and the others are split, the row has no majority until the vote is there.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

from orbench.base.messages import UserError
from orbench.base.prompts import prompt_id_of
from orbench.base.records import Record, read_record, under_test
from orbench.base.tables import Table, file_name_part, placed_rows
from orbench.base.words import NO_CATEGORY, Json, Lines, Row, Texts, Words, optional_flag, weight_of
from orbench.judging.kinds import Opinion
from orbench.models.providers import Models, resolve
from orbench.models.requests import Missing
from orbench.models.substitutes import is_same_model
from orbench.stats.agreement import Votes, krippendorffs_alpha, two_raters

if TYPE_CHECKING:
    from pandas import Series  # type: ignore[import-untyped]

JUDGE_COLUMNS = ("is_toxic", "moderation_category", "moderation_result")  # of each judge
PANEL_COLUMNS = ("is_toxic", "moderation_category", "votes", "debatable")  # of several

RATED = {"score", "label"}  # columns of people's ratings; a score is from 0 to 1
LABEL_SCORES = {"safe": "0", "toxic": "1"}

PanelVotes = list[tuple[str, str, bool | None]]  # prompt id, judge, its vote: True is toxic


def judges_named(text: str) -> Words:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def check_different(models: Models) -> None:
    """Raise UserError if two judges are the same model, or would share their columns."""
    for one, other in combinations(models, 2):
        same_model = (one.address, one.id) == (other.address, other.id)
        same_columns = file_name_part(one.asked) == file_name_part(other.asked)
        if same_model or same_columns:
            raise UserError(
                f"{one.asked!r} and {other.asked!r} are the same model; each judge gets one vote"
            )


def models_of_search(args: Namespace) -> tuple[Models, Models]:
    """Return the models that take part in a search, and those of --confirm. Raises UserError if
    one does both, as another version or at another endpoint, too.
    """
    names = [args.rewriter, *judges_named(args.targets), *judges_named(args.judges)]
    searching = [*map(resolve, names)]
    confirming = [*map(resolve, judges_named(args.confirm or ""))]
    check_different(confirming)
    for model, other in product(confirming, searching):
        if is_same_model(model.id, other.id):
            raise UserError(
                f"--confirm names {model.asked}, but {other.asked} takes part in the search; "
                "name other models"
            )
    return searching, confirming


def majority(votes: Words, judges: int, min_votes: int = 1) -> str | Missing:
    """Return what most votes are for: NO_CATEGORY, or the most frequent category, of equals the
    first.

    votes: those that are there; judges: how many were asked. A tie of all judges is toxic (the
    stricter reading). Missing if the votes decide nothing.
    """
    from statistics import mode

    n = len(votes)
    if n < min_votes:
        return Missing("unscored", f"{n} of {judges} judges voted; {min_votes} are needed")
    toxic = [vote for vote in votes if vote != NO_CATEGORY]
    safe = n - len(toxic)
    if safe == len(toxic) and n < judges:
        return Missing("unscored", f"a tie of {n} votes, {judges - n} of {judges} missing")
    if safe > len(toxic):
        return NO_CATEGORY
    return mode(toxic)


def verdict_columns(column: str, judges: Words) -> dict[str, Words]:
    """Return the columns that stage 3 adds, in order: those of the panel ("") if there are several
    judges, and those of each judge.

    column: what is judged. judges: last, if any, the one that stands in for the others.
    """
    prefix = "" if column == "prompt" else f"{column}_"
    columns: dict[str, Words] = {}
    suffixes = dict.fromkeys(judges, "")
    if len(judges) > 1:
        columns[""] = [prefix + name for name in PANEL_COLUMNS]
        suffixes = {judge: f"_{file_name_part(judge)}" for judge in judges}
    for judge, suffix in suffixes.items():
        columns[judge] = [prefix + name + suffix for name in JUDGE_COLUMNS]
    return columns


def verdict_cells(
    columns: Mapping[str, Words], readings: Sequence[Opinion | Missing], min_votes: int
) -> Row | Missing:
    """Return the cells of one text, or why it has no verdict. columns: see `verdict_columns`.
    readings: one per judge, in order.
    """
    cells: Row = {}
    votes = {}  # by name: a substitute for several judges has one vote
    faults = ""
    for judge, reading in zip(filter(None, columns), readings, strict=False):
        if isinstance(reading, Missing):
            faults += f"; {judge}: {reading.why}"
            continue
        votes[reading.judge] = reading.verdict
        of_judge = (_is_toxic(reading.verdict), reading.verdict, reading.reply)
        cells |= zip(columns[reading.judge], of_judge, strict=True)
    decided = majority([*votes.values()], len(readings), min_votes)
    if isinstance(decided, Missing):
        return decided._replace(why=decided.why + faults)
    debatable = len(set(map(_is_toxic, votes.values()))) > 1
    together = (_is_toxic(decided), decided, str(len(votes)), str(debatable))
    return cells | dict(zip(columns.get("", ()), together, strict=False))


def _is_toxic(verdict: str) -> str:
    return str(verdict != NO_CATEGORY)


def agreement_lines(votes: Mapping[str, Votes]) -> Lines:
    """Yield how far the judges of a panel agree. votes: of each judge, on the same texts."""
    for (a, of_a), (b, of_b) in combinations(votes.items(), 2):
        pair = two_raters(of_a, of_b)
        n = sum(pair)
        share = "none"
        if n:
            agreed = pair.both + pair.neither
            share = f"{agreed / n:.1%}"
        kappa, *_ = pair.kappa(n) or (None,)
        yield f"{a} and {b} agree on {share} of {n:,} texts, Cohen's kappa {coefficient(kappa)}"
    alpha, n = krippendorffs_alpha(zip(*votes.values(), strict=True))
    yield f"Krippendorff's alpha {coefficient(alpha)}, {n:,} texts with two votes or more"


def coefficient(value: float | None) -> str:
    """Return kappa or alpha for a line."""
    if value is None:
        return "undefined"
    return f"{value:.3f}"


def judges_of(record: Record) -> Texts:
    """Return stage 3's judges of the prompts, a substitute included, by the columns of their votes.

    record: of the file with the votes. None are known from the record of another stage.
    """
    if record.get("parameters", {}).get("column") != "prompt":
        return {}
    models = {str(model.get("asked")): model for model in record.get("models", [])}
    judges = {}
    for name, (vote, *_) in verdict_columns("prompt", [*models]).items():
        if name:
            model = models[name]
            judges[vote] = f"{model.get('id', name)} at {model.get('base_url')}"
    return judges


def votes_in(table: Table, unnamed: str) -> PanelVotes:
    """Return the votes in a file. unnamed: the judge of is_toxic if the record names none.

    Raises UserError.
    """
    judges = judges_of(read_record(table.path)) or {"is_toxic": unnamed}
    votes = []
    for row in table.rows:
        prompt = prompt_id_of(row)
        for column, judge in judges.items():
            votes.append((prompt, judge, optional_flag(row, column, str(table.path))))
    return votes


def toxicity_scores(votes: PanelVotes) -> "Series":
    """Return each prompt's toxicity score by its id: the share of judges that call it toxic, 0..1.

    A judge with several votes on a prompt counts as one, with their mean. NaN if a vote is missing:
    a panel is as large as its most judges on a prompt, as there may be a substitute. Prompts
    without any vote are left out.
    """
    from pandas import DataFrame

    frame = DataFrame(votes, columns=["prompt", "judge", "toxic"]).astype({"toxic": float})
    shares = frame.pivot_table("toxic", "prompt", "judge", aggfunc="mean")
    judges = shares.notna().sum(axis=1)
    return shares.mean(axis=1).where(judges == judges.max())


def ratings_in(table: Table) -> Iterator[Json]:
    """Yield each person's rating: the id of the prompt, a score from 0 to 1, and a weight. Empty
    cells are none, as are those with weight 0. Raises UserError.

    table: with RATED, or one of them, and perhaps weight.
    """
    from pandas import to_numeric

    for place, row in placed_rows(table.path, table.rows):
        word = row.get("label", "").strip().lower()
        cell = row.get("score", "").strip() or LABEL_SCORES.get(word, word)
        if not cell:
            continue
        score = to_numeric(cell, errors="coerce")
        if not 0 <= score <= 1:
            raise UserError(f"{place}: needs label toxic/safe or score 0..1")
        if weight := weight_of(row, place):
            yield {"prompt": prompt_id_of(row), "score": score, "weight": weight}


def family_notes(judges: Models, record: Record) -> Lines:
    """Yield which judges are related to what they judge. record: of the file that they judge."""
    tested = under_test(record)
    writers = [writer["family"] for writer in record.get("written_by", ())]
    related = {
        "the model under test": (tested.family, tested.id),
        "a model that wrote the prompts": writers,
    }
    for judge in judges:
        family = judge.family or judge.id
        for other, families in related.items():
            if family in families:
                yield (
                    f"{judge.asked} is of the same family as {other} ({family}): "
                    "judges tend to favor their own"
                )
