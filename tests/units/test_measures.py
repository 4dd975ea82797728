"""What a report shows: the words in its CSVs, names."""

from orbench.report.measures import Associated, Compared, Counted, Kind, Outcome
from orbench.report.standings import Published

# Programs read these in results.csv, comparison.csv and associations.csv.
WORDS = {
    Kind: "overall, macro average, category, tier, label, score, pairs",
    Counted: "refused, helped, partial, safe_completion, direct, indirect, api, hedged, "
    "rejected_or_safe, higher_refused, both_refused, both_answered, reverse",
    Compared: "models, sets, changes, pairs",
    Associated: "trend, auc, word",
    Outcome: "finding, no difference shown, inconclusive: unscored rows could reverse this, "
    "too few prompts in common, doubtful, no finding: the prompts may differ in difficulty",
}


def test_the_words_in_csvs_stay_as_they_are() -> None:
    for words, names in WORDS.items():
        assert ", ".join(str(word.value) for word in words) == names


def test_published_models_are_shown_as_they_are() -> None:
    model = Published("x/y", "old", 0.123, 0.987)
    shown = (model.label, model.short, model.judge, model.score)
    assert shown == ("x/y", "x/y", "published", 0.864)  # and no 0.8639999
