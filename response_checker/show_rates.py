"""Show each measured model's rates in a line, from the table that plot_results.py wrote.

    python show_rates.py results/results.csv

Shows the models that have the prompts and the judge of the newest result: their over-refusal and
toxic rejection rates with 95 % intervals, n, unscored rows and notes; of the others their number.
Prints the path of the page on stdout, or of the table if there is no page.
"""

import sys
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.base.messages import UserError, run_script, say, tell
from orbench.base.tables import read_csv
from orbench.base.words import OVERALL, SIDES
from orbench.stages.flags import Parser, input_path


def main(argv: Sequence[str]) -> int:
    parser = Parser(__doc__)
    parser.add_argument("results", type=input_path, help="results.csv of plot_results.py")
    path = parser.parse_args(argv).results
    rows = [
        row
        for row in read_csv(path, ["model", "judge", "prompt_set", "rate_percent"]).rows
        if row["category"] == OVERALL and row["judge"] != "published"  # measured here
    ]
    if not rows:
        raise UserError(f"{path} holds no model that was measured here")
    newest = [row for row in rows if row["side"] == rows[0]["side"]][-1]
    sets = {row["side"]: row["prompt_set"] for row in rows if row["judge"] == newest["judge"]}
    like = [row for row in rows if row["judge"] == newest["judge"]]
    shown = [row for row in like if row["prompt_set"] == sets[row["side"]]]
    if others := len(rows) - len(shown):
        say(f"{others} more in the table, with other prompts or another judge")
    for name in dict.fromkeys((row["model"], row["settings"]) for row in shown):
        said = [rate_in_words(row) for row in shown if (row["model"], row["settings"]) == name]
        say(f"{', '.join(filter(None, name))}: {' · '.join(said)}")
    page = path.with_suffix(".html")
    tell(page if page.is_file() else path)
    return 0


def rate_in_words(row: Mapping[str, str]) -> str:
    """`over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, unscored 0)`, with notes."""
    rate, low, high = (float(row[f"{name}_percent"] or "nan") for name in ("rate", "low", "high"))
    figure = "unknown" if isnan(rate) else f"{rate:.1f} % [{low:.1f}, {high:.1f}]"
    said = [f"{name} {int(row[name]):,}" for name in ("n", "unscored")]
    said += filter(None, row["notes"].split("; "))
    return f"{SIDES[row['side']].rate} {figure} ({', '.join(said)})"


if __name__ == "__main__":
    sys.exit(run_script(main))
