"""Fits the veto of the refusal rules, and says how good rules and veto are on unseen sources.

    python tests/benchmark/fit_refusal.py            writes orbench/refusal_weights.tsv
    python tests/benchmark/fit_refusal.py --measure  leaves each source out and measures on it
    python tests/benchmark/fit_refusal.py --held     measures on the held quarter, row by row unseen

The veto is a logistic regression on the n-grams of `orbench.refusal.word_grams`, fitted on the
labelled responses in ../shared/data of which the hash split holds none back, and, weakly, on the
two OR-Bench files as the rules see them. The points of the rules are kept by hand; what fitting
them would give, pulled towards a value that tells only on which side a rule is, is measured beside.
Needs numpy and scipy. The same data give the same file.
"""

import argparse
import csv
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from orbench import refusal, refusal_phrases  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
OR_BENCH = {
    "llama": "or_bench_hard_1k_llama3_8b_instruct.csv",
    "r1": "or_bench_hard_1k_deepseek_r1_distill_llama_8b.csv",
}
SOURCES = ("xstest", "chatgpt_refusals", "speechmap")

WEAK = 0.3  # weight of a response that only the rules have labelled
SAYS_NO = 0.3  # weight of a response with a plain no, of which the veto is never asked
RIDGE = 10.0  # pull of the veto's weights towards zero
POINTS_RIDGE = 3.0  # the same for points, towards their prior
LEAST_RESPONSES = 12  # that an n-gram must occur in, of
LEAST_SOURCES = 2  # sources: no third party's sentence can be read out of the file
# A word is of its topic, and left out, if it is so many times likelier in a response when the
# prompt has it: so neither slurs nor explicit words get into the file.
TOPICAL = 5.0
TOPICAL_PROMPTS = 3  # prompts in which a word must occur to be judged so
# Left out whatever the figures say: beginnings of words.
UNPLEASANT = ("kill", "murder", "rape", "sex", "porn", "nazi", "drug", "bomb", "suicid", "slur")

Vector = NDArray[np.float64]
Matrix = Any  # scipy.sparse.csr_matrix; scipy comes without types


class Response(NamedTuple):
    """One response with its label; None where only the rules have labelled it."""

    source: str
    prompt: str
    text: str
    label: str | None
    held: bool
    reading: refusal.Reading | None

    @property
    def counts(self) -> bool:
        """False for the evasions of speechmap, which are neither refusal nor answer."""
        return self.source != "speechmap" or self.label != "indirect_refusal"

    def is_refused(self) -> bool:
        """The label; without one, what the rules say with the veto asleep."""
        if self.label is not None:
            return self.label != "compliance"
        return self.reading is not None and says_refused(self.reading, {"": 1.0})


def says_refused(
    reading: refusal.Reading, weights: Mapping[str, float], partial: bool = True
) -> bool:
    """The verdict as a bool; partial: what a partial refusal counts as."""
    verdict = refusal.judged(reading, weights)
    return refusal.counts_as_refusal(verdict) or (partial and verdict.kind == "partial")


def rows_of(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def is_held(source: str, prompt: str) -> bool:
    return hashlib.sha256(f"{source}\0{prompt}".encode()).digest()[-1] % 4 == 3


def responses() -> list[Response]:
    """All there are, the held ones too: they are told apart by `held`."""
    found: list[tuple[str, str, str, str | None, bool]] = []
    for row in rows_of("human_labelled_responses.csv"):
        held = is_held(row["source"], row["prompt"])
        found.append((row["source"], row["prompt"], row["response"], row["human_label"], held))
    for source, name in OR_BENCH.items():
        found += [(source, row["prompt"], row["response"], None, False) for row in rows_of(name)]
    return [Response(*one, refusal.read(refusal.answer_of(one[2])[0])) for one in found]


# ---------------------------------------------------------------------------------- fitting


def minimum(features: Matrix, truth: Vector, weight: Vector, prior: Vector, ridge: float) -> Vector:
    """Coefficients, the intercept last, of a logistic regression pulled towards a prior."""
    sign = 2 * truth - 1
    across = features.T.tocsr()

    def loss(guess: Vector) -> tuple[float, Vector]:
        margin = sign * (features @ guess[:-1] + guess[-1])
        slope = -weight * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        off = guess[:-1] - prior[:-1]
        value = float((weight * np.logaddexp(0, -margin)).sum() + ridge / 2 * off @ off)
        return value, np.append(across @ slope + ridge * off, slope.sum())

    options = {"maxiter": 5000, "maxfun": 10000, "gtol": 1e-8, "ftol": 1e-15}
    result = optimize.minimize(loss, prior, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x)


def matrix(counts: Sequence[Mapping[str, float]], names: Sequence[str]) -> Matrix:
    """One row a response, one column a name."""
    column = {name: number for number, name in enumerate(names)}
    cells = [
        (number, column[name], value)
        for number, row in enumerate(counts)
        for name, value in row.items()
        if name in column
    ]
    row, at, value = zip(*cells, strict=True)
    return sparse.csr_matrix((value, (row, at)), shape=(len(counts), len(names)))


def topical_words(fitted: Sequence[Response], grams: Sequence[set[str]]) -> set[str]:
    """Words that responses take over from their prompts."""
    asked = [refusal.word_grams(one.prompt) for one in fitted]
    in_prompts = Counter(word for words in asked for word in words)
    in_responses = Counter(word for words in grams for word in words)
    echoed = Counter(
        word for words, said in zip(asked, grams, strict=True) for word in words & said
    )
    topical = set()
    for word, prompts in in_prompts.items():
        elsewhere = in_responses[word] - echoed[word] + 1
        likelier = echoed[word] / prompts * (len(fitted) - prompts + 1) / elsewhere
        if prompts >= TOPICAL_PROMPTS and likelier > TOPICAL:
            topical.add(word)
    return topical


def vocabulary(fitted: Sequence[Response], grams: Sequence[set[str]]) -> list[str]:
    """The n-grams that are common enough, in enough sources, and of no topic."""
    number = Counter(gram for said in grams for gram in said)
    pairs = {(gram, one.source) for one, said in zip(fitted, grams, strict=True) for gram in said}
    sources = Counter(gram for gram, _ in pairs)
    topical = topical_words(fitted, grams)

    def is_kept(gram: str) -> bool:
        words = gram.removeprefix("$").split()
        return topical.isdisjoint(words) and not any(word.startswith(UNPLEASANT) for word in words)

    return sorted(
        gram
        for gram, times in number.items()
        if times >= LEAST_RESPONSES and sources[gram] >= LEAST_SOURCES and is_kept(gram)
    )


def weight_of(one: Response) -> float:
    """How much a response counts in the fit of the veto."""
    no = one.reading and any(e.direct and e.points > 0 for e in one.reading.found)
    return (WEAK if one.label is None else 1.0) * (SAYS_NO if no else 1.0)


def fitted_weights(fitted: Sequence[Response]) -> dict[str, float]:
    """The veto's weights, rounded as the file has them; "" is the intercept."""
    readings = [one.reading for one in fitted]
    grams = [refusal.word_grams(one.answer, one.shapes) if one else set() for one in readings]
    names = vocabulary(fitted, grams)
    truth = np.array([float(one.is_refused()) for one in fitted])
    weight = np.array([weight_of(one) for one in fitted])
    features = matrix([dict.fromkeys(sorted(said), 1.0) for said in grams], names)
    found = minimum(features, truth, weight, np.zeros(len(names) + 1), RIDGE)
    rounded = {"": round(float(found[-1]), 2)}
    rounded.update({name: round(float(x), 2) for name, x in zip(names, found[:-1], strict=True)})
    return {name: x for name, x in rounded.items() if x or not name}


def to_file(weights: Mapping[str, float]) -> str:
    """The file: n-gram, tab, weight in hundredths."""
    lines = ["# Weights of the veto, in hundredths; made by tests/benchmark/fit_refusal.py\n"]
    lines += [f"{gram}\t{round(100 * weight)}\n" for gram, weight in sorted(weights.items())]
    return "".join(lines)


# ---------------------------------------------------------------------------------- points


def feature_of(one: refusal.Evidence) -> str:
    return one.rule + (" in the opening" if one.opening else " later")


def features_of(reading: refusal.Reading) -> dict[str, float]:
    """What was found, by name: 1, or how many words were counted."""
    found = {feature_of(one): 1.0 for one in reading.found}
    for one in reading.found:
        if one.rule in refusal_phrases.WORDS:
            found[feature_of(one)] = one.points / refusal_phrases.WORDS[one.rule][0]
    return {**found, **{f"shape {name}": 1.0 for name in reading.shapes}}


def prior_of(one: refusal.Evidence) -> float:
    """What a rule says by its side alone."""
    if not one.points:
        return 0.0
    if one.rule in refusal_phrases.WORDS:
        return 0.25
    size = 1.5 if one.points < 0 else 2.5 if one.direct else 1.0
    return float(np.sign(one.points)) * size * (1.0 if one.opening else 0.5)


def with_fitted_points(
    fitted: Sequence[Response], all_of_them: Sequence[Response]
) -> list[Response]:
    """Responses whose evidence has the points that are fitted on the labelled ones of the first."""
    labelled = [one for one in fitted if one.label is not None and one.reading]
    priors = {feature_of(e): prior_of(e) for r in all_of_them if r.reading for e in r.reading.found}
    priors.update({f"shape {name}": 0.0 for name in refusal_phrases.SHAPE_POINTS})
    names = sorted(priors)
    features = matrix([features_of(one.reading) for one in labelled if one.reading], names)
    truth = np.array([float(one.is_refused()) for one in labelled])
    prior = np.array([*[priors[name] for name in names], refusal_phrases.START_POINTS])
    found = minimum(features, truth, np.ones(len(truth)), prior, POINTS_RIDGE)
    points = dict(zip(names, found, strict=False))

    def again(reading: refusal.Reading) -> refusal.Reading:
        counted = features_of(reading)
        evidence = [
            e._replace(points=points[n] * counted[n])
            for e in reading.found
            for n in [feature_of(e)]
        ]
        start = float(found[-1]) + sum([points[f"shape {name}"] for name in reading.shapes])
        return reading._replace(found=evidence, start=start)

    return [one._replace(reading=again(one.reading)) if one.reading else one for one in all_of_them]


# ---------------------------------------------------------------------------------- measuring


def verdict_on(one: Response, weights: Mapping[str, float]) -> refusal.Verdict:
    if one.reading is None:
        return refusal.classify(one.text)
    return refusal.judged(one.reading, weights)


def figures(name: str, measured: Iterable[Response], weights: Mapping[str, float]) -> str:
    """A line: accuracy under both conventions, indirect verdicts, certain ones."""
    rows = [one for one in measured if one.counts]
    verdicts = [(one.is_refused(), verdict_on(one, weights)) for one in rows]
    right = [
        sum(
            truth == (refusal.counts_as_refusal(v) or (strict and v.kind == "partial"))
            for truth, v in verdicts
        )
        for strict in (True, False)
    ]
    indirect = [truth for truth, v in verdicts if v.kind == "indirect_refusal"]
    vetoed = [truth for truth, v in verdicts if v.rule.startswith("vetoed:")]
    partial = sum(v.kind == "partial" for _, v in verdicts)
    return (
        f"{name:<34} n {len(rows):>4}  accuracy {right[0] / len(rows):.3f} (partial as refusal) "
        f"{right[1] / len(rows):.3f} (as answer)  "
        f"indirect right {sum(indirect)} of {len(indirect)}  "
        f"vetoed {len(vetoed)}, rightly {len(vetoed) - sum(vetoed)}  partial {partial}"
    )


def left_out(tuned: Sequence[Response]) -> None:
    """Each source measured with what was fitted without it."""
    for source in SOURCES:
        others = [one for one in tuned if one.source != source and one.counts]
        measured = [one for one in tuned if one.source == source]
        weights = fitted_weights(others)
        print(figures(f"{source}, left out", measured, weights), flush=True)
        again = with_fitted_points(others, measured)
        print(figures(f"{source}, points fitted, too", again, weights), flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--measure", action="store_true", help="leave each source out")
    parser.add_argument("--held", action="store_true", help="measure on the held quarter")
    parser.add_argument("--output", type=Path, default=ROOT / "orbench" / "refusal_weights.tsv")
    args = parser.parse_args(argv)
    every = responses()
    tuned = [one for one in every if not one.held]
    if args.measure:
        left_out(tuned)
    weights = fitted_weights([one for one in tuned if one.counts])
    for held in (False, True) if args.held else (False,):
        for source in SOURCES:
            rows = [one for one in every if one.source == source and one.held == held]
            print(figures(f"{source}, {'held' if held else 'tuned on'}", rows, weights))
    for source in OR_BENCH:
        readings = [one.reading for one in tuned if one.source == source and one.reading]
        rates = [
            sum(says_refused(one, weights, strict) for one in readings) for strict in (True, False)
        ]
        print(f"{source}: refused {rates[0] / len(readings):.3f}, {rates[1] / len(readings):.3f}")
    if not args.measure and not args.held:
        args.output.write_text(to_file(weights), encoding="utf-8", newline="\n")
        print(f"{len(weights)} weights written to {args.output}")


if __name__ == "__main__":
    main()
