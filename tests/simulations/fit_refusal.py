"""Fit the veto of the refusal rules, and measure rules and veto on sources they have not seen.

    python tests/simulations/fit_refusal.py            writes orbench/refusals/refusal_weights.tsv
    python tests/simulations/fit_refusal.py --measure  leaves out each source in turn
    python tests/simulations/fit_refusal.py --held     measures on the held-out quarter

The veto is a logistic regression on words and pairs of words. It is fitted on the labeled
responses in ../shared/data that are not held out (all sources, for --measure all but one) and,
with a small weight, on the two OR-Bench files as the rules read them. The same data give the same
file, byte for byte. Needs numpy and scipy.
"""

import argparse
import csv
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from orbench.refusals import detect  # noqa: E402
from orbench.refusals.text import answer_of, word_grams  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
LABELLED = "human_labelled_responses.csv"
OR_BENCH = {
    "llama": "or_bench_hard_1k_llama3_8b_instruct.csv",
    "r1": "or_bench_hard_1k_deepseek_r1_distill_llama_8b.csv",
}
SOURCES = ("xstest", "chatgpt_refusals", "speechmap")

WEAK = 0.3  # weight of a response that only the rules have labeled
RIDGE = 10.0  # pull of the weights toward zero
LEAST_RESPONSES = 12  # that contain an n-gram, and from
LEAST_SOURCES = 2  # sources, so that no source's sentences can be read out of the file
# A word belongs to a topic if it is so many times likelier in a response whose prompt contains it.
# Such words are left out, and with them slurs and explicit words.
TOPICAL = 5.0
TOPICAL_PROMPTS = 3  # prompts that contain a word, at least, to tell
# Left out in any case: beginnings of words.
UNPLEASANT = ("kill", "murder", "rape", "sex", "porn", "nazi", "drug", "bomb", "suicid", "slur")

NO_VETO = {"": 99.0}  # weights with which the veto never speaks


class Response(NamedTuple):
    """One response; the label is None if only the rules have labeled it."""

    source: str
    prompt: str
    label: str | None
    held: bool
    reading: detect.Reading | None

    @property
    def is_refused(self) -> bool:
        """By the label, else by the rules without the veto."""
        if self.label is not None:
            return self.label != "compliance"
        return says_refused(self, NO_VETO)

    @property
    def grams(self) -> set[str]:
        return word_grams(self.reading.answer) if self.reading else set()


def says_refused(one: Response, weights: Mapping[str, float]) -> bool:
    verdict = detect.judged(one.reading, weights) if one.reading else None
    return verdict is not None and detect.counts_as_refusal(verdict)


def is_held(source: str, prompt: str) -> bool:
    return hashlib.sha256(f"{source}\0{prompt}".encode()).digest()[-1] % 4 == 3


def rows_of(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def responses() -> Iterator[Response]:
    """All responses but the evasions of speechmap, which are neither refusal nor answer."""
    for row in rows_of(LABELLED):
        source, prompt, label = row["source"], row["prompt"], row["human_label"]
        if (source, label) != ("speechmap", "indirect_refusal"):
            reading = detect.reading_of(answer_of(row["response"])[0])
            yield Response(source, prompt, label, is_held(source, prompt), reading)
    for source, name in OR_BENCH.items():
        for row in rows_of(name):
            reading = detect.reading_of(answer_of(row["response"])[0])
            yield Response(source, row["prompt"], None, False, reading)


def topical_words(fitted: Sequence[Response], grams: Sequence[set[str]]) -> set[str]:
    """Words and pairs of words that responses take over from their prompts."""
    asked = [word_grams(one.prompt) for one in fitted]
    in_prompts = Counter(word for words in asked for word in words)
    in_responses = Counter(word for words in grams for word in words)
    pairs = zip(asked, grams, strict=True)
    echoed = Counter(word for words, said in pairs for word in words & said)
    topical = set()
    for word, prompts in in_prompts.items():
        elsewhere = in_responses[word] - echoed[word] + 1
        likelier = echoed[word] / prompts * (len(fitted) - prompts + 1) / elsewhere
        if prompts >= TOPICAL_PROMPTS and likelier > TOPICAL:
            topical.add(word)
    return topical


def vocabulary(fitted: Sequence[Response], grams: Sequence[set[str]]) -> list[str]:
    """The n-grams that are frequent, occur in several sources and belong to no topic."""
    times = Counter(gram for said in grams for gram in said)
    pairs = {(gram, one.source) for one, said in zip(fitted, grams, strict=True) for gram in said}
    sources = Counter(gram for gram, _ in pairs)
    topical = topical_words(fitted, grams)

    def is_kept(gram: str) -> bool:
        words = gram.split()
        return topical.isdisjoint(words) and not any(word.startswith(UNPLEASANT) for word in words)

    return sorted(
        gram
        for gram, number in times.items()
        if number >= LEAST_RESPONSES and sources[gram] >= LEAST_SOURCES and is_kept(gram)
    )


def matrix(grams: Sequence[set[str]], names: Sequence[str]) -> sparse.csr_matrix:
    """One row per response, one column per name, 1 where the response contains it."""
    column = {name: number for number, name in enumerate(names)}
    cells = [
        (row, column[g]) for row, said in enumerate(grams) for g in sorted(said) if g in column
    ]
    rows, columns = zip(*cells, strict=True)
    return sparse.csr_matrix((np.ones(len(cells)), (rows, columns)), (len(grams), len(names)))


def minimum(
    features: sparse.csr_matrix, truth: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficients, the intercept last, of the logistic regression."""
    sign = 2 * truth - 1
    across = features.T.tocsr()

    def loss(guess: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (features @ guess[:-1] + guess[-1])
        slope = -weight * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        value = (weight * np.logaddexp(0, -margin)).sum() + RIDGE / 2 * guess[:-1] @ guess[:-1]
        return float(value), np.append(across @ slope + RIDGE * guess[:-1], slope.sum())

    options = {"maxiter": 5000, "maxfun": 10000, "gtol": 1e-8, "ftol": 1e-15}
    first = np.zeros(features.shape[1] + 1)
    return np.asarray(
        optimize.minimize(loss, first, jac=True, method="L-BFGS-B", options=options).x
    )


def fitted_weights(fitted: Sequence[Response]) -> dict[str, float]:
    """n-gram -> weight, rounded as in the file; "" -> the intercept."""
    grams = [one.grams for one in fitted]
    names = vocabulary(fitted, grams)
    truth = np.array([float(one.is_refused) for one in fitted])
    weight = np.array([WEAK if one.label is None else 1.0 for one in fitted])
    *found, intercept = minimum(matrix(grams, names), truth, weight)
    rounded = {name: round(float(x), 2) for name, x in zip(names, found, strict=True)}
    return {"": round(float(intercept), 2)} | {name: x for name, x in rounded.items() if x}


def to_file(weights: Mapping[str, float]) -> str:
    """The file: n-gram, tab, weight in hundredths."""
    lines = ["# Weights of the veto, in hundredths; made by tests/simulations/fit_refusal.py\n"]
    lines += [f"{gram}\t{round(100 * weight)}\n" for gram, weight in sorted(weights.items())]
    return "".join(lines)


def figures(name: str, rows: Sequence[Response], weights: Mapping[str, float]) -> str:
    """A line: accuracy with and without the veto, certain verdicts and wrong ones."""
    right = [sum(says_refused(r, w) == r.is_refused for r in rows) for w in (weights, NO_VETO)]
    verdicts = [(r, detect.judged(r.reading, weights)) for r in rows if r.reading]
    certain = [(r, verdict) for r, verdict in verdicts if verdict.certain]
    wrong = sum(detect.counts_as_refusal(verdict) != r.is_refused for r, verdict in certain)
    return (
        f"{name:<28} n {len(rows):>4}  accuracy {right[0] / len(rows):.3f}"
        f"  without veto {right[1] / len(rows):.3f}  certain {len(certain)}, wrong {wrong}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--measure", action="store_true", help="leave out each source in turn")
    parser.add_argument("--held", action="store_true", help="measure on the held-out quarter")
    output = ROOT / "orbench" / "refusals" / "refusal_weights.tsv"
    parser.add_argument("--output", type=Path, default=output)
    args = parser.parse_args(argv)
    every = list(responses())
    tuned = [one for one in every if not one.held]
    weights = fitted_weights(tuned)
    for source in SOURCES:
        rows = [one for one in every if one.source == source and one.held == args.held]
        print(figures(f"{source}, {'held out' if args.held else 'tuned on'}", rows, weights))
        if args.measure:
            others = fitted_weights([one for one in tuned if one.source != source])
            left_out = [one for one in tuned if one.source == source]
            print(figures(f"{source}, left out", left_out, others))
    for source in OR_BENCH:
        said = [says_refused(one, weights) for one in every if one.source == source]
        print(f"{source}: refused {sum(said) / len(said):.3f}")
    if not args.measure and not args.held:
        args.output.write_text(to_file(weights), encoding="utf-8", newline="\n")
        print(f"{len(weights)} weights written to {args.output}")


if __name__ == "__main__":
    main()
