"""Names that tell the results of a report apart, and what repeats another result."""

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.messages import UserError
from orbench.base.words import Words
from orbench.report.results import Result, Results, named

SAME_RESULT = ["model", "settings", "side", "prompt_set", "judge"]
# Why a result is not ranked, and the fields that it shares with that of another model. An empty
# last one is not known.
REPEATED = {
    "the same responses as {} throughout, a copy or an ignored setting": ["side", "responses_hash"],
    "the same model as {}, by the returned ids": [*SAME_RESULT[1:], "ids"],
}


def with_distinct_names(results: Results) -> list[Result]:
    """Return the results with numbers, with names that tell them apart, and with a note on what
    repeats another. Raises UserError for a result given twice.
    """
    if not results:
        return []
    table = DataFrame([vars(one) for one in results])
    table["number"] = table.index
    _extend(table, ["side", "prompts"], "prompt_set", " ")
    _extend(table, ["judge"], "template", ", prompt ")
    table["judge_any_version"] = table["judge"]
    _extend(table, ["judge"], "judge_version", ", rules ")
    same = table[table.duplicated(SAME_RESULT, keep=False)]
    if len(same):
        files = " and ".join(same["file"])
        raise UserError(
            f"{files}: the same model, prompts and judge; remove one, or rename it with MODEL=FILE"
        )
    table["label"] = [one.label for one in results]
    short = table["called"].str.rpartition("/")[2]  # without the provider
    models = table["model"].groupby(short).transform("nunique")
    table["called"] = short.where(models == 1, table["model"])
    table["short"] = table["called"]
    if table["settings"].nunique() > 1:
        table["short"] = list(map(named, table["short"], table["settings"]))
    _mark_repeats(table)
    return [Result(**fields) for fields in table.drop(columns="label").to_dict("records")]


def _extend(table: DataFrame, names: Words, by: str, word: str) -> None:
    """Append a word and eight digits of what tells them apart to the last of some columns, where
    these names stand for several things. by: the column with the hashes.
    """
    several = table.groupby(names)[by].transform("nunique") > 1
    table.loc[several, names[-1]] += word + table[by].str[:8]


def _mark_repeats(table: DataFrame) -> None:
    """Note what equals another model's result in some respect: it is not ranked."""
    for why, fields in REPEATED.items():
        known = table[(table[fields[-1]] != "") & ~table["is_baseline"]]
        first = known.groupby(fields)["label"].transform("first")
        for number, label in first[first != known["label"]].items():
            table.at[number, "unranked"] = (why.format(label),)
