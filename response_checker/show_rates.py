"""Say each measured model's rates in one line, from the table that plot_results.py wrote.

    python show_rates.py results/results.csv

Reads the columns model, side, category, n, rate_percent, low_percent, high_percent, unscored,
counted_by and notes and, if it is there, cut_off_percent. Says per model the over-refusal rate and
the toxic rejection rate in percent with their 95 % intervals, n, the share of responses that the
token limit cut off, how many are unscored, and the notes. stdout gets the path of the page, or of
the table where there is none.
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
    said: dict[str, list[str]] = {}
    for row in Table(args.results, NEEDED):
        if row["category"] == OVERALL and row["counted_by"] != BY_AUTHORS:
            said.setdefault(row["model"], []).append(rate_in_words(row))
    if not said:
        raise UserError(f"{args.results} holds no model that was measured here")
    for model, rates in said.items():
        say(f"{model}: {' · '.join(rates)}")
    page = args.results.with_suffix(".html")
    print(page if page.is_file() else args.results)
    return 0


def rate_in_words(row: Row) -> str:
    """`over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, cut off 0.2 %, unscored 0)`."""
    rate, low, high = (row[f"{which}_percent"] for which in ("rate", "low", "high"))
    figure = f"{float(rate):.1f} % [{float(low):.1f}, {float(high):.1f}]" if rate else "unknown"
    counts = [f"n {float(row['n']):,.0f}"]
    if cut_off := row.get("cut_off_percent"):
        counts.append(f"cut off {float(cut_off):.1f} %")
    counts.append(f"unscored {float(row['unscored']):,.0f}")
    counts += [row["notes"]] if row["notes"] else []
    return f"{SIDES[row['side']].rate} {figure} ({', '.join(counts)})"


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument("results", type=options.input_path, help="results.csv of plot_results.py")
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
