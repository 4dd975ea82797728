"""Rates and comparisons of rows that are not independent, on made data with known truth."""

import csv
from math import isnan, nan

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr, t  # type: ignore[import-untyped]
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    confint_proportions_2indep,
)

from orbench.clustered import (
    FEW_CLUSTERS,
    Difference,
    Estimate,
    Floats,
    Prompts,
    against,
    by_prompt,
    compare,
    estimate,
    flips,
    macro_average,
    newcombe,
    paired,
    sign_flips,
    spearman,
    unpaired,
    youden,
)
from orbench.rates import bounds, wilson
from tests.benchmark.coverage import latent, numbers, sampled
from tests.conftest import SHARED_DATA


def of(refused: object, rewrites: int = 1) -> Prompts:
    """One row a prompt, so many prompts a seed."""
    values = np.asarray(refused, dtype=float)
    return by_prompt(numbers(len(values)), values, numbers(len(values)) // rewrites)


def made(number: int, rate: float, seeds: int, rewrites: int = 5) -> Floats:
    """Verdicts whose seeds differ."""
    random = np.random.default_rng(number)
    each = np.repeat(latent(random, rate, 0.3, seeds), rewrites)
    return (random.random(len(each)) < each).astype(float)


# ---------------------------------------------------------------------------------- one rate


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_without_seeds_and_samples_the_interval_is_wilsons(counts: tuple[int, int]) -> None:
    hits, n = counts
    found = estimate(by_prompt(numbers(n), np.arange(n) < hits))
    assert (found.low, found.high) == pytest.approx(wilson(hits, n))
    assert (found.rate, found.prompts, found.rows) == (hits / n, n, n)
    assert found.design_effect == pytest.approx(1)


def test_the_effective_size_comes_from_statsmodels_cluster_robust_variance() -> None:
    refused, seeds = made(1, 0.3, 40), np.repeat(np.arange(40), 5)
    fit = sm.OLS(refused, np.ones(200)).fit(cov_type="cluster", cov_kwds={"groups": seeds})
    found, p = estimate(of(refused, 5)), refused.mean()
    quantiles = t.ppf(0.975, 199) / t.ppf(0.975, 39)
    expected = p * (1 - p) * 200 / 199 / fit.bse[0] ** 2 * quantiles**2
    assert found.effective == pytest.approx(expected) and expected < 190
    assert (found.low, found.high) == pytest.approx(wilson(p * expected, expected))
    assert (found.prompts, found.clusters) == (200, 40)


def test_five_copies_of_each_prompt_are_one_fifth_of_the_rows() -> None:
    found = estimate(of(np.repeat(np.arange(400) % 3 == 0, 5), 5))
    assert found.design_effect == pytest.approx(5, rel=0.02)


@pytest.mark.parametrize("refused", [0, 1])
def test_at_0_and_100_percent_a_stated_correlation_gives_the_size(refused: int) -> None:
    found = estimate(of(np.full(100, refused), 5))
    size = 100 / (1 + 4 * 0.5)
    assert found.effective == pytest.approx(size)
    assert (found.low, found.high) == wilson(refused * size, size)


def test_few_seeds_with_a_refusal_do_not_tell_their_variance() -> None:
    few, enough = (np.zeros(500), np.zeros(500))
    few[: 5 * (FEW_CLUSTERS - 1) : 5] = 1
    enough[: 5 * FEW_CLUSTERS : 5] = 1
    assert estimate(of(few, 5)).design_effect == pytest.approx(3)
    assert estimate(of(enough, 5)).design_effect < 1.1


def test_seeds_never_make_an_interval_narrower_than_independent_rows() -> None:
    alternating = np.arange(200) % 2  # each seed as the other: less variance than independent rows
    assert estimate(of(alternating, 4)).effective == 200
    alternating[0] = 1  # now there is a little variance between them
    assert estimate(of(alternating, 4)).effective == 200


def test_one_seed_says_as_little_as_two_rows() -> None:
    found = estimate(of(np.arange(1000) % 2, 1000))
    assert found.effective == pytest.approx(2, abs=0.01)
    assert found.low < 0.1 and found.high > 0.9


def test_samples_narrow_the_interval_as_far_as_they_differ() -> None:
    random = np.random.default_rng(5)
    same = sampled(random, (np.arange(200) < 60).astype(float), 5)
    differing = sampled(random, np.full(200, 0.3), 5)
    assert estimate(same).effective == pytest.approx(200, rel=0.02)
    assert estimate(differing).effective == pytest.approx(1000, rel=0.25)


def test_n_is_counted_in_prompts() -> None:
    found = estimate(sampled(np.random.default_rng(1), np.full(10, 0.5), 5))
    assert (found.rows, found.prompts, found.few) == (50, 10, True)
    assert not estimate(of(np.arange(30) % 2)).few and estimate(of(np.arange(29) % 2)).few


def test_a_rate_is_the_mean_over_prompts_of_their_scored_rows() -> None:
    prompt = np.array([7, 7, 3, 7, 3, 9], dtype=np.uint64)
    found = by_prompt(prompt, np.array([1, 0, 1, nan, 1, nan]))
    assert found.prompt.tolist() == [3, 7, 9]
    assert (found.scored.tolist(), found.missing.tolist()) == ([2, 2, 0], [0, 1, 1])
    assert estimate(found)[0] == (1 + 0.5) / 2
    assert estimate(found)[3:6] == (4, 2, 2)


def test_of_nothing_every_rate_is_possible() -> None:
    found = estimate(of([nan, nan]))
    assert isnan(found.rate) and (found.low, found.high, found.rows) == (0, 1, 0)
    assert isnan(found.design_effect)


# ---------------------------------------------------------------------------------- comparison


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 30), st.integers(0, 30))
def test_without_seeds_and_samples_a_pair_is_mcnemars_and_newcombes(
    a_only: int, b_only: int, both: int, neither: int
) -> None:
    cells = (both, a_only, b_only, neither)
    if not sum(cells):
        return
    a = of(np.repeat([1, 1, 0, 0], cells))
    found = compare(a, of(np.repeat([1, 0, 1, 0], cells)))
    table = [[both, a_only], [b_only, neither]]
    assert found.p == pytest.approx(mcnemar(table, exact=True).pvalue if a_only + b_only else 1)
    assert (found.low, found.high) == newcombe(*cells)
    assert (found.a_only, found.b_only, found.prompts) == (a_only, b_only, sum(cells))


@pytest.mark.parametrize("number", range(5))
def test_with_seeds_a_pair_is_statsmodels_cluster_robust_t_test(number: int) -> None:
    a, b = made(number, 0.4, 30), made(number + 100, 0.3, 30)
    fit = sm.OLS(a - b, np.ones(150)).fit(
        cov_type="cluster", cov_kwds={"groups": np.repeat(np.arange(30), 5)}, use_t=True
    )
    found = compare(of(a, 5), of(b, 5))
    assert found.method == "cluster-robust t"
    assert [found.p, found.se] == pytest.approx([fit.pvalues[0], fit.bse[0]])
    assert [found.low, found.high] == pytest.approx(fit.conf_int()[0].tolist())


verdicts = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=40, max_size=40)


@given(verdicts, verdicts, st.sampled_from([1, 2, 5, 20]))
def test_test_and_interval_never_contradict_each_other(
    x: list[float], y: list[float], rewrites: int
) -> None:
    prompt = np.repeat(numbers(40), 2)
    a, b = (
        by_prompt(
            prompt,
            np.ravel([(share > 0, share == 1) for share in shares]),
            prompt // np.uint64(rewrites),
        )
        for shares in (x, y)
    )
    for found in (compare(a, b), compare(b, a), unpaired(a, b)):
        if found.method != "McNemar, Newcombe":
            assert (found.p < 0.05) == (found.low > 0 or found.high < 0), found
            assert -1 <= found.low <= found.difference + 1e-12 and found.high <= 1


def test_the_direction_of_a_difference_is_that_of_its_sign() -> None:
    a, b = of(made(1, 0.2, 60), 5), of(made(2, 0.6, 60), 5)
    found, back = compare(a, b), compare(b, a)
    assert found.low < found.difference < found.high < 0 and found.p < 0.001
    assert (back.low, back.high, back.p) == pytest.approx((-found.high, -found.low, found.p))
    assert (back.a_only, back.b_only) == (found.b_only, found.a_only)


def test_where_few_seeds_differ_all_flips_of_their_signs_are_the_test() -> None:
    assert sign_flips(np.ones(5)) == 2 / 32
    assert sign_flips(np.array([3.0, -3.0])) == 1
    assert sign_flips(np.array([3.0, 2.0, 1.0, -1.0])) == 6 / 16
    a = np.zeros(200)
    a[:20:4] = 1  # five seeds, one refusal in each
    found = paired(of(a, 4), of(np.zeros(200), 4))
    assert found.method == "sign flips" and found.p == 2 / 32
    assert found.low == 0 < found.high


def test_where_few_seeds_differ_the_t_test_has_to_agree() -> None:
    a = np.repeat([1, 0] * 6, [10, 0, *[1, 9] * 5])  # sums of the seeds: 10, 1, 1, 1, 1, 1
    found = paired(of(a, 10), of(np.zeros(60), 10))
    assert sign_flips(np.array([10.0, 1, 1, 1, 1, 1])) == 2 / 64
    assert found.method == "sign flips" and found.low < 0
    assert found.p == pytest.approx(2 * t.sf(2.5 / 1.5, 5))


def test_newcombes_interval_gives_his_published_examples() -> None:
    assert newcombe(36, 12, 2, 0) == pytest.approx((0.0569, 0.3404), abs=5e-5)
    assert newcombe(14, 5, 0, 22) == pytest.approx((0.0115, 0.2265), abs=5e-5)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_all_prompts_differ_by_the_same_the_interval_still_has_a_width(share: float) -> None:
    found = paired(of(np.full(100, share), 5), of(np.zeros(100), 5))
    assert found.low < found.difference == share <= found.high
    assert (found.p < 1e-6) is bool(share) and found.high - found.low > 0.1


def test_different_prompts_are_compared_by_newcombes_interval_for_independent_rates() -> None:
    a, b = of(np.arange(80) < 30), of(np.arange(120) < 24)
    found = compare(a, b._replace(prompt=b.prompt + np.uint64(1000)))
    assert found.method == "Newcombe, effective n" and found.prompts == 80
    low, high = confint_proportions_2indep(30, 80, 24, 120, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx((low, high))
    at_p = confint_proportions_2indep(
        30, 80, 24, 120, method="newcomb", compare="diff", alpha=found.p
    )
    assert at_p[0] == pytest.approx(0, abs=1e-9)


def test_only_prompts_with_a_verdict_from_both_are_paired() -> None:
    a, b = of([1, 0, nan, 1]), of([0, nan, 1, 1])
    assert compare(a, b)[6:10] == (2, 2, 1, 0)
    assert isnan(unpaired(of([nan]), a).p)


# ---------------------------------------------------------------------------------- missing rows


def two_models_alike(lost: float) -> tuple[Prompts, Prompts]:
    """40 % each, on 1,000 prompts; the second loses a share of its refusals."""
    random = np.random.default_rng(14)
    a, b = ((random.random(1000) < 0.4).astype(float) for _ in "ab")
    b[(random.random(1000) < lost) & (b == 1)] = nan
    return of(a), of(b)


def test_rows_that_are_missing_for_a_reason_make_no_finding() -> None:
    a, b = two_models_alike(0.6)
    assert compare(a, b).p < 1e-6  # what was claimed
    extreme = against(a, b)
    assert extreme.p > 0.05 and extreme.prompts == 1000
    assert against(b, a).p == pytest.approx(extreme.p)


def test_a_difference_that_is_larger_than_what_is_missing_stands() -> None:
    a, b = two_models_alike(0.0)
    low = of(np.arange(1000) < 200)
    low = low._replace(scored=low.scored.copy(), missing=low.missing.copy())
    low.scored[-20:], low.missing[-20:] = 0, 1
    found = against(low, a)
    assert found.p < 1e-6 and found.rate_a == 0.22 and found.difference < 0
    assert against(a, b)._replace(p=0) == compare(a, b)._replace(p=0)  # nothing is missing


def test_a_direction_that_turns_is_no_finding() -> None:
    many = of(np.r_[np.ones(10), np.zeros(10), np.full(80, nan)])
    other = of(np.r_[np.ones(60), np.zeros(40)])
    assert compare(many, other).difference == -0.5
    found = against(many, other)
    assert found.difference == pytest.approx(0.9 - 0.6) and found.p == 1.0


def test_bounds_are_the_rates_with_all_missing_rows_answered_and_refused() -> None:
    assert bounds(3, 8, 2) == (0.3, 0.5)
    assert bounds(3, 8, 0) == (3 / 8, 3 / 8)
    assert bounds(0, 0, 5) == (0, 1) == bounds(0, 0, 0)
    one = of([1, 1, 1, 0, 0, 0, 0, 0, nan, nan])
    filled = [estimate(one.filled(refused=refused)).rate for refused in (False, True)]
    assert filled == pytest.approx(bounds(3, 8, 2))


# ---------------------------------------------------------------------------------- scores


def test_youdens_j_is_toxic_rejection_minus_over_refusal() -> None:
    found = youden(of(np.arange(200) < 180), of(np.arange(400) < 100))
    assert found.difference == pytest.approx(0.9 - 0.25)
    expected = confint_proportions_2indep(180, 200, 100, 400, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx(expected)


def test_a_macro_average_weighs_categories_alike_and_has_their_uncertainty() -> None:
    large, small = estimate(of(np.arange(1000) < 500)), estimate(of(np.arange(10) < 1))
    mean, low, high = macro_average([large, small, estimate(of([nan]))])
    assert mean == pytest.approx((0.5 + 0.1) / 2)
    assert high - mean > (small.high - 0.1) / 2 > mean - low > (0.1 - small.low) / 2
    assert macro_average([small]) == pytest.approx(small[:3])
    mean, low, high = macro_average([large] * 4)
    assert high - low == pytest.approx((large.high - large.low) / 2)
    assert all(map(isnan, macro_average([])))


def test_flips_are_prompts_whose_samples_differ() -> None:
    prompt = np.array([1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6], dtype=np.uint64)
    refused = np.array([1, 1, 1, 0, 0, 0, 0, 1, 1, 1, nan])
    found = flips(by_prompt(prompt, refused))
    assert (found.rate, found.prompts) == (2 / 4, 4)  # of 5 and 6 only one sample is scored
    assert (found.low, found.high) == wilson(2, 4)


def test_spearmans_interval_resamples_families() -> None:
    x, y = [1.0, 2, 3, 4, 5, 6, 7, 8], [2.0, 1, 4, 3, 5, 5, 8, 7]
    family = list("aabbccdd")
    found = spearman(x, y, family)
    assert found.rho == pytest.approx(spearmanr(x, y).statistic)
    assert (found.models, found.families) == (8, 4)
    alone = spearman(x, y, list("abcdefgh"))
    assert found.low < found.rho <= found.high and alone.rho == found.rho
    repeated = spearman(x * 3, y * 3, family * 3)  # the same families, each model three times
    assert (repeated.low, repeated.high) == pytest.approx((found.low, found.high))
    narrower = spearman(x * 3, y * 3, [f"{name}{i}" for i in range(3) for name in family])
    assert narrower.low > found.low
    assert isnan(spearman(x[:3], y[:3], family[:3]).rho)
    assert isnan(spearman(x, y, list("aaaabbbc")).low)


def test_the_published_correlation_is_less_sure_than_32_models_make_it() -> None:
    path = SHARED_DATA / "published_overall_rates.csv"
    if not path.exists():
        pytest.skip("the published rates are not here")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    x, y = (
        [float(r[name]) for r in rows] for name in ("over_refusal_rate", "toxic_rejection_rate")
    )
    found = spearman(x, y, [row["family"] for row in rows])
    assert [round(value, 2) for value in found[:3]] == [0.89, 0.61, 0.97]
    assert found[3:] == (32, 8)


def test_nothing_is_hidden_in_an_estimate_or_a_difference() -> None:
    assert Estimate(0.5, 0.4, 0.6, 200, 100, 50, 80.0).design_effect == 2.5
    assert Difference(0.2, 0.5, -0.4, -0.2, 0.01, 0.1, 9, 9, 1, 4, "").difference == -0.3
