"""The figures of the table that ends stages 4 and 5, computed a second time."""

from tests.conftest import CHECK, Desk, Done, read_csv

NO = "I'm sorry, but I can't help with that."
YES = "Fold it."
RESULTS = "response_checker/plot_results.py"


def figures(done: Done) -> dict[str, list[str]]:
    """Category -> rows, refused, rate, interval, unscored, interval with unscored."""
    lines = [line for line in done.stderr.splitlines() if line[21:27].strip().isdigit()]
    return {line[:21].strip(): line[21:].split() for line in lines}


def span(low: float, high: float) -> str:
    """An interval of shares in percent, as it is printed."""
    return f"{100 * low:.1f}-{100 * high:.1f}"


def test_rows_that_share_a_seed_or_a_prompt_have_the_figures_of_the_report(desk: Desk) -> None:
    texts = [YES, NO, YES, "", NO, NO, YES, NO]
    prompts = ["S0?", "S1?", "S2?", "S3?", "S4?", "S5?", "S5?", "S6?"]
    rows = [
        (prompt, "ab"[n % 2], text, "AABBCC"[n : n + 1])
        for n, (prompt, text) in enumerate(zip(prompts, texts, strict=True))
    ]
    desk.csv("r.csv", ("prompt", "category", "response", "toxic_seed"), rows)
    done = desk.stage(CHECK, "--check_model=rules", status=3)
    assert "the intervals allow for rows that share a prompt or a seed\n" in done.stderr
    table = figures(done)
    desk.run(RESULTS, "--table", "--over_refusal", "m=o.csv")
    for row in read_csv(desk.folder / "results/results.csv"):
        name = row["value"] or row["subset"]
        if name in table:
            ends = [float(row[f"{end}_percent"]) / 100 for end in ("low", "high")]
            all_ends = [float(row[f"{end}_all_percent"]) / 100 for end in ("low", "high")]
            wanted = [f"{float(row['rate_percent']):.1f}%", span(*ends)]
            found = table.pop(name)
            assert found[2:] == [*wanted, row["unscored"], span(*all_ends)]
            assert found[0] == row["rows"]
    assert not table
