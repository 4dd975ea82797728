"""The answer log: what was received is kept, whatever happens to the run or to the disk."""

import errno
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from orbench import answers
from orbench.answers import Answer, AnswerLog, DiskFull, LogError, Missing
from tests.conftest import DiskOrder

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
KEYS = st.binary(min_size=16, max_size=16)
ANSWERS = st.builds(
    Answer,
    text=ANY_TEXT | st.sampled_from(["", "\x00", "a\nb\r\n", "\ud83d", "{}", '"', "👍", "\u2028"]),
    finish_reason=ANY_TEXT,
    refusal=ANY_TEXT,
    model=ANY_TEXT,
    prompt_tokens=st.integers(0, 10**9),
    completion_tokens=st.integers(0, 10**9),
    dropped=st.lists(st.sampled_from(["temperature", "seed"])).map(tuple),
    cached_tokens=st.integers(0, 10**9),
    reasoning_tokens=st.integers(0, 10**9),
    provider=ANY_TEXT,
    api_category=ANY_TEXT,
)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def held(log: AnswerLog) -> dict[bytes, Answer | None]:
    """Every answer of a log."""
    return {name: answer_in(log, name) for name in list(log._offsets)}


def answer_in(log: AnswerLog, name: bytes) -> Answer | None:
    """The answer under a key, whatever its round."""
    found = log.get(name)
    return found[0] if found else None


def lines_of(path: Path) -> list[dict[str, object]]:
    """The log as JSON lines; fails where one is not whole."""
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def written(path: Path, texts: list[str]) -> bytes:
    """A log with these answers under the keys 0, 1, ...; gives its bytes."""
    log = AnswerLog(path, write=True)
    for number, text in enumerate(texts):
        log.append(key(number), Answer(text, "stop"))
    log.close()
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.answers.jsonl"


# -- kept --------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.dictionaries(KEYS, ANSWERS, max_size=5))
def test_any_answer_is_read_back_at_once_and_after_reopening(wanted: dict[bytes, Answer]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.answers.jsonl"
        log = AnswerLog(path, write=True)
        for name, answer in wanted.items():
            log.append(name, answer)
            assert answer_in(log, name) == answer
        log.close()
        again = AnswerLog(path, write=False)
        assert held(again) == wanted
        assert (len(again), again.garbled) == (len(wanted), 0)
        again.close()
        assert len(lines_of(path)) == len(wanted)


def test_a_log_that_is_not_there_is_empty_and_reading_does_not_make_it(path: Path) -> None:
    log = AnswerLog(path, write=False)
    assert (len(log), answer_in(log, key(0)), key(0) in log) == (0, None, False)
    log.close()
    assert not path.exists()


def test_the_log_is_readable_by_its_owner_only(path: Path) -> None:
    before = os.umask(0)
    try:
        written(path, ["a"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_holds_the_answer_and_nothing_of_the_request(path: Path) -> None:
    log = AnswerLog(path, write=True, round_=3)
    log.append(key(1), Answer("Hello", "stop", "", "m-1", 3, 2, ("temperature",)))
    log.close()
    (entry,) = lines_of(path)
    assert entry.pop("time")
    assert entry == {
        "key": key(1).hex(),
        "text": "Hello",
        "finish_reason": "stop",
        "model": "m-1",
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "dropped": ["temperature"],
        "round": 3,
    }


def test_of_two_answers_to_one_request_the_first_stays(path: Path) -> None:
    log = AnswerLog(path, write=True)
    log.append(key(1), Answer("first"))
    log.append(key(1), Answer("second"))
    log.close()
    line = path.read_bytes()
    assert line.count(b"\n") == 1
    path.write_bytes(line + line.replace(b"first", b"third"))  # as joined logs may have it
    again = AnswerLog(path, write=False)
    assert answer_in(again, key(1)) == Answer("first")
    assert (len(again), again.garbled) == (1, 0)
    again.close()


def test_logs_of_several_machines_are_joined_by_concatenation(tmp_path: Path) -> None:
    parts = []
    for machine in range(3):
        log = AnswerLog(tmp_path / f"{machine}.jsonl", write=True)
        log.append(key(machine), Answer(f"from {machine}"))
        log.close()
        parts.append((tmp_path / f"{machine}.jsonl").read_bytes())
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"".join(parts))
    log = AnswerLog(path, write=False)
    assert [answer_in(log, key(machine)) for machine in range(3)] == [
        Answer(f"from {machine}") for machine in range(3)
    ]
    log.close()


def test_answers_know_the_round_they_were_asked_in(path: Path) -> None:
    for round_ in (1, 2):
        log = AnswerLog(path, write=True, round_=round_)
        log.append(key(round_), Answer("text"))
        log.close()
    log = AnswerLog(path, write=False)
    assert [log.get(key(n)) for n in (1, 2)] == [(Answer("text"), 1), (Answer("text"), 2)]
    log.close()


def test_a_failure_is_noted_until_there_is_an_answer(path: Path) -> None:
    log = AnswerLog(path, write=True)
    log.append_failure(key(1), Missing("bad_request", "400: no"))
    log.append_failure(key(2), Missing("gave_up", "503: busy"))
    log.append(key(2), Answer("at last"))
    log.append_failure(key(3), Missing("bad_request", "400: first"))
    log.append_failure(key(3), Missing("gave_up", "500: then"))
    wanted = {1: Missing("bad_request", "400: no"), 3: Missing("gave_up", "500: then")}
    assert log.failed == {key(n): missing for n, missing in wanted.items()}
    assert key(1) not in log and len(log) == 1
    log.close()
    again = AnswerLog(path, write=False)
    assert (again.failed, again.garbled) == (log.failed, 0)
    assert answer_in(again, key(2)) == Answer("at last")
    again.close()


def test_a_log_of_an_older_version_is_refused_in_one_line(path: Path) -> None:
    line = b'{"key": "00000000000000000000000000000005", "text": "Hi!", "time": "2026-01-01"}\n'
    path.write_bytes(line)
    for write in (True, False):
        with pytest.raises(LogError, match="older version") as raised:
            AnswerLog(path, write=write)
        assert str(path) in str(raised.value) and "\n" not in str(raised.value)
    assert path.read_bytes() == line


def test_every_whole_answer_of_a_line_counts(path: Path) -> None:
    whole = written(path, ["one", "two", "three"]).splitlines()
    path.write_bytes(b'{"key": "0000000' + whole[0] + whole[1] + b"\n" + whole[2])
    log = AnswerLog(path, write=True)
    assert [answer_in(log, key(n)) for n in range(3)] == [
        Answer(text, "stop") for text in ("one", "two", "three")
    ]
    log.append(key(3), Answer("next"))
    log.close()
    again = AnswerLog(path, write=False)
    assert (len(again), again.garbled) == (4, 0)
    again.close()


@pytest.mark.parametrize("every", [0.0, 3600.0])
def test_answers_are_on_disk_after_a_second_whatever_the_run_does(
    every: float, path: Path, monkeypatch: pytest.MonkeyPatch, disk_order: DiskOrder
) -> None:
    assert answers.SYNC_EVERY_S == 1.0
    monkeypatch.setattr(answers, "SYNC_EVERY_S", every)
    folders = list[Path]()
    monkeypatch.setattr(answers, "sync_folder", folders.append)
    log = AnswerLog(path, write=True)
    assert folders == [path.parent]  # the log's own name
    for number in range(3):
        log.append(key(number), Answer("text"))
        assert disk_order.is_safe(path) is (every == 0)
    log.append_failure(key(9), Missing("gave_up", "500"))
    assert disk_order.is_safe(path) is (every == 0)
    log.sync()
    assert disk_order.is_safe(path)
    log.append(key(10), Answer("text"))
    log.close()
    assert disk_order.is_safe(path)


# -- torn and garbled --------------------------------------------------------------------------


def test_a_log_cut_anywhere_loses_at_most_its_torn_last_answer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "RESERVE", 16)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    texts = ["one", "", "three"]
    whole = written(path, texts)
    line_ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = sum(cut >= end for end in line_ends)  # the line end itself can be missing
        log = AnswerLog(path, write=True)
        assert (len(log), log.garbled) == (kept, 0)
        log.append(key(9), Answer("next"))
        found = [answer_in(log, key(number)) for number in range(kept)]
        assert found == [Answer(text, "stop") for text in texts[:kept]]
        log.close()
        assert [entry["text"] for entry in lines_of(path)] == [*texts[:kept], "next"]


GARBAGE = {
    "no JSON": b"what is this",
    "half a line": b'{"key": "00000000000000000000000000000005", "te',
    "NUL bytes, as after a power cut": bytes(200),
    "not UTF-8": b"\xff\xfe\x80",
    "a number": b"17",
    "a list": b"[]",
    "null": b"null",
    "a key of another length": b'{"key": "0505", "text": "x", "round": 1}',
    "a key that is no hex": b'{"key": "' + b"x" * 32 + b'", "text": "x", "round": 1}',
    "a key that is no text": b'{"key": 5, "text": "x", "round": 1}',
    "no text": b'{"key": "00000000000000000000000000000005", "round": 1}',
    "a text that is none": b'{"key": "00000000000000000000000000000005", "text": null, "round": 1}',
    "nested beyond reading": b"[" * 100_000,
    "a blank line": b"",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_a_garbled_line_is_skipped_and_counted(path: Path, garbage: bytes) -> None:
    first, second, third = written(path, ["one", "two", "three"]).splitlines(keepends=True)
    path.write_bytes(first + garbage + b"\n" + second + garbage + b"\n" + third)
    log = AnswerLog(path, write=True)
    assert log.garbled == 2
    assert [answer_in(log, key(n)) for n in range(3)] == [
        Answer(text, "stop") for text in ("one", "two", "three")
    ]
    log.append(key(9), Answer("next"))
    log.close()
    assert path.read_bytes().startswith(first + garbage + b"\n" + second)  # nothing is rewritten
    again = AnswerLog(path, write=False)
    assert (len(again), again.garbled, answer_in(again, key(9))) == (4, 2, Answer("next"))
    again.close()


@pytest.mark.parametrize("garbage", [b'{"key": "00', bytes(50), b"\xff"])
def test_a_reader_leaves_a_torn_line_alone(path: Path, garbage: bytes) -> None:
    whole = written(path, ["one"])
    path.write_bytes(whole + garbage)
    log = AnswerLog(path, write=False)
    assert answer_in(log, key(0)) == Answer("one", "stop")
    log.close()
    assert path.read_bytes() == whole + garbage


class LogMachine(RuleBasedStateMachine):
    """Any order of answers, restarts, kills in mid-line and garbage, against a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "a.answers.jsonl"
        self.wanted: dict[bytes, Answer] = {}
        self.log = AnswerLog(self.path, write=True)

    @rule(name=st.integers(0, 5).map(key), answer=ANSWERS)
    def append(self, name: bytes, answer: Answer) -> None:
        self.log.append(name, answer)
        self.wanted.setdefault(name, answer)

    @rule(torn=st.integers(0, 60))
    def kill_in_mid_line(self, torn: int) -> None:
        line = json.dumps({"key": key(99).hex(), "text": "never arrived whole"}).encode()
        self._reopen(line[:torn])

    @rule(line=st.sampled_from([b"{}\n", b"\x00\x00\n", b"torn{\n"]))
    def garble(self, line: bytes) -> None:
        self._reopen(line)
        assert self.log.garbled > 0

    def _reopen(self, more: bytes) -> None:
        self.log.close()
        with self.path.open("ab") as file:
            file.write(more)
        self.log = AnswerLog(self.path, write=True)

    @invariant()
    def holds_what_was_received(self) -> None:
        assert held(self.log) == self.wanted

    def teardown(self) -> None:
        self.log.close()
        self.folder.cleanup()


LogMachine.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=15)
TestAnyOrderOfEvents = LogMachine.TestCase


# -- two runs, and a full disk -----------------------------------------------------------------


def test_a_second_run_on_the_same_log_stops_with_one_line(path: Path) -> None:
    first = AnswerLog(path, write=True)
    first.append(key(0), Answer("kept"))
    with pytest.raises(LogError, match="another run is writing") as raised:
        AnswerLog(path, write=True)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    reader = AnswerLog(path, write=False)  # looking is allowed
    assert answer_in(reader, key(0)) == Answer("kept")
    reader.close()
    first.close()
    AnswerLog(path, write=True).close()


def test_a_log_that_cannot_be_opened_gets_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "a.jsonl"):
        with pytest.raises(LogError, match="cannot be used") as raised:
            AnswerLog(path, write=True)
        assert str(path) in str(raised.value)


class Disk:
    """os.write on a disk with so much room; what the log holds in reserve counts as used."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.log: AnswerLog | None = None
        self._write = os.write

    def write(self, fd: int, data: bytes) -> int:
        if self.log is not None and self.log._reserve is None:
            self.room += answers.RESERVE  # given back
            self.log = None
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self._write(fd, data[: self.room])  # a disk that fills up takes a part first
        self.room -= done
        return done


@pytest.mark.parametrize("room", [0, 1, 40, 120, 121, 350])
def test_on_a_full_disk_the_answer_is_stored_from_the_reserve_and_the_run_told_to_stop(
    path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    disk = Disk(room)
    monkeypatch.setattr(os, "write", disk.write)
    log = disk.log = AnswerLog(path, write=True)
    stored, told = 0, 0
    while not told:
        try:
            log.append(key(stored), Answer(f"answer {stored}", "stop"))
        except DiskFull as error:
            assert str(path) in str(error)
            told += 1
        stored += 1
    for _ in range(20):  # what was in flight when the run stopped
        log.append(key(stored), Answer(f"answer {stored}", "stop"))
        stored += 1
    log.close()
    monkeypatch.undo()
    assert [entry["text"] for entry in lines_of(path)] == [f"answer {n}" for n in range(stored)]
    again = AnswerLog(path, write=True)
    assert (len(again), again.garbled) == (stored, 0)
    again.close()


def test_where_not_even_the_reserve_helps_the_log_stays_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AnswerLog(path, write=True)
    log.append(key(0), Answer("kept"))
    monkeypatch.setattr(os, "write", Disk(30).write)
    for number in (1, 2):
        with pytest.raises(LogError, match="No space left") as raised:
            log.append(key(number), Answer("lost"))
        assert not isinstance(raised.value, DiskFull)
        assert key(number) not in log
    assert answer_in(log, key(0)) == Answer("kept")
    monkeypatch.undo()
    log.append(key(1), Answer("asked again"))
    log.close()
    assert [entry["text"] for entry in lines_of(path)] == ["kept", "asked again"]


def test_a_full_disk_shows_itself_before_the_first_request(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(dir: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(LogError, match="No space left"):
        AnswerLog(path, write=True)


@pytest.mark.parametrize(
    "member",
    [
        '"finish_reason": 5',
        '"refusal": {}',
        '"model": null',
        '"dropped": 5',
        '"dropped": [[1]]',
        '"prompt_tokens": "3"',
    ],
)
def test_a_line_with_a_member_of_another_type_is_passed_over(tmp_path: Path, member: str) -> None:
    path = tmp_path / "o.answers.jsonl"
    path.write_text(f'{{"key": "{"ab" * 16}", "text": "Hi!", {member}, "round": 1}}\n')
    log = AnswerLog(path, write=True)
    assert (log.garbled, len(log)) == (1, 0)
    log.close()
