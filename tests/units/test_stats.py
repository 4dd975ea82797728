"""Means and differences of dependent verdicts; tests/simulations/coverage.py measures coverage."""

import subprocess
import sys
from itertools import product
from math import isnan, nan

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy.linalg import sqrtm  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.stats import binomtest, norm, sem, t  # type: ignore[import-untyped]
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
from orbench.stats.intervals import Interval, bonett_price, wilson
from orbench.stats.labels import corrected
from orbench.stats.power import detectable_difference
from tests.units.read_results import verdicts_of


def of(refused: object, rewrites: int = 1) -> Verdicts:
    """One row a prompt, that many prompts a seed. refused: values, or a text as "1*30+0*50+?"."""
    values = np.array(verdicts_of(refused) if isinstance(refused, str) else refused, dtype=float)
    prompts = np.arange(len(values))
    return Verdicts(values, prompts, prompts // rewrites)


def made(number: int, rate: float, seeds: int = 30) -> Verdicts:
    """Five prompts a seed; seeds differ in how often they are refused."""
    random = np.random.default_rng(number)
    each = np.repeat(random.beta(rate * 2, (1 - rate) * 2, seeds), 5)
    return of(random.random(len(each)) < each, 5)


def worst_p(a: Verdicts, b: Verdicts) -> float:
    return worst_case_p(a, b, difference(a, b, paired=True))


def test_an_end_that_is_not_0_does_not_look_like_0() -> None:
    ends = {0.0003: "0.03", -0.00004: "-0.004", 0.0005: "0.1", -1e-12: "0.0", 0: "0.0"}
    for low, shown in ends.items():
        assert str(Interval(low, 0.112)) == f"[{shown}, 11.2]"


def test_stage_scripts_get_intervals_and_agreement_without_numpy() -> None:
    code = "import sys, orbench.stats.{}, orbench.stats.{}; sys.exit('numpy' in sys.modules)"
    code = code.format("intervals", "agreement")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (1, 2), (0, 30), (168, 1319), (655, 655)])
def test_where_all_rows_are_independent_the_mean_has_wilsons_interval(hits: int, n: int) -> None:
    found = mean(of(f"1*{hits}+0*{n - hits}"))
    reference = proportion.proportion_confint(hits, n, method="wilson")
    assert found.interval == pytest.approx(reference, abs=1e-12)
    assert (found.rate, found.prompts, found.rows) == (hits / n, n, n)
    assert found.design_effect == pytest.approx(1)


def cr2_variance(rows: Verdicts) -> float:
    """Of the mean of the categories' means, by its definition with matrices."""
    design = pd.get_dummies(rows.category).to_numpy(float)
    inverse = np.linalg.pinv(design)
    hat = design @ inverse
    deviations = rows.refused - hat @ rows.refused
    variance = 0.0
    for cluster in np.unique(rows.cluster):
        (own,) = np.nonzero(rows.cluster == cluster)
        root = sqrtm(np.eye(len(own)) - hat[np.ix_(own, own)])
        part = inverse.mean(axis=0)[own] @ np.linalg.solve(root, deviations[own])
        variance += part**2
    return variance


@pytest.mark.parametrize("categories", [1, 3])
def test_unequal_seeds_that_span_categories_have_the_cr2_variance(categories: int) -> None:
    random = np.random.default_rng(3)
    cluster = np.repeat(np.arange(40), random.integers(1, 12, 40))
    n = len(cluster)
    category = random.integers(0, categories, n)
    refused = random.random(n) < random.random(40)[cluster]
    rows = of(refused)._replace(cluster=cluster, category=category)
    found = mean(rows)
    rate = pd.Series(refused).groupby(category).mean().mean()
    quantiles = t.ppf(0.975, n - 1) / t.ppf(0.975, found.df)
    size = rate * (1 - rate) * n / (n - 1) / cr2_variance(rows) * quantiles**2
    assert (found.rate, found.effective) == pytest.approx((rate, size))
    assert found.interval == pytest.approx(wilson(rate * size, size))


def test_where_few_seeds_hold_the_rarer_outcome_the_assumed_correlation_gives_the_size() -> None:
    size = 100 / (1 + 4 * ASSUMED_ICC)
    assert mean(of("0*100", 5)).interval == pytest.approx(wilson(0, size))
    few = "10000" * (FEW_CLUSTERS - 1) + "+0*455"
    assert mean(of(few, 5)).design_effect == pytest.approx(3)
    assert mean(of("10000" + few, 5)).design_effect == 1  # at least that of independent rows


def test_t_has_one_degree_of_freedom_at_least() -> None:
    assert t95(0.3) == t95(1) == pytest.approx(t.ppf(0.975, 1))


def test_one_seed_says_as_little_as_two_rows() -> None:
    found = mean(of("01" * 500, 1000))
    assert found.effective == pytest.approx(2, abs=0.01) and found.df == 1


def test_the_samples_of_a_prompt_are_averaged_and_unscored_rows_left_out() -> None:
    ids = np.array([7, 7, 3, 7, 3, 9])
    found = mean(of("101?1?")._replace(prompt=ids, cluster=ids))
    assert (found.rate, found.rows, found.prompts) == (0.75, 4, 2)
    prompt = np.arange(1000) // 5
    differing = np.random.default_rng(5).random(1000) < 0.3
    assert mean(Verdicts(prompt < 60, prompt, prompt)).effective == pytest.approx(200, rel=0.02)
    assert mean(Verdicts(differing, prompt, prompt)).effective == pytest.approx(1000, rel=0.25)


@pytest.mark.parametrize("nothing", ["??", ""])
def test_where_nothing_is_scored_every_rate_is_possible(nothing: str) -> None:
    found = mean(of(nothing))
    assert isnan(found.rate) and isnan(found.design_effect) and not found.rows
    assert found.interval == wilson(0, 0) == (0, 1)


def test_a_macro_average_is_the_mean_of_the_categories_that_have_a_verdict() -> None:
    category = np.repeat([4, 8, 6], [100, 10, 20])
    found = mean(of("01" * 50 + "+0*9+1+?*20")._replace(category=category))
    assert found.rate == pytest.approx((0.5 + 0.1) / 2) and found.rows == 110
    assert found.effective < 60  # the small category counts as much as the large one
    one = of("01" * 50)
    assert mean(one._replace(category=category[:100])) == mean(one)


def test_neither_the_order_of_rows_nor_their_ids_matter() -> None:
    a = made(1, 0.4)._replace(category=np.arange(150) % 3)
    b = a._replace(refused=1 - a.refused)
    (rate, interval, *rest), (as_rate, as_interval, *as_rest) = mean(shuffled(a)), mean(a)
    assert [rate, *interval, *rest] == pytest.approx([as_rate, *as_interval, *as_rest])
    found, same = difference(a, b, paired=True), difference(shuffled(a), shuffled(b), paired=True)
    assert same.interval == pytest.approx(found.interval)


def shuffled(rows: Verdicts) -> Verdicts:
    rows = rows.where(np.random.default_rng(1).permutation(150))
    return rows._replace(prompt=5 - 3 * rows.prompt, cluster=5 - 3 * rows.cluster)


def test_the_interval_with_unscored_rows_holds_whether_they_were_answered_or_refused() -> None:
    found = with_unscored(of("1*3+0*5+??"))
    assert found == (mean(of("1*3+0*7")).interval.low, mean(of("1*5+0*5")).interval.high)


@pytest.mark.parametrize(("a_only", "b_only"), [(5, 0), (6, 0), (7, 1), (9, 0), (1, 1), (4, 5)])
def test_where_few_single_prompts_differ_p_is_mcnemars(a_only: int, b_only: int) -> None:
    a = of(f"1*30+1*{a_only}+0*{b_only}+0*40")
    b = of(f"1*30+0*{a_only}+1*{b_only}+0*40")
    found = difference(a, b, paired=True)
    assert found.p == pytest.approx(binomtest(a_only, a_only + b_only).pvalue)


@pytest.mark.parametrize("number", range(2))
def test_p_and_the_end_near_0_are_those_of_the_cluster_robust_t_test(number: int) -> None:
    a, b = made(number, 0.5), made(number + 100, 0.3)
    fit = sm.OLS(a.refused - b.refused, np.ones(150))
    fit = fit.fit(cov_type="cluster", cov_kwds={"groups": a.cluster}, use_t=True)
    found, (low, high) = difference(a, b, paired=True), fit.conf_int()[0]
    assert found.p == pytest.approx(fit.pvalues[0])
    assert found.difference > 0
    assert found.interval.low <= low + 1e-12 and found.interval.high >= high - 1e-12


def test_two_sets_without_common_seeds_have_newcombes_interval() -> None:
    b = of("1*24+0*96")
    elsewhere = b.prompt + 1000
    b = b._replace(prompt=elsewhere, cluster=elsewhere)
    found = difference(of("1*30+0*50"), b, paired=False)
    expected = proportion.confint_proportions_2indep(30, 80, 24, 120, method="newcomb")
    assert found.interval == pytest.approx(expected) and found.p < ALPHA
    assert found.df == pytest.approx(79)  # of the smaller set
    assert found.difference == pytest.approx(30 / 80 - 24 / 120) and found.correlation == 0


def test_seeds_in_common_tie_two_prompt_sets() -> None:
    toxic = made(8, 0.5)
    safe = toxic._replace(refused=np.roll(toxic.refused, 1), prompt=toxic.prompt + 150)
    tied = difference(toxic, safe, paired=False)
    apart = difference(toxic, safe._replace(cluster=safe.cluster + 1000), paired=False)
    assert tied.correlation > 0.3 and apart.correlation == 0
    widths = [one.interval.high - one.interval.low for one in (tied, apart)]
    assert widths[0] < 0.8 * widths[1] and tied.p <= apart.p


@pytest.mark.parametrize("seeds", [2, 5, 12])
@pytest.mark.parametrize("rewrites", [1, 4])
@pytest.mark.parametrize("categories", [1, 3])
@pytest.mark.parametrize("paired", [True, False])
def test_test_and_interval_never_contradict_each_other_in_either_order(
    seeds: int, rewrites: int, categories: int, paired: bool
) -> None:
    random = np.random.default_rng(9)
    category = np.arange(seeds * rewrites) % categories
    for rates in random.random((12, 2, 1)):
        refused = random.random((2, len(category))) < rates
        x, y = (of(row, rewrites)._replace(category=category) for row in refused)
        x.refused[1::9] = nan
        found = difference(x, y, paired=paired)
        low, high = found.interval
        assert (found.p < ALPHA) == (low > 0 or high < 0), found
        assert -1 <= low <= found.difference + 1e-9 <= high + 2e-9, found
        assert high <= 1
        back = difference(y, x, paired=paired)
        assert back.p == pytest.approx(found.p, abs=1e-9)
        assert back.interval == pytest.approx((-high, -low), abs=1e-9)


def test_only_prompts_with_a_verdict_from_both_are_paired() -> None:
    found = difference(of("10?11"), of("0?11"), paired=True)
    assert (found.a.rate, found.b.rate, found.a.prompts) == (1, 0.5, 2)


def test_where_two_files_disagree_on_the_seeds_the_larger_ones_count_in_either_order() -> None:
    a, b = made(1, 0.2), made(2, 0.35)
    without = b._replace(cluster=b.prompt + 1000)
    found = difference(a, without, paired=True)
    assert found.interval == pytest.approx(difference(a, b, paired=True).interval)
    assert found.p == pytest.approx(difference(without, a, paired=True).p)


def test_where_few_seeds_differ_all_flips_of_their_signs_are_the_test() -> None:
    found = difference(of("1000" * 5 + "+0*180", 4), of("0*200", 4), paired=True)
    assert found.p == 2 / 32 and found.interval.low < 0 < found.interval.high


def test_where_all_prompts_differ_alike_the_interval_still_has_a_width() -> None:
    none = of("0*100", 5)
    alike, apart = (difference(one, none, paired=True) for one in (none, of("1*100", 5)))
    assert alike.p == 1 and alike.interval.low < -0.05 < 0.05 < alike.interval.high
    assert apart.p < 1e-6 and 0.5 < apart.interval.low < 0.95 and apart.interval.high == 1


@pytest.mark.parametrize("n", [1, 9])
def test_one_prompt_or_one_seed_shows_nothing(n: int) -> None:
    found = difference(of("1" * n, n), of("0" * n, n), paired=True)
    assert found.p >= ALPHA and found.interval.low <= 0 < found.interval.high == 1


@pytest.mark.parametrize("nothing", ["??", ""])
@pytest.mark.parametrize("paired", [True, False])
def test_without_a_scored_prompt_there_is_no_difference(nothing: str, paired: bool) -> None:
    found = difference(of("10"), of(nothing), paired=paired)
    assert isnan(found.p) and isnan(found.interval.low) and isnan(found.difference)


def test_a_finding_must_withstand_the_unscored_rows() -> None:
    a, b = made(1, 0.5), made(2, 0.2)
    a.refused[::20] = b.refused[7::20] = nan
    worst = difference(a.imputed(0), b.imputed(1), paired=True)
    assert worst_p(a, b) == worst_p(b, a) == worst.p < 1e-4
    c = made(3, 0.5)
    lost = c._replace(refused=np.where((c.refused == 1) & (c.prompt % 5 < 3), nan, c.refused))
    assert difference(a, lost, paired=True).p < 0.01  # nothing but the loss
    assert worst_p(a, lost) > ALPHA
    half, many = of("1*10+0*10+?*80"), of("1*60+0*40")
    assert worst_p(half, many) == 1  # from 50 % lower to 30 % higher


@pytest.mark.parametrize("n", [1, 3, 40])
def test_p_values_are_corrected_as_by_statsmodels_and_a_missing_one_counts_as_one(n: int) -> None:
    p = np.random.default_rng(n).random(n).round(2) ** 3  # with ties
    wanted = multipletests([*p, 1], method="holm")[1]
    assert holm([*p, nan]) == pytest.approx(wanted)


def test_no_p_values_need_no_correction() -> None:
    assert not len(holm([]))


@pytest.mark.parametrize(("correlation", "lost"), [(0, 0), (0.5, 0), (0.3, 0.02)])
def test_the_detectable_difference_is_that_of_the_textbook(correlation: float, lost: float) -> None:
    of_b = mean(of("1*200+0*1800"))
    of_a = of_b._replace(effective=700.0, df=12)
    found = Difference(of_a, of_b, Interval(-1, 1), 1, correlation, 12)
    higher = 0.1 + detectable_difference(found, 3, lost)
    kept = 1 - lost
    low, high = 0.1 * kept + lost, higher * kept  # each the other way: the worst case
    covariance = correlation * kept**2 * np.sqrt(0.1 * 0.9 * higher * (1 - higher))
    variance = low * (1 - low) + high * (1 - high) - 2 * covariance
    size = 700 * (t.ppf(0.975, 12) / t.ppf(0.975, 1999)) ** 2
    error = np.sqrt(variance * (1 / size + 1 / 2000) / 2) * kept
    level = t.ppf(1 - ALPHA / 6, 12)
    quantiles = level + t.ppf(0.8, 12) * np.sqrt(1 + level**2 / 24)
    assert high - low == pytest.approx(quantiles * error, abs=2e-4)


def test_models_that_never_differed_could_have_and_two_prompts_detect_nothing() -> None:
    for same in (of("0*100"), of("01" * 50)):
        assert 0.04 < detectable_difference(difference(same, same, paired=True)) < 0.2
    assert isnan(detectable_difference(difference(of("10"), of("01"), paired=True)))


def test_bonett_and_prices_interval_is_walds_with_one_more_pair_of_each_kind() -> None:
    gaps = np.repeat([1, -1, 0], [20 + 1, 10 + 1, 170])
    wald = norm.interval(0.95, gaps.mean(), sem(gaps, ddof=0))
    assert bonett_price(0.05, 0.15, 200) == pytest.approx(wald)


@pytest.mark.parametrize("kind", ["0", "1"])
def test_where_all_that_differ_do_so_one_way_the_interval_reaches_as_far_as_their_shares(
    kind: str,
) -> None:
    a = of(kind * 2 + "0" * 298)
    b = of("10"[int(kind)] * 2 + "0" * 298)
    _, high = proportion.proportion_confint(2, 300, method="wilson")
    ends = difference(a, b, paired=True).interval
    assert max(map(abs, ends)) == pytest.approx(high)


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
    area, interval = auc(rows, score)
    assert (area, *interval) == pytest.approx((value, *wilson(value * size, size)))


def test_log_odds_shrink_to_the_prior_and_their_z_allows_for_seeds() -> None:
    seed = np.arange(60) // 2
    same = verdicts_of("1*16+0*4+1*14+0*26")  # in both prompts of a seed, or neither
    one_of_two = verdicts_of("01" * 30)
    features = csr_array(np.column_stack([same, one_of_two]))
    found = log_odds(features, seed < 10, seed)
    assert [list(found.refused), list(found.answered)] == [[16, 10], [14, 20]]
    table = contingency_tables.Table2x2(np.array([[16, 4], [14, 26]]) + 5)  # ten more prompts
    z = table.log_oddsratio / table.log_oddsratio_se / np.sqrt(2)  # a seed is like one prompt
    assert list(found.log_odds) == pytest.approx([table.log_oddsratio, 0])
    assert list(found.z) == pytest.approx([z, 0])
    assert list(found.q) == pytest.approx(multipletests([2 * norm.sf(z), 1], method="fdr_bh")[1])


@pytest.mark.parametrize("cells", ["20 0 0 60", "20 3 9 48", "5 9 12 14", "0 4 0 36", "0 0 3 9"])
def test_a_rate_corrected_by_labels_is_that_of_prediction_powered_inference(cells: str) -> None:
    f, y = np.repeat([[1, 1, 0, 0], [1, 0, 1, 0]], [int(n) for n in cells.split()], axis=1)
    n = len(f)  # f: by the judge, y: by people
    judge = of([*f, *verdicts_of("010" * 100)])
    with np.errstate(invalid="ignore"):
        slope = np.nan_to_num(np.polyfit(f, y, 1)[0]) if f.any() else 0
    trust = 1 if (f == y).all() else np.clip(slope, 0, 1)
    gap = y - trust * f
    rate = trust * judge.refused.mean() + gap.mean()
    influence = trust * (judge.refused - judge.refused.mean()) / np.sqrt((n + 300) * (n + 299))
    smoothed = np.append(gap, [-trust, 1])  # one more row of each disagreement
    variance = (influence**2).sum() + np.var(smoothed) / (n + 2)
    influence[:n] += (gap - gap.mean()) / np.sqrt(n * (n - 1))
    size = max(n, rate * (1 - rate) / max(variance, (influence**2).sum()))
    interval, by_labels = wilson(rate * size, size), wilson(y.sum(), n)
    if interval.width > by_labels.width:
        interval = by_labels
    found = corrected(judge, np.array([*y, *[nan] * 300]))
    assert found == pytest.approx((rate, *interval))


def test_labels_that_agree_with_the_judge_leave_its_rate_and_never_say_less_than_alone() -> None:
    for refusals, labels in product((3, 13, 440), (20, 30, 400)):
        judged = np.arange(1319) % (1319 // refusals) == 1
        rate, low, high = corrected(of(judged), np.where(np.arange(1319) < labels, judged, nan))
        assert rate == pytest.approx(judged.mean())
        assert low < rate < high <= low + wilson(judged[:labels].sum(), labels).width + 1e-9
