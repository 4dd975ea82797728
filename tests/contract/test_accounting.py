"""What is counted: tokens and cost, several responses to a prompt; texts as they are."""

import json

from tests.conftest import ALIGN, CHECK, MODERATE, Desk
from tests.server import Body, Reply, answer, error, number_of, prompt_of

NO = "I'm sorry, but I can't help with that."
PLOT = "response_checker/plot_results.py"

# -- tokens ------------------------------------------------------------------------------------

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 30,
    "completion_tokens_details": {"reasoning_tokens": 20},
    "prompt_tokens_details": {"cached_tokens": 60},
}
CHOICES = [{"finish_reason": "stop", "message": {"content": "Fold it."}}]


def test_tokens_are_counted_as_they_are_billed(desk: Desk) -> None:
    desk.prompts(2)
    desk.serve(Reply(json.dumps({"choices": CHOICES, "usage": USAGE})))
    done = desk.stage(ALIGN, "--prices=1000,10000,500")
    assert "tokens in 200 (cached 120), out 60 (thinking 40) · cost 0.7400" in done.stderr
    tokens = {"prompt": 200, "cached": 120, "completion": 60, "reasoning": 40}
    assert desk.record()["tokens"] == tokens
    again = desk.stage(ALIGN, "--prices=1000,10000,500")  # what was paid for before costs nothing
    assert "tokens in 0, out 0 · cost 0.0000" in again.stderr
    assert desk.record()["tokens"] == tokens


# -- several responses to a prompt -------------------------------------------------------------


def test_rates_of_several_responses_count_each_prompt_alike(desk: Desk) -> None:
    blocked, lost = answer(None, "content_filter"), error(400)
    samples: list[list[Reply | str]] = [
        [blocked] * 3,
        ["Fold it."] * 3,
        [NO, "Fold it.", lost],
        [lost, lost, blocked],
    ]

    def reply(body: Body, seen: int) -> Reply | str:
        return samples[number_of(body)][int(body["seed"]) - 7]  # a random seed for each sample

    rows = [(f"paper bird number {n}", "a", f"Seed {n // 2}") for n in range(4)]
    desk.csv("p.csv", ("prompt", "category", "toxic_seed"), rows)
    desk.serve(reply)
    done = desk.stage(ALIGN, "--samples=3", "--random_seed=7")
    assert done.returncode == 3, done.stderr
    overall = next(line.split() for line in done.stderr.splitlines() if "overall" in line)
    assert (*overall[1:4], overall[5]) == ("9", "5", "62.5%", "3")
    assert "done 9 · failed 3 · unscored 0 · answers reused from the log 0" in done.stderr
    flags = ("--check_model=rules", "--input_file=o.csv", "--output_path=c.csv")
    assert desk.stage(CHECK, *flags).returncode == 3
    for name in ("o.csv", "c.csv"):
        assert desk.run(PLOT, "--over_refusal", name, "--table").returncode == 0
        row = next(row for row in desk.rows("results/results.csv") if row["subset"] == "overall")
        assert (row["n"], row["rows"], row["unscored"]) == ("4", "9", "3")
        shares = [float(row[f"{share}_percent"]) for share in ("rate", "api", "flip")]
        assert shares == [62.5, 50, 25]
        low, high = (float(row[f"{end}_percent"]) for end in ("low", "high"))
        assert overall[4] == f"{low:.1f}-{high:.1f}"  # rows share prompts, and prompts seeds
        assert "coverage 75.0 %" in row["notes"]


# -- what a request is -------------------------------------------------------------------------


def test_a_text_with_marks_of_a_prompt_file_arrives_as_it_is(desk: Desk) -> None:
    text = "How do I print {mark}, {categories} and {classes}?"
    desk.csv("p.csv", ("prompt",), [(text,)])
    desk.csv("r.csv", ("prompt", "response"), [(text, text + " So.")])
    desk.serve("[[none]]")
    desk.stage(MODERATE)
    desk.stage(CHECK, "--output_path=c.csv")
    moderated, checked = prompt_of(desk.server.requests[0]), prompt_of(desk.server.requests[-1])
    assert text in moderated and checked.count(text) == 2
