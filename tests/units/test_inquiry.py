"""What follows from an answer: the rule in orbench/asking/inquiry.py, which stands there only."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orbench.asking.inquiry import (
    UNREADABLE,
    Done,
    Inquiry,
    Phase,
    Reader,
    Run,
    follow_up,
    pending,
    replay,
    state,
)
from orbench.asking.log import AnswerLog
from orbench.models.providers import resolve
from orbench.models.requests import Answer, Missing, Request, user
from tests.conftest import CHECK, ROOT, Desk

MODEL = resolve("gpt-a", base_url="http://localhost:1/v1")
OTHER = resolve("gpt-b", base_url="http://localhost:1/v1")


class Judge(Reader):
    """Reads every reply but `?`; asks three times."""

    asks = 3

    def __init__(self) -> None:
        self.reads = 0

    def read(self, request: Request, answer: Answer) -> str | Missing:
        self.reads += 1
        return Missing("unscored", "what?") if answer.text == "?" else answer.text

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        return request.again([user(missing.why)])


def question(text: str, *, substitute: bool = False) -> Inquiry:
    request = Request(MODEL, [user(text)], {})
    return Inquiry(request, Request(OTHER, [user(text)], {}) if substitute else None)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AnswerLog]:
    with AnswerLog(tmp_path / "o.answers.jsonl", write=True) as log:
        yield log


def sent(inquiry: Inquiry, run: Run) -> Request:
    """The request that is to be sent; the test fails if there is none."""
    ends = state(inquiry, run)
    assert isinstance(ends, Request), ends
    return ends


def ended(inquiry: Inquiry, run: Run) -> object:
    """What the inquiry says at its end, or the kind of what is missing."""
    ends = state(inquiry, run)
    assert isinstance(ends, Done), ends
    return ends.reading.kind if isinstance(ends.reading, Missing) else ends.reading


def test_an_unreadable_reply_is_asked_for_again_and_then_another_judge_is_asked(
    log: AnswerLog,
) -> None:
    run = Run(Judge(), log)
    inquiry = question("a", substitute=True)
    lengths = []
    for _ in range(3):
        request = sent(inquiry, run)
        lengths.append(len(request.messages))
        log.append(request.key, Answer("?"))
    assert lengths == [1, 2, 3]
    assert sent(inquiry, run) == inquiry.substitute
    assert inquiry.substitute
    log.append(inquiry.substitute.key, Answer("no"))
    assert ended(inquiry, run) == "no"


def test_a_judge_that_was_not_asked_is_asked_though_the_substitute_has_answered(
    log: AnswerLog,
) -> None:
    """It may have answered for another judge of the panel; `--from_log` takes what is there."""
    inquiry = question("a", substitute=True)
    assert inquiry.substitute
    log.append(inquiry.substitute.key, Answer("yes"))
    assert sent(inquiry, Run(Judge(), log)) == inquiry.request
    assert ended(inquiry, Run(Judge(), log, phase=Phase.OVER)) == "not_asked"
    assert ended(inquiry, Run(Judge(), log, phase=Phase.FROM_LOG)) == "yes"


def test_a_request_that_failed_or_whose_model_is_gone_goes_to_the_substitute(
    log: AnswerLog,
) -> None:
    for substitute in (True, False):
        inquiry = question("a", substitute=substitute)
        failed = Run(Judge(), log, failed={inquiry.request.key: Missing("bad_request", "400")})
        gone = Run(Judge(), log, left_out={"gpt-a": "404"})
        if substitute:
            assert sent(inquiry, failed) == sent(inquiry, gone) == inquiry.substitute
        else:
            assert ended(inquiry, failed) == "bad_request"
            assert ended(inquiry, gone) == "gave_up"


def test_once_a_run_is_over_nothing_is_to_be_sent(log: AnswerLog) -> None:
    stopped = Run(Judge(), log, left_out={"gpt-a": "x"}, stopped="x")
    for run in (Run(Judge(), log, phase=Phase.OVER), stopped):
        run.inquiries = [question("a")]
        assert ended(run.inquiries[0], run) == "not_asked"
        assert pending(run) == []


def test_each_reply_is_read_once_in_a_run(log: AnswerLog) -> None:
    judge = Judge()
    inquiries = [question(text) for text in "abc"]
    run = Run(judge, log, inquiries)
    for inquiry in inquiries:
        log.append(inquiry.request.key, Answer("yes"))
    replay(run)
    assert pending(run) == []
    assert [ended(inquiry, run) for inquiry in inquiries] == ["yes"] * 3
    assert judge.reads == 3


def test_the_brake_follows_from_the_log_as_from_live_replies(log: AnswerLog) -> None:
    """After 12 unreadable first replies in a row, in the order of arrival, none is repeated."""
    inquiries = [question(str(n)) for n in range(UNREADABLE + 1)]
    live = Run(Judge(), log, inquiries)
    for request in reversed(pending(live)):
        log.append(request.key, Answer("yes" if request == inquiries[-1].request else "?"))
        follow_up(request.key, live)
    later = Run(Judge(), log, inquiries)
    replay(later)
    for run in (live, later):
        assert run.brakes("gpt-a")
        assert ended(inquiries[0], run) == "unscored"


def test_equal_requests_are_sent_once(log: AnswerLog) -> None:
    inquiries = [question("a"), question("a"), question("b")]
    assert len(pending(Run(Judge(), log, inquiries))) == 2


def test_no_other_module_knows_the_rule() -> None:
    """Only inquiry.py reads attempts and substitutes; stage 3 reads its flag of that name."""
    for path in (*ROOT.glob("*/*.py"), *ROOT.glob("orbench/*/*.py")):
        if path.parent.name != "tests" and path.name != "inquiry.py":
            text = path.read_text("utf-8").replace("args.substitute", "")
            assert not re.search(r"\.(attempt|substitute)\b(?!\()", text), path


def test_the_rules_classify_each_response_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from orbench.judging import responses

    texts = []

    def classify(text: str, **more: object) -> object:
        texts.append(text)
        return real(text, **more)

    real = vars(responses)["classify"]
    monkeypatch.setattr(responses, "classify", classify)
    desk.csv("r.csv", ("prompt", "response"), [(f"p{n}", f"Fold {n}.") for n in range(5)])
    assert desk.stage(CHECK, "--check_model=rules").returncode == 0
    assert sorted(texts) == [f"Fold {n}." for n in range(5)]
