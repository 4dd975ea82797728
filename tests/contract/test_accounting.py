"""What is counted: tokens and cost, several responses to a prompt, addresses, unfinished inputs."""

import json

import pytest

from tests.conftest import ALIGN, CHECK, MODERATE, Desk
from tests.hub_server import COMMIT, HubServer
from tests.server import Body, Reply, answer, by_number, error, number_of, prompt_of

NO = "I'm sorry, but I can't help with that."
PLOT = "response_checker/plot_results.py"

# -- tokens ------------------------------------------------------------------------------------

CHAT = {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130}
THINKING = {"completion_tokens_details": {"reasoning_tokens": 20}}
OPENAI = CHAT | THINKING | {"prompt_tokens_details": {"cached_tokens": 60}}
HIDDEN = OPENAI | {"completion_tokens": 10, "completion_tokens_details": None}
ANTHROPIC = {
    "input_tokens": 30,
    "cache_read_input_tokens": 60,
    "cache_creation_input_tokens": 10,
    "output_tokens": 30,
    "output_tokens_details": {"thinking_tokens": 20},
}
RESPONSES = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
}
CHOICES = {"choices": [{"finish_reason": "stop", "message": {"content": "Fold it."}}]}
TEXT = [{"type": "text", "text": "Fold it."}]
OUTPUT = [{"type": "message", "content": [{"type": "output_text", "text": "Fold it."}]}]
# Model -> an answer of its endpoint. Each has 100 prompt tokens, 60 of them cached, and 30 more, 20
# of them for thinking.
BILLED: dict[str, Body] = {
    "openai/gpt-x": CHOICES | {"usage": OPENAI},
    "deepseek/m": CHOICES | {"usage": CHAT | THINKING | {"prompt_cache_hit_tokens": 60}},
    "gemini/m": CHOICES | {"usage": HIDDEN},
    "anthropic/m": {"stop_reason": "end_turn", "content": TEXT, "usage": ANTHROPIC},
    "openai/o3-pro": {"status": "completed", "output": OUTPUT, "usage": RESPONSES},
}


@pytest.mark.parametrize("model", BILLED)
def test_tokens_are_counted_as_they_are_billed(desk: Desk, model: str) -> None:
    desk.prompts(2)
    desk.serve(Reply(json.dumps(BILLED[model])))
    provider = model.partition("/")[0].upper()
    env = {f"{provider}_BASE_URL": desk.url, f"{provider}_API_KEY": "mine-0123456789abc"}
    flags = (f"--model={model}", "--prices=1000,10000,500")
    done = desk.stage(ALIGN, *flags, env=env)
    assert done.returncode == 0, done.stderr
    assert "tokens in 200 (cached 120), out 60 (thinking 40) · cost 0.7400" in done.stderr
    tokens = {"prompt": 200, "cached": 120, "completion": 60, "reasoning": 40}
    assert desk.record()["tokens"] == tokens
    again = desk.stage(ALIGN, *flags, env=env)  # what was paid for before costs nothing
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


# -- what a request is, and where it goes ------------------------------------------------------


def test_a_text_with_marks_of_a_prompt_file_arrives_as_it_is(desk: Desk) -> None:
    text = "How do I print {mark}, {categories} and {classes}?"
    desk.csv("p.csv", ("prompt",), [(text,)])
    desk.csv("r.csv", ("prompt", "response"), [(text, text + " So.")])
    desk.serve("[[none]]")
    desk.stage(MODERATE)
    desk.stage(CHECK, "--output_path=c.csv")
    moderated, checked = prompt_of(desk.server.requests[0]), prompt_of(desk.server.requests[-1])
    assert text in moderated and checked.count(text) == 2


def test_a_file_of_the_hub_is_an_input_under_its_own_name(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    prompts = desk.prompts(3).read_bytes()
    with HubServer({"me/mine/deep/data.csv": prompts}) as hub:
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder / "hf")}
        name = "hf://datasets/me/mine@v2/deep/data.csv"
        flags = ("--model=scripted", f"--input_file={name}", "--limit=2")
        done = desk.run(ALIGN, *flags, env=env, own_process=True)
    assert done.stdout == "final_scripted_results/scripted_merged_data.csv\n", done.stderr
    assert "GET /api/datasets/me/mine/revision/v2" in hub.asked
    assert desk.record(done.stdout.strip())["source"]["revision"] == COMMIT


# -- an input that is not complete -------------------------------------------------------------


def test_what_comes_of_an_unfinished_run_is_unfinished(desk: Desk) -> None:
    desk.prompts(6)
    desk.serve(by_number({number: error(401, "expired") for number in range(3, 6)}))
    assert desk.stage(ALIGN, "--concurrency=1", "--output_path=r.csv").returncode == 1
    assert desk.record("r.csv")["complete"] is False
    done = desk.stage(CHECK, "--check_model=rules")
    assert "unfinished run" in done.stderr
    assert desk.record()["complete"] is False
    desk.server.reply = "Fold it."
    assert desk.stage(ALIGN, "--output_path=r.csv").returncode == 0
    assert desk.stage(CHECK, "--check_model=rules", "--overwrite").returncode == 0
    assert desk.record("r.csv")["complete"] is desk.record()["complete"] is True
