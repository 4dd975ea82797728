"""What an endpoint sends, as tables: answers, errors, lines of result files.

Each table stands in a TOML file beside this one: case -> what is sent, and what it is read as.
"""

import json
import re
import time
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orbench.asking.files import answer_in, read_result
from orbench.asking.log import AnswerLog
from orbench.base.messages import UserError
from orbench.models import providers
from orbench.models.adaptation import RENAMED, rejected_parameter
from orbench.models.client import answer_to_error, read_answer
from orbench.models.errors import Fatal, RateLimited, ServerError, TransientError, reply_of
from orbench.models.providers import Model, resolve
from orbench.models.requests import PROTOCOLS, Answer

KEY = "paper-bird-42"


def table(name: str) -> dict[str, Any]:
    """A file of tables."""
    path = Path(__file__).with_name(name)
    return tomllib.loads(path.read_text(encoding="utf-8"))


def rows(name: str, *tables: str) -> list[Any]:
    """The cases of some tables of a file; of all if none is named."""
    found = []
    for group, cases in table(name).items():
        for case, values in cases.items():
            if group in tables or not tables:
                found.append(pytest.param(group, *values, id=f"{group}: {case}"))
    return found


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)


def model(name: str = "a") -> Model:
    return resolve(name, base_url="http://x.test/v1", key_variable="MY_KEY")


# What stands around the bodies of a table.
AROUND = {
    "message": '{"choices": [{"finish_reason": "stop", "message": %s}]}',
    "choice": '{"choices": [%s]}',
    "usage": '{"choices": [{"message": {"content": "Fine."}}], "usage": %s}',
}
# What their answers have in common.
COMMON = {"message": {"finish_reason": "stop"}, "usage": {"text": "Fine."}}


@pytest.mark.parametrize(("of", "body", "wanted"), rows("answers.toml"))
def test_an_answer_is_read_as_what_it_is(of: str, body: str, wanted: Any) -> None:
    data = json.loads(AROUND.get(of, "%s") % body)
    protocol = of if of in PROTOCOLS else providers.CHAT
    asked = model("gemini/a" if of == "gemini" else "a")._replace(protocol=protocol)
    if isinstance(wanted, str):
        with pytest.raises(TransientError) as fault:
            read_answer(data, asked)
        assert str(fault.value) == wanted
    else:
        wanted = {"text": ""} | COMMON.get(of, {}) | wanted
        assert read_answer(data, asked) == Answer(**wanted)


@pytest.mark.parametrize(("of", "status", "body", "kind", "told"), rows("errors.toml"))
def test_an_error_means_what_its_status_and_its_message_say(
    of: str, status: int, body: str, kind: str, told: str
) -> None:
    reply = reply_of(status, json.loads(body, strict=False), model())
    if kind == "refused":
        assert answer_to_error(reply, model()) == Answer("", "content_filter", api_category=told)
        return
    with pytest.raises(Exception) as fault:
        answer_to_error(reply, model())
    assert (type(fault.value).__name__, str(fault.value)) == (kind, told)


FATAL = table("fatal_errors.toml")
SENT = [(kind, *reply) for kind in FATAL if kind != "told" for reply in FATAL[kind]]


@pytest.mark.parametrize(("kind", "status", "body"), SENT)
def test_an_error_that_cannot_pass_is_fatal_and_told_in_words(
    kind: str, status: int, body: str
) -> None:
    told = FATAL["told"].get(kind)
    with pytest.raises(Exception) as fault:
        answer_to_error(reply_of(status, json.loads(body), model()), model())
    assert type(fault.value).__name__ == ("Fatal" if told else kind)
    assert (told or "") in str(fault.value)


def test_an_alias_that_is_gone_can_be_pointed_elsewhere() -> None:
    with pytest.raises(Fatal, match="ORBENCH_MODEL_GEMINI_1_5=provider/model-id"):
        answer_to_error(reply_of(404, "gone", resolve("gemini-1.5")), resolve("gemini-1.5"))


@pytest.mark.parametrize(("depth", "told"), [(40, "400: at the end"), (41, "400: (nested too")])
def test_an_error_is_read_to_a_depth_of_40(depth: int, told: str) -> None:
    body: Any = "at the end"
    for _ in range(depth):
        body = {"message": body}
    with pytest.raises(Exception, match=re.escape(told)):
        answer_to_error(reply_of(400, body, model()), model())


@pytest.mark.parametrize(("of", "headers", "wait"), rows("waits.toml"))
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_is_as_long_as_the_endpoint_says(
    status: int, of: str, headers: str, wait: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    lines = dict(line.split(": ", 1) for line in headers.split("; ") if line)
    body = json.loads(lines.pop("body", '"slow"'))
    with pytest.raises(TransientError) as fault:
        answer_to_error(reply_of(status, body, model(), lines), model())
    assert fault.value.wait == wait
    limited = status == 429 or wait
    assert isinstance(fault.value, RateLimited if limited else ServerError)


# -- parameters that a model rejects -------------------------------------------------------------

REJECTED = table("rejected.toml")


@pytest.mark.parametrize("message", [*REJECTED["values"], *REJECTED["names"]])
def test_an_error_names_the_parameter_that_a_model_does_not_take(message: str) -> None:
    name = REJECTED["names"].get(message, "")
    reply = reply_of(400, {"error": message}, model())
    assert rejected_parameter(reply, REJECTED["sent"]) == name
    assert rejected_parameter(reply._replace(status=422), REJECTED["sent"]) == name
    assert rejected_parameter(reply._replace(status=404), REJECTED["sent"]) == ""
    if name not in RENAMED:
        others = [one for one in REJECTED["sent"] if one != name]
        assert rejected_parameter(reply, others) != name or not name


def test_an_error_may_name_the_parameter_beside_its_message() -> None:
    reply = reply_of(400, {"error": {"message": "odd", "param": "seed"}}, model())
    assert rejected_parameter(reply, ["seed"]) == "seed"
    wanted = "No endpoints can handle the requested parameters"
    none_takes_it = reply_of(404, {"error": wanted}, model())
    assert rejected_parameter(none_takes_it, ["response_format"]) == "response_format"
    assert rejected_parameter(none_takes_it, ["seed"]) == ""


# -- lines of result files -----------------------------------------------------------------------


@pytest.mark.parametrize(("of", "line", "wanted"), rows("result_lines.toml", "status", "anthropic"))
def test_a_result_line_holds_a_status_and_a_body(of: str, line: str, wanted: list[Any]) -> None:
    found = read_result(b'{"custom_id": "AB", %s}' % line.encode())
    assert list(found or ()) == ([b"\xab", *wanted] if wanted else [])


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"{}", b'{"custom_id": "zz"}', b'{"custom_id": 7}']
)
def test_a_line_without_a_key_is_no_result(line: bytes) -> None:
    assert read_result(line) is None


def test_a_result_that_is_none_is_told_with_its_reason() -> None:
    expired = read_result(b'{"custom_id": "ab", "error": {"message": "expired paper-bird-42"}}')
    assert expired
    with pytest.raises(TransientError, match=r"^no answer: expired \[key\]$"):
        answer_in(expired, model())


@pytest.mark.parametrize(("of", "line", "text"), rows("result_lines.toml", "log"))
def test_a_line_of_the_log_is_an_answer_or_none(
    of: str, line: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "o.answers.jsonl"
    path.write_text(
        f'{{"key": "AB", {line}}}\n{{"key": "zz", "text": "No hex."}}\n[]\n\n'
        '{"key": "AB", "text": "Later."}\0'  # counts if the first line holds no answer
    )
    with AnswerLog(path, write=False) as log:
        answer = log.answer(b"\xab")
    assert answer and answer.text == (text or "Later.")


def test_a_log_that_cannot_be_read_keeps_its_answers(tmp_path: Path) -> None:
    path = tmp_path / "o.answers.jsonl"
    with AnswerLog(path, write=True) as log:
        log.append(b"k", Answer("Fold it."))
    kept = path.read_bytes()
    fault = OSError(5, "Input/output error")
    with (
        mock.patch.object(AnswerLog, "_note_offsets", side_effect=fault),
        pytest.raises(UserError, match="its answers are kept"),
    ):
        AnswerLog(path, write=True)
    assert path.read_bytes() == kept
