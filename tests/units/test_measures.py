"""What a report shows: the words in its CSVs, names, marks."""

from dataclasses import replace

from orbench.report.compare import compare
from orbench.report.measures import OVERALL, Associated, Compared, Counted, Family, Kind, Outcome
from orbench.report.rates import rate
from orbench.report.standings import Published, Rank
from tests.results import responses, result_of

# Programs read these in results.csv, comparison.csv and associations.csv.
WORDS = {
    Kind: "overall, macro average, category, tier, label, score, pairs",
    Counted: "refused, helped, partial, safe_completion, direct, indirect, api, hedged, "
    "rejected_or_safe, right, both_refused, both_answered, reverse",
    Compared: "models, sets, pairs",
    Associated: "trend, auc, word",
    Outcome: "finding, no difference shown, unscored rows could reverse it, too few prompts or "
    "seeds in common, a result measures nothing",
}


def test_the_words_in_csvs_stay_as_they_are() -> None:
    for words, names in WORDS.items():
        assert ", ".join(str(word.value) for word in words) == names


def test_models_are_compared_across_versions_of_the_rules_and_others_within_one() -> None:
    rates = []
    for model in "ab":
        given = responses([1.0, 0.0])
        result = result_of(given, model=model, judge="rules, rules 7", judge_any_version="rules")
        rates.append(rate(result, given.verdicts(), OVERALL))
    (found,) = compare(rates)
    assert found.judge == "rules"
    assert replace(found, family=Family(Compared.SETS, "", 1)).judge == "rules, rules 7"


def test_published_models_and_ranks_are_shown_as_they_are() -> None:
    model = Published("x/y", "old", 0.123, 0.987)
    assert (model.label, model.short, model.judge) == ("x/y", "x/y", "published")
    assert model.score == 0.864  # and no 0.8639999
    assert (str(Rank(1, 3)), str(Rank(2, 2))) == ("1-3", "2")
