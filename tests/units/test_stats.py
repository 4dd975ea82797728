"""Means and differences of dependent verdicts; tests/simulations/coverage.py measures coverage."""

import subprocess
import sys
from itertools import product
from math import isnan, nan

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.stats import norm, t  # type: ignore[import-untyped]
from statsmodels.stats import contingency_tables, proportion  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.stats.association import auc, holm, log_odds
from orbench.stats.core import (
    ALPHA,
    ASSUMED_ICC,
    FEW_CLUSTERS,
    Difference,
    Verdicts,
    difference,
    mean,
    with_unscored,
    worst_case_p,
)
from orbench.stats.inference import t95
from orbench.stats.intervals import bonett_price, wilson
from orbench.stats.labels import corrected
from orbench.stats.power import detectable_difference


def of(refused: object, rewrites: int = 1) -> Verdicts:
    """One row a prompt, that many prompts a seed."""
    values = np.asarray(refused, dtype=float)
    return Verdicts(values, np.arange(len(values)), np.arange(len(values)) // rewrites)


def made(number: int, rate: float, seeds: int = 30) -> Verdicts:
    """Five prompts a seed; seeds differ in how often they are refused."""
    random = np.random.default_rng(number)
    each = np.repeat(random.beta(rate * 2, (1 - rate) * 2, seeds), 5)
    return of(random.random(len(each)) < each, 5)


def worst_p(a: Verdicts, b: Verdicts) -> float:
    return worst_case_p(a, b, difference(a, b, paired=True))


def test_stage_scripts_get_intervals_and_agreement_without_numpy() -> None:
    code = "import sys, orbench.stats.{}, orbench.stats.{}; sys.exit('numpy' in sys.modules)"
    code = code.format("intervals", "agreement")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (1, 2), (0, 30), (168, 1319), (655, 655)])
def test_where_all_rows_are_independent_the_mean_has_wilsons_interval(hits: int, n: int) -> None:
    found = mean(of(np.arange(n) < hits))
    reference = proportion.proportion_confint(hits, n, method="wilson")
    assert found.interval == pytest.approx(wilson(hits, n), abs=1e-12)
    assert wilson(hits, n) == pytest.approx(reference, abs=1e-12)
    assert (found.rate, found.prompts, found.rows) == (hits / n, n, n)
    assert found.design_effect == pytest.approx(1) and wilson(0, 0) == (0, 1)


def cr2_variance(rows: Verdicts) -> float:
    """Of the mean of the categories' means, by its definition with matrices."""
    assert isinstance(rows.category, np.ndarray)
    design = (rows.category[:, None] == np.unique(rows.category)).astype(float)
    inverse = np.linalg.inv(design.T @ design)
    residual = rows.refused - design @ inverse @ design.T @ rows.refused
    variance = 0.0
    for name in np.unique(rows.cluster):
        x = design[rows.cluster == name]
        values, vectors = np.linalg.eigh(np.eye(len(x)) - x @ inverse @ x.T)
        adjust = vectors @ np.diag(values**-0.5) @ vectors.T
        scores = inverse @ x.T @ adjust @ residual[rows.cluster == name]
        variance += float(scores.mean() ** 2)
    return variance


@pytest.mark.parametrize("categories", [1, 3])
def test_unequal_seeds_that_span_categories_have_the_cr2_variance(categories: int) -> None:
    random = np.random.default_rng(3)
    cluster = np.repeat(np.arange(40), random.integers(1, 12, 40))
    category, n = random.integers(0, categories, len(cluster)), len(cluster)
    refused = (random.random(n) < random.random(40)[cluster]).astype(float)
    rows = Verdicts(refused, np.arange(n), cluster, category)
    found, p = mean(rows), [refused[category == one].mean() for one in range(categories)]
    quantiles = (t.ppf(0.975, n - 1) / t.ppf(0.975, found.df)) ** 2
    expected = np.mean(p) * (1 - np.mean(p)) * n / (n - 1) / cr2_variance(rows) * quantiles
    assert (found.rate, found.effective) == pytest.approx((np.mean(p), expected))
    assert found.low == pytest.approx(wilson(found.rate * expected, expected)[0])


def test_where_few_seeds_hold_the_rarer_outcome_the_assumed_correlation_gives_the_size() -> None:
    found, size = mean(of(np.zeros(100), 5)), 100 / (1 + 4 * ASSUMED_ICC)
    assert found.interval == pytest.approx(wilson(0, size))
    few, enough = np.zeros(500), np.zeros(500)
    few[: 5 * (FEW_CLUSTERS - 1) : 5] = enough[: 5 * FEW_CLUSTERS : 5] = 1
    assert mean(of(few, 5)).design_effect == pytest.approx(3)
    assert mean(of(enough, 5)).design_effect == 1  # never less than that of independent rows


def test_t_has_one_degree_of_freedom_at_least() -> None:
    assert t95(0.3) == t95(1) == pytest.approx(t.ppf(0.975, 1))


def test_one_seed_says_as_little_as_two_rows() -> None:
    found = mean(of(np.arange(1000) % 2, 1000))
    assert found.effective == pytest.approx(2, abs=0.01) and found.low < 0.1 < 0.9 < found.high
    assert found.df == 1


def test_the_samples_of_a_prompt_are_averaged_and_unscored_rows_left_out() -> None:
    ids = np.array([7, 7, 3, 7, 3, 9])
    found = mean(Verdicts(np.array([1, 0, 1, nan, 1, nan]), ids, ids))
    assert found.rate == (1 + 0.5) / 2
    assert (found.rows, found.prompts) == (4, 2)
    random, prompt = np.random.default_rng(5), np.repeat(np.arange(200), 5)
    same, differing = prompt < 60, random.random(1000) < 0.3
    assert mean(Verdicts(same, prompt, prompt)).effective == pytest.approx(200, rel=0.02)
    assert mean(Verdicts(differing, prompt, prompt)).effective == pytest.approx(1000, rel=0.25)


def test_where_nothing_is_scored_every_rate_is_possible() -> None:
    for found in (mean(of([nan, nan])), mean(of([]))):
        assert isnan(found.rate) and isnan(found.design_effect) and not found.rows
        assert found.interval == (0, 1)


def test_a_macro_average_is_the_mean_of_the_categories_that_have_a_verdict() -> None:
    category, refused = np.repeat([4, 8, 6], [100, 10, 20]), np.arange(130) % 2.0
    refused[100:109], refused[110:] = 0, nan
    found = mean(of(refused)._replace(category=category))
    assert found.rate == pytest.approx((0.5 + 0.1) / 2) and found.rows == 110
    assert found.effective < 60  # the small category counts as much as the large one
    assert mean(of(refused[:100])._replace(category=category[:100])) == mean(of(refused[:100]))


def test_neither_the_order_of_rows_nor_their_ids_matter() -> None:
    order = np.random.default_rng(1).permutation(150)
    a = made(1, 0.4)._replace(category=np.arange(150) % 3)
    ids = [5 - 3 * np.asarray(numbers)[order] for numbers in a[1:4]]
    other = Verdicts(a.refused[order], *ids)
    assert mean(other) == pytest.approx(mean(a))
    b, turned = a._replace(refused=1 - a.refused), other._replace(refused=1 - other.refused)
    found, same = difference(a, b, paired=True), difference(other, turned, paired=True)
    assert same[2:] == pytest.approx(found[2:])


def test_the_interval_with_unscored_rows_holds_whether_they_were_answered_or_refused() -> None:
    found = with_unscored(of([1, 1, 1, 0, 0, 0, 0, 0, nan, nan]))
    assert found == (mean(of(np.arange(10) < 3)).low, mean(of(np.arange(10) < 5)).high)
    assert with_unscored(of([1, 0])) == mean(of([1, 0])).interval


@pytest.mark.parametrize(("a_only", "b_only"), [(5, 0), (6, 0), (7, 1), (9, 0), (1, 1), (4, 5)])
def test_where_few_single_prompts_differ_p_is_mcnemars(a_only: int, b_only: int) -> None:
    cells = (30, a_only, b_only, 40)
    a, b = (of(np.repeat(values, cells)) for values in ([1, 1, 0, 0], [1, 0, 1, 0]))
    expected = contingency_tables.mcnemar([[30, a_only], [b_only, 40]], exact=True).pvalue
    assert difference(a, b, paired=True).p == pytest.approx(expected)


@pytest.mark.parametrize("number", range(2))
def test_p_and_the_end_near_0_are_those_of_the_cluster_robust_t_test(number: int) -> None:
    a, b = made(number, 0.5), made(number + 100, 0.3)
    fit = sm.OLS(a.refused - b.refused, np.ones(150))
    fit = fit.fit(cov_type="cluster", cov_kwds={"groups": a.cluster}, use_t=True)
    found, (low, high) = difference(a, b, paired=True), fit.conf_int()[0]
    assert found.p == pytest.approx(fit.pvalues[0])
    assert found.difference > 0 and found.low <= low + 1e-12 and found.high >= high - 1e-12


def test_two_sets_without_common_seeds_have_newcombes_interval() -> None:
    a, b = of(np.arange(80) < 30), of(np.arange(120) < 24)
    found = difference(a, Verdicts(b.refused, b.prompt + 1000, b.prompt + 1000), paired=False)
    assert found.df == pytest.approx(79)  # of the smaller set
    expected = proportion.confint_proportions_2indep(30, 80, 24, 120, method="newcomb")
    assert found.interval == pytest.approx(expected) and found.p < ALPHA
    assert found.difference == pytest.approx(30 / 80 - 24 / 120) and found.correlation == 0


def test_seeds_in_common_tie_two_prompt_sets() -> None:
    both = np.repeat(np.random.default_rng(8).random(60), 10)
    refused = np.random.default_rng(9).random(600) < both
    seeds = np.arange(300) // 5
    toxic = Verdicts(refused[::2], np.arange(300), seeds)
    safe = Verdicts(refused[1::2], np.arange(300, 600), seeds)
    tied = difference(toxic, safe, paired=False)
    apart = difference(toxic, safe._replace(cluster=seeds + 1000), paired=False)
    assert tied.correlation > 0.3 and apart.correlation == 0
    assert tied.high - tied.low < 0.8 * (apart.high - apart.low) and tied.p <= apart.p


def test_test_and_interval_never_contradict_each_other_in_either_order() -> None:
    random = np.random.default_rng(9)
    for seeds, rewrites, repeat, paired in product((2, 5, 12), (1, 4), range(12), (True, False)):
        n = seeds * rewrites
        x, y = (of(random.random(n) < rate, rewrites) for rate in random.random(2))
        x.refused[random.random(n) < 0.1] = nan
        x, y = (rows._replace(category=np.arange(n) % (1 + repeat % 3)) for rows in (x, y))
        found, back = difference(x, y, paired=paired), difference(y, x, paired=paired)
        if found.a.rows:
            assert (found.p < ALPHA) == (found.low > 0 or found.high < 0), found
            assert -1 <= found.low <= found.difference + 1e-9, found
            assert found.difference - 1e-9 <= found.high <= 1, found
            turned = (-back.high, -back.low, back.p)
            assert turned == pytest.approx((found.low, found.high, found.p), abs=1e-9)


def test_only_prompts_with_a_verdict_from_both_are_paired() -> None:
    found = difference(of([1, 0, nan, 1, 1]), of([0, nan, 1, 1]), paired=True)
    assert (found.a.rate, found.b.rate, found.a.prompts) == (1, 0.5, 2)


def test_where_two_files_disagree_on_the_seeds_the_larger_ones_count_in_either_order() -> None:
    a, b = made(1, 0.2), made(2, 0.35)
    without = b._replace(cluster=b.prompt + 1000)
    found, back = (difference(*two, paired=True) for two in ((a, without), (without, a)))
    assert found[2:] == pytest.approx(difference(a, b, paired=True)[2:])
    assert found.p == pytest.approx(back.p)


def test_where_few_seeds_differ_all_flips_of_their_signs_are_the_test() -> None:
    a = np.zeros(200)
    a[:20:4] = 1  # five seeds, one refusal in each
    found = difference(of(a, 4), of(np.zeros(200), 4), paired=True)
    assert found.p == 2 / 32 and found.low < 0 < found.high


def test_where_all_prompts_differ_alike_the_interval_still_has_a_width() -> None:
    none, every = of(np.zeros(100), 5), of(np.ones(100), 5)
    alike, apart = difference(none, none, paired=True), difference(every, none, paired=True)
    assert alike.p == 1 and alike.low < -0.05 < 0.05 < alike.high
    assert apart.p < 1e-6 and 0.5 < apart.low < 0.95 and apart.high == 1


def test_one_prompt_or_seed_shows_nothing_and_without_a_prompt_there_is_no_difference() -> None:
    for one in (of([1]), of(np.ones(9), 9)):
        found = difference(one, one._replace(refused=1 - one.refused), paired=True)
        assert found.p >= ALPHA and found.low <= 0 < found.high == 1
    for nothing, paired in product((of([nan, nan]), of([])), (True, False)):
        found = difference(of([1, 0]), nothing, paired=paired)
        assert isnan(found.p) and isnan(found.low) and isnan(found.difference)


def test_a_finding_must_withstand_the_unscored_rows() -> None:
    random = np.random.default_rng(14)
    a, b = ((random.random(1000) < 0.4).astype(float) for _ in "ab")
    lost = of(np.where((random.random(1000) < 0.6) & (b == 1), nan, b))
    assert difference(of(a), lost, paired=True).p < 1e-6  # nothing but the loss
    worst = worst_p(of(a), lost)
    assert worst > ALPHA
    assert worst_p(lost, of(a)) == pytest.approx(worst)
    few = np.where(np.arange(1000) < 20, nan, np.arange(1000) < 200)
    assert worst_p(of(few), of(a)) < 1e-6
    half, many = of(np.repeat([1, 0, nan], [10, 10, 80])), of(np.arange(100) < 60)
    assert worst_p(half, many) == 1  # from 50 % lower to 30 % higher


@pytest.mark.parametrize("n", [1, 3, 40])
def test_p_values_are_corrected_as_by_statsmodels(n: int) -> None:
    p = np.random.default_rng(n).random(n).round(2) ** 3  # with ties
    assert holm(list(p)) == pytest.approx(multipletests(p, method="holm")[1])


def test_a_missing_p_value_counts_as_one_and_none_need_no_correction() -> None:
    assert holm([0.01, nan, 0.03]) == pytest.approx([0.03, 1, 0.06])
    assert not len(holm([]))


@pytest.mark.parametrize(("correlation", "lost"), [(0, 0), (0.5, 0), (0.3, 0.02)])
def test_the_detectable_difference_is_that_of_the_textbook(correlation: float, lost: float) -> None:
    of_b = mean(of(np.arange(2000) % 10 == 0))
    of_a = of_b._replace(effective=700.0, df=12)
    found = Difference(of_a, of_b, -1, 1, 1, correlation, 12)
    delta = detectable_difference(found, 3, lost)
    rates = np.array([0.1, 0.1 + delta])
    shown = rates * (1 - lost) + [lost, 0]  # each the other way: the worst case
    both = np.sqrt((rates * (1 - rates)).prod()) * (1 - lost) ** 2
    variance = (shown * (1 - shown)).sum() - 2 * correlation * both
    size = 700 * (t.ppf(0.975, 12) / t.ppf(0.975, 1999)) ** 2
    level = t.ppf(1 - ALPHA / 6, 12)
    quantiles = level + t.ppf(0.8, 12) * np.sqrt(1 + level**2 / 24)
    error = np.sqrt(variance * (1 / size + 1 / 2000) / 2) * (1 - lost)
    assert shown[1] - shown[0] == pytest.approx(quantiles * error, abs=2e-4)


def test_models_that_never_differed_could_have_and_two_prompts_detect_nothing() -> None:
    for same in (of(np.zeros(100)), of(np.arange(100) % 2)):
        assert 0.04 < detectable_difference(difference(same, same, paired=True)) < 0.2
    assert isnan(detectable_difference(difference(of([1, 0]), of([0, 1]), paired=True)))


def test_the_worst_case_turns_all_unscored_rows_against_the_finding() -> None:
    a, b = made(1, 0.5), made(2, 0.2)
    a.refused[::20] = b.refused[7::20] = nan
    worst = difference(a.imputed(0), b.imputed(1), paired=True)
    assert worst_p(a, b) == worst_p(b, a) == worst.p


def test_bonett_and_prices_interval_is_walds_with_one_more_pair_of_each_kind() -> None:
    gaps = np.repeat([1, -1, 0], [20 + 1, 10 + 1, 170])
    half = norm.ppf(0.975) * gaps.std() / np.sqrt(202)
    assert bonett_price(0.1 - 0.05, 0.1 + 0.05, 200) == pytest.approx(
        (gaps.mean() - half, gaps.mean() + half)
    )


def test_the_auc_and_its_variance_are_those_of_their_definitions() -> None:
    random = np.random.default_rng(60)
    rows_seed = np.repeat(np.arange(60), 5)
    prompt = np.arange(300) // 2  # some across two seeds
    seed = rows_seed[::2]  # a prompt belongs to the first one
    score = (random.random(150) + random.random(60)[seed]).round(1)
    refused = (random.random(300) * 2 < score[prompt]).astype(float)
    rows = Verdicts(refused, prompt, rows_seed, weight=1.0 + rows_seed % 2)
    weight = 1.0 + seed % 2
    share = refused.reshape(150, 2).mean(axis=1)
    yes, no = weight * share, weight * (1 - share)
    above = (np.sign(score[:, None] - score) + 1) / 2
    value = yes @ above @ no / yes.sum() / no.sum()
    deviation = yes * (above @ no / no.sum() - value) / yes.sum()
    deviation += no * (yes @ above / yes.sum() - value) / no.sum()
    others = 1 - np.bincount(seed, weight) / weight.sum()
    variance = (np.bincount(seed, deviation) ** 2 / others).sum()
    sums = [np.bincount(seed, each) for each in (yes, no)]
    even = min(each.sum() ** 2 / (each**2).sum() for each in sums)
    size = value * (1 - value) / variance * (norm.ppf(0.975) / t.ppf(0.975, even - 1)) ** 2
    assert auc(rows, score) == pytest.approx((value, *wilson(value * size, size)))


def test_log_odds_shrink_to_the_prior_and_their_z_allows_for_seeds() -> None:
    seed = np.repeat(np.arange(30), 2)
    refused = seed < 10
    same = np.repeat([1.0, 0, 1, 0], [16, 4, 14, 26])  # in both prompts of a seed, or neither
    one_of_two = np.arange(60) % 2.0
    found = log_odds(csr_array(np.column_stack([same, one_of_two])), refused, seed)
    assert [list(found.refused), list(found.answered)] == [[16, 10], [14, 20]]
    yes, no = np.array([16, 14]) + 5, np.array([4, 26]) + 5  # half of ten more prompts
    gap = np.log(yes[0] * no[1] / no[0] / yes[1])
    z = gap / np.sqrt(2 * (1 / yes + 1 / no).sum())  # a seed says as much as one prompt
    assert found.log_odds == pytest.approx([gap, 0])
    assert found.z == pytest.approx([z, 0])
    assert found.q == pytest.approx(multipletests([2 * norm.sf(z), 1], method="fdr_bh")[1])


@pytest.mark.parametrize("cells", [(20, 0, 0, 60), (20, 3, 9, 48), (5, 9, 12, 14)])
def test_a_rate_corrected_by_labels_is_that_of_prediction_powered_inference(
    cells: tuple[int, ...],
) -> None:
    f, y = np.repeat([[1, 1, 0, 0], [1, 0, 1, 0]], cells, axis=1)  # by the judge, by people
    n = len(f)
    judge = of([*f, *[0, 1, 0] * 100])
    (of_judge, both), (_, of_people) = np.cov([*f, 1, 0], [*y, 0, 1], ddof=0)
    trust = np.clip(both / of_judge / (1 + n / (n + 300)), 0, 1)
    gap = y - trust * f
    rate = trust * judge.refused.mean() + gap.mean()
    least = of_people - 2 * trust * both + trust**2 * of_judge
    variance = max(gap.var(ddof=1) / n, least / (n + 2))
    variance += trust**2 * judge.refused.var(ddof=1) / (n + 300)
    size = rate * (1 - rate) / variance
    found = corrected(judge, np.array([*y, *[nan] * 300]))
    assert found == pytest.approx((rate, *wilson(rate * size, size)))
