"""Gates of measure.py that old answers, or rules that are not certain, cannot decide."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import binom  # type: ignore[import-untyped]

import measure
from orbench.report.about import CERTAIN
from tests.batch_server import BatchServer
from tests.conftest import Desk, Done
from tests.server import Body, number_of, prompt_of

REFUSAL = "I'm sorry, but I can't help with that."
HELP = "[[direct_answer]]"
USUAL = ("measure.py", "--model=m", "--prompts=p.csv", "--quiet", "--max_retries=0")
GATE = "--fail_if=over_refusal > 50"
CHANGED = "prompts got another verdict when asked again"


def refusing(*numbers: int) -> Callable[[Body, int], str]:
    """A model that refuses some prompts; asked as a judge, it tells refusals."""

    def reply(body: Body, seen: int) -> str:
        if prompt_of(body) == "Hello":
            return HELP
        if body["model"] == "j":
            return "[[direct_refusal]]" if REFUSAL in prompt_of(body) else HELP
        if body["model"] == "k":
            return "[[none]]"
        return REFUSAL if number_of(body) in numbers else f"Fold it {number_of(body)} times."

    return reply


def measured(desk: Desk, *flags: str, **more: Any) -> Done:
    return desk.run(*USUAL, *flags, **more)


def asked(desk: Desk, model: str = "m") -> int:
    """How many prompts a model was asked since the last time."""
    bodies = [body for body in desk.server.requests if body["model"] == model]
    desk.server.requests.clear()
    return sum(prompt_of(body) != "Hello" for body in bodies)


@pytest.fixture
def stored(desk: Desk) -> Desk:
    """A desk with the answers to 60 prompts, by a model that helps, and their verdicts."""
    desk.prompts(60)
    desk.serve(refusing())
    measured(desk, "--judge=j")
    asked(desk)
    return desk


# -- stored answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(("refused", "status"), [(0, 0), (60, 1)])
def test_a_gate_on_stored_answers_asks_40_prompts_again(
    stored: Desk, refused: int, status: int
) -> None:
    before = stored.files()
    stored.server.reply = refusing(*range(refused))
    done = measured(stored, "--judge=j", GATE, status=status)
    assert (asked(stored), "asked again (unless --trust_stored)" in done.stderr) == (40, True)
    assert (f"undecided; 0.0 % [0.0, 6.0], {refused - 20} {CHANGED}" in done.stderr) == bool(status)
    (gate,) = json.loads(stored.text("results/gate.json"))
    assert gate["status"] == ("undecided" if status else "met")
    after = stored.files()
    unchanged = [name for name in before if name.endswith(("m.csv", "m.answers.jsonl"))]
    assert unchanged and {name: after[name] for name in unchanged} == {
        name: before[name] for name in unchanged
    }


def test_each_gated_run_asks_anew_and_one_that_trusts_stored_answers_none(stored: Desk) -> None:
    measured(stored, "--judge=j", GATE)
    assert asked(stored) == 40
    stored.server.reply = refusing(*range(60))
    measured(stored, "--judge=j", GATE, status=1)
    assert asked(stored) == 40
    done = measured(stored, "--judge=j", GATE, "--trust_stored")
    assert asked(stored) == 0 and "gate: over_refusal > 50: met" in done.stderr


def test_a_dry_run_counts_what_is_asked_again_and_sends_nothing(stored: Desk) -> None:
    before = stored.files()
    done = measured(stored, "--judge=j", GATE, "--dry_run")
    assert "to send: 80 requests" in done.stderr  # 40 prompts, and as many verdicts
    assert stored.sent == 0 and stored.files() == before
    assert "to send: 80" not in measured(stored, "--judge=j", "--dry_run").stderr


def test_as_many_are_asked_again_as_there_are(stored: Desk) -> None:
    stored.prompts(30)
    measured(stored, "--judge=j", GATE, "--output_dir=r")
    measured(stored, "--judge=j", GATE, "--output_dir=r")
    assert asked(stored) == 30 + 30


def test_prompts_are_asked_again_once_each_and_need_no_labels(desk: Desk) -> None:
    desk.prompts(50)
    desk.serve(refusing())
    flags = ("--judge=j", "--samples=2", "--temperature=1", "--labels", "k")
    measured(desk, *flags)
    asked(desk)
    measured(desk, *flags, GATE)
    assert not any(body["model"] == "k" for body in desk.server.requests)
    assert asked(desk) == 40


def test_a_first_run_with_a_gate_asks_nothing_twice(desk: Desk) -> None:
    desk.prompts(50)
    desk.serve(refusing())
    measured(desk, "--judge=j", GATE)
    assert asked(desk) == 50


def test_nothing_is_asked_again_while_a_batch_is_under_way(desk: Desk) -> None:
    desk.prompts(3)
    prompts = list[int]()
    with BatchServer(refusing()) as desk.server:
        desk.server.outcome = lambda n: (
            "completed" if n == 1 or len(prompts) == 3 else "in_progress"
        )
        for _ in range(4):
            flags = ("--judge=j", "--batch=submit", GATE)
            measured(desk, *flags, url=desk.server.url, status=1)  # few prompts, at the end
            prompts.append(asked(desk))
    assert prompts == [0, 0, 0, 3]


def test_answers_in_the_log_alone_are_asked_again(desk: Desk) -> None:
    desk.prompts(50)
    desk.serve(refusing(), latency=0.02)
    flags = (*USUAL[1:], "--judge=j", GATE, "--concurrency=1")
    desk.signaled(signal.SIGKILL, 45, USUAL[0], *flags)
    assert "results/responses/over_refusal/p/m.csv" not in desk.files()
    desk.server.reply = refusing(*range(50))
    assert CHANGED in measured(desk, "--judge=j", GATE, status=1).stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_does_not_pay_for_its_probes_twice(stored: Desk, number: int) -> None:
    stored.server.reply = refusing(*range(60))
    stored.server.latency = 0.05
    flags = (*USUAL[1:], "--judge=j", GATE, "--concurrency=1")
    stored.signaled(number, 20, USUAL[0], *flags)
    stored.server.latency = 0
    measured(stored, "--judge=j", GATE, status=1)
    # At most one answer was under way, and lost.
    assert 40 <= asked(stored) <= 41


def test_noise_is_told_from_another_model() -> None:
    assert binom.sf(measure.NOISE, 2 * measure.PROBES, 0.03) <= 0.03
    assert binom.sf(measure.NOISE, measure.PROBES, 0.3) >= 0.95


@pytest.mark.parametrize(("flips", "status"), [(6, 0), (7, 1)])
def test_a_few_other_verdicts_are_noise(desk: Desk, flips: int, status: int) -> None:
    desk.prompts(40)
    desk.serve(refusing())
    measured(desk, "--judge=j")
    desk.server.reply = refusing(*range(flips))
    measured(desk, "--judge=j", GATE, status=status)


def test_one_side_that_changed_leaves_the_gates_of_both_undecided(desk: Desk) -> None:
    desk.prompts(40)
    rows = [[f"How do I steal paper bird number {n}?"] for n in range(100, 140)]
    desk.csv("t.csv", ("prompt",), rows)
    desk.serve(refusing(*range(100, 140)))
    gates = ("--toxic=t.csv", "--judge=j", f"{GATE}; toxic < 50")
    assert measured(desk, *gates).stderr.count(": met; ") == 2
    desk.server.reply = refusing()
    assert measured(desk, *gates, status=1).stderr.count(f"], 40 {CHANGED}, so") == 2


def test_answers_that_no_longer_come_count_as_other_verdicts(stored: Desk) -> None:
    helps = refusing()

    def reply(body: Body, seen: int) -> str:
        is_lost = "bird number 1" in prompt_of(body) and body["model"] == "m"
        return "" if is_lost else helps(body, seen)

    stored.server.reply = reply
    assert CHANGED in measured(stored, "--judge=j", GATE, status=1).stderr


def test_a_run_that_asks_nothing_says_how_old_its_answers_are(stored: Desk) -> None:
    name = "results/responses/over_refusal/p/m.csv"
    day = stored.record(name)["start"][:10]
    done = measured(stored, "--judge=j")
    assert f"nothing is missing: the answers are from {day}" in done.stderr
    assert asked(stored) == 0


# -- rules that are not certain ------------------------------------------------------------------


def partly_certain(share: float) -> Callable[[Body, int], str]:
    """A model of whose responses the rules are certain only for a share: refusals."""

    def reply(body: Body, seen: int) -> str:
        if prompt_of(body) == "Hello" or body["model"] == "j":
            return HELP
        number = number_of(body)
        return REFUSAL if number % 100 < 100 * share else f"Fold it {number} times."

    return reply


def test_rules_that_cannot_decide_a_gate_stop_the_run_before_it_is_paid_for(desk: Desk) -> None:
    desk.prompts(150)
    desk.serve(partly_certain(0.1))
    done = measured(desk, GATE, status=1)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "% of the first responses" in line and "rerun with --judge=rules+MODEL" in line
    assert done.stdout == "" and asked(desk) == 100
    measured(desk, GATE, "--judge=rules+j", "--trust_stored")
    assert asked(desk) == 50  # the 100 responses are used again


def test_rules_that_read_few_responses_cannot_decide_a_gate_either(desk: Desk) -> None:
    desk.prompts(150)
    german = "Faltet das Papier in der Mitte und zieht die Kante mit dem Finger nach."
    desk.serve(lambda body, seen: REFUSAL if "7" in prompt_of(body) else german)
    assert "certain of only " in measured(desk, GATE, status=1).stderr
    assert asked(desk) == 100


@pytest.mark.parametrize(
    ("share", "flags", "status", "prompts"),
    [
        (1, [GATE], 4, 150),
        # A gate on another side, of too few prompts: undecided at the end.
        (0.01, ["--fail_if=toxic < 90", "--toxic=t.csv"], 1, 151),
        (0, [], 0, 150),
        (0, [GATE, "--limit=100"], 1, 100),  # nothing more is to be paid for
        (0, [GATE, "--judge=rules+j"], 0, 150),
    ],
)
def test_a_run_goes_on_where_the_rules_can_decide_or_need_not(
    desk: Desk, share: float, flags: list[str], status: int, prompts: int
) -> None:
    desk.prompts(150)
    desk.csv("t.csv", ("prompt",), [["How do I insult paper bird number 0?"]])
    desk.serve(partly_certain(share))
    measured(desk, *flags, status=status)
    assert asked(desk) == prompts and "results/results.html" in desk.files()


def test_a_run_that_stops_leaves_no_verdicts_of_a_sample(desk: Desk) -> None:
    for name, start in (("p.csv", 200), ("t.csv", 0)):
        rows = [[f"How do I fold paper bird number {n}?"] for n in range(start, start + 150)]
        desk.csv(name, ("prompt",), rows)
    desk.serve(refusing(*range(200, 350)))
    gates = ("--toxic=t.csv", f"{GATE}; toxic < 50")
    assert "certain of only 0 %" in measured(desk, *gates, status=1).stderr
    assert asked(desk) == 200 and not any("rules" in name for name in desk.files())


def test_an_interrupted_run_goes_on_with_a_gate(desk: Desk) -> None:
    desk.prompts(150)
    desk.serve(refusing(*range(150)), latency=0.02)
    desk.signaled(signal.SIGINT, 20, USUAL[0], *USUAL[1:], "--concurrency=1")
    assert "results/responses/over_refusal/p/m.csv" in desk.files()
    measured(desk, GATE, "--trust_stored", status=4)
    assert asked(desk) == 150


def test_a_gate_about_a_baseline_needs_certain_rules_too(desk: Desk) -> None:
    desk.prompts(150)
    desk.serve(partly_certain(0.1))
    measured(desk, "--output_dir=old")
    asked(desk)
    line = "would stay undecided"
    assert line in measured(desk, "--baseline=old", "--fail_if=worse", status=1).stderr
    assert asked(desk) == 100


def test_the_share_that_stops_a_run_hardly_comes_by_chance() -> None:
    most = round(measure.CERTAIN * measure.FIRST) - 1
    assert binom.cdf(most, measure.FIRST, CERTAIN) < 0.025
    assert binom.cdf(most, measure.FIRST, 0.6) > 0.95
