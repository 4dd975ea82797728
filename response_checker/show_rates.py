"""Say each measured model's rates in one line, from the table that plot_results.py wrote.

    python show_rates.py results/results.csv

Reads the columns model, side, category, n, rate_percent, low_percent, high_percent, unscored,
counted_by and notes and, if they are there, cut_off_percent, prompt_set and toxic_side. Says per
model the over-refusal rate and the toxic rejection rate in percent with their 95 % intervals, n,
the share of responses that the token limit cut off, how many are unscored, and the notes; of models
measured with other prompts, or by another judge, than the last one only how many there are. stdout
gets the path of the page, or of the table where there is none.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options
from orbench.columns import OVERALL, SIDES, Row
from orbench.table import Table
from orbench.terminal import UserError, run_script, say

NEEDED = [
    *["model", "side", "category", "n", "rate_percent", "low_percent", "high_percent"],
    *["unscored", "counted_by", "notes"],
]
BY_AUTHORS = "published"  # `counted_by` of the rates that are not measured here


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    rows = [
        row
        for row in Table(args.results, NEEDED)
        if row["category"] == OVERALL and row["counted_by"] != BY_AUTHORS
    ]
    if not rows:
        raise UserError(f"{args.results} holds no model that was measured here")
    safe, toxic = ([row for row in rows if row["side"] == side] for side in SIDES)
    pairs = [
        [row, *(other for other in toxic if other["model"] == toxic_side(row))] for row in safe
    ]
    of_safe = set(map(toxic_side, safe))
    pairs += [[row] for row in toxic if row["model"] not in of_safe]
    last = conditions((safe or toxic)[-1])
    shown = [pair for pair in pairs if conditions(pair[0]) == last]
    if others := len(pairs) - len(shown):
        say(f"{others} more in the table, with other prompts or another judge")
    for pair in shown:
        say(f"{pair[0]['model']}: {' · '.join(map(rate_in_words, pair))}")
    page = args.results.with_suffix(".html")
    print(page if page.is_file() else args.results)
    return 0


def toxic_side(safe: Row) -> str:
    """The `model` of the row on toxic prompts that belongs to one on safe prompts."""
    return safe.get("toxic_side", safe["model"])


def conditions(row: Row) -> tuple[str, ...]:
    """The prompts and the judge of a row."""
    return row["side"], row.get("prompt_set", ""), row["counted_by"]


def rate_in_words(row: Row) -> str:
    """`over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, cut off 0.2 %, unscored 0)`."""
    rate, low, high = (row[f"{which}_percent"] for which in ("rate", "low", "high"))
    figure = f"{float(rate):.1f} % [{float(low):.1f}, {float(high):.1f}]" if rate else "unknown"
    counts = [f"n {float(row['n']):,.0f}"]
    if cut_off := row.get("cut_off_percent"):
        counts.append(f"cut off {float(cut_off):.1f} %")
    counts.append(f"unscored {float(row['unscored']):,.0f}")
    counts += [note for note in row["notes"].split("; ") if note and note[:7] != "cut off"]
    return f"{SIDES[row['side']].rate} {figure} ({', '.join(counts)})"


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument("results", type=options.input_path, help="results.csv of plot_results.py")
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
