"""Nothing is lost and nothing is paid for twice, whatever happens to a run."""

import errno
import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from orbench.asking.log import ROOM
from tests.batch_server import BatchServer
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    MODERATE,
    ROOT,
    USUAL,
    Desk,
    Done,
    error_line,
    wait_for,
)
from tests.contract.test_files import worked_off, write_lines
from tests.server import NOBODY, Body, Reply, answer, by_number, completion, error, number_of

LOG = "o.answers.jsonl"
LIVE = "--output_path=live.csv"


def own_words(body: Body, seen: int) -> str:
    return f"Fold bird {number_of(body)} in half."


def answered(desk: Desk) -> set[int]:
    """The numbers of the prompts that have an answer of `own_words` in a whole line of the log."""
    log = desk.folder / LOG
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return {int(n) for line in lines for n in re.findall(rb'"Fold bird (\d+) in half', line)}


# -- faults of the endpoint --------------------------------------------------------------------

PASSING = (
    *(answer("Fold it.")._replace(fault=fault) for fault in ("drop", "garbage", "hang", "cut")),
    *(error(status) for status in (408, 409, 500, 503)),
    error(429, headers=[("Retry-After-Ms", "50")]),
    *(Reply(""), Reply("", 204), Reply('{"choices": ['), Reply(completion())),
    Reply("<html>busy</html>", content_type="text/html"),
    Reply('{"error": {"message": "overloaded"}}'),
)


def test_what_can_pass_by_itself_is_retried(desk: Desk) -> None:
    desk.prompts(len(PASSING))
    desk.serve(lambda body, seen: "Fold it." if seen else PASSING[number_of(body)])
    said = desk.stage(ALIGN, "--timeout=2").stderr
    assert "3 disconnected" in said and "1 timed out" in said
    assert Counter(map(number_of, desk.server.requests)) == dict.fromkeys(range(len(PASSING)), 2)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (error(401, "bad key"), "OPENAI_API_KEY"),
        (error(404, "no such model"), "gpt-x"),
        (error(429, "exceeded", code="insufficient_quota"), "quota"),
        (error(402, "insufficient balance"), "quota"),
    ],
)
def test_what_cannot_pass_stops_the_run_and_keeps_what_has_arrived(
    desk: Desk, reply: Reply, says: str
) -> None:
    desk.prompts(60)
    desk.serve(lambda body, seen: "Fold it." if number_of(body) < 3 else reply)
    done = desk.stage(ALIGN, "--concurrency=4", status=1)
    assert says in done.stderr.splitlines()[-1]
    sent = desk.sent
    assert sent <= 3 + 4 and len(desk.rows()) == 3
    kinds = Counter(row["error_type"] for row in desk.failed())
    assert kinds.total() == 57 and kinds["not_asked"] >= 53
    desk.server.reply = "Fold it."
    desk.stage(ALIGN)
    assert desk.tally() == f"60 rows, {sent + 57} sent"


def test_words_of_a_firewall_about_one_prompt_do_not_stop_the_run(desk: Desk) -> None:
    desk.prompts(6)
    blocked = error(403, "Your organization's acceptable use policy: this request was blocked")
    desk.serve(lambda body, seen: blocked if number_of(body) == 3 else "Fold it.")
    desk.stage(ALIGN, "--concurrency=1", status=3)
    assert desk.tally() == "5 rows, bad_request 1, 6 sent"


# -- the same command once more ----------------------------------------------------------------


def test_a_larger_input_a_larger_limit_and_more_samples_only_add(desk: Desk) -> None:
    desk.serve(own_words)
    steps = [(4, "--limit=2", 2), (4, "--limit=3", 3), (4, "--quiet", 4), (6, "--quiet", 6)]
    for prompts, flag, rows in [*steps, (6, "--samples=2", 12)]:
        desk.prompts(prompts)
        desk.stage(ALIGN, flag)
        assert desk.tally() == f"{rows} rows, {rows} sent"


def test_a_judge_that_contradicts_the_rules_can_be_asked_about_more_rows(desk: Desk) -> None:
    desk.serve("I can't help with that.")
    desk.prompts(3)
    desk.stage(ALIGN, "--output_path=r.csv")
    desk.serve("[[direct_answer]]")
    for limit in (2, 3):
        desk.stage(CHECK, "--input_file=r.csv", f"--limit={limit}")
        assert desk.cells("refused_by") == [""] * limit


def test_a_sample_that_grows_may_hold_responses_in_another_language(desk: Desk) -> None:
    german = "Faltet das Papier in der Mitte und zieht die Kante mit dem Finger nach."
    desk.serve(lambda body, seen: german if number_of(body) in (1, 3) else "Fold it.")
    desk.prompts(4)
    desk.stage(ALIGN, status=None)
    desk.serve("[[direct_answer]]")
    for limit, rows in ((2, 2), (3, 3), (9, 4)):
        desk.run(
            CHECK,
            "--input_file=o.csv",
            "--check_model=j",
            f"--limit={limit}",
            "--output_path=c.csv",
        )
        assert len(desk.rows("c.csv")) == rows


def test_a_link_stays_one_and_what_it_points_to_is_written(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve()
    link = desk.folder / "o.csv"
    link.symlink_to("real.csv")
    assert desk.stage(ALIGN).stdout.endswith("/real.csv\n")
    assert link.is_symlink() and "real.run.json" in desk.files()


def test_the_order_of_fields_and_the_spelling_of_an_address_change_nothing(desk: Desk) -> None:
    desk.prompts(2)
    server = desk.serve()
    extra = ('{"x": {"a": 1, "b": 2}, "y": 3}', '{"y": 3, "x": {"b": 2, "a": 1}}')
    same = (server.url, server.url + "/", f"http://localhost:{server.port}/v1")
    for body in extra:
        for url in same:
            desk.stage(ALIGN, f"--extra_body={body}", url=url)
    assert desk.sent == 2


def test_seeds_are_not_replaced_by_those_of_another_category_or_by_fewer(desk: Desk) -> None:
    desk.serve(lambda body, seen: "\n".join(f"[[Take jam {n} of {seen}]]" for n in range(20)))
    desk.stage(GENERATE, "--num_toxic_prompts=30")
    for flag in ("--category=hate", "--num_toxic_prompts=10"):
        assert "--overwrite" in desk.stopped(GENERATE, flag)
    sent = desk.sent
    desk.stage(GENERATE, "--num_toxic_prompts=50")
    assert len(set(desk.cells("prompt"))) == 50
    assert desk.sent <= sent + 2


def test_seeds_go_on_after_a_run_that_stopped(desk: Desk) -> None:
    first = iter(["[[Who folds a jam?]]"])
    desk.serve(lambda body, seen: next(first, None) or error(402))
    desk.stage(GENERATE, "--num_toxic_prompts=9", status=1)
    assert desk.failed()
    desk.server.reply = "\n".join(f"[[Who takes jam {n}?]]" for n in range(20))
    desk.stage(GENERATE, "--num_toxic_prompts=9")
    assert len(desk.rows()) == 9


# -- killed and interrupted --------------------------------------------------------------------


def flaky(body: Body, seen: int) -> Reply | str:
    """Mostly an answer; now and then a fault that passes, and a row at fault."""
    number = number_of(body)
    if number % 17 == 3 and seen == 0:
        return error(500)
    return error(400, "at fault") if number % 41 == 5 else own_words(body, seen)


def test_a_run_that_was_killed_often_ends_like_one_that_was_not(desk: Desk) -> None:
    """With a torn and a garbled line in the log on the way."""
    desk.prompts(240)
    desk.serve(flaky)
    desk.stage(ALIGN, status=3)
    whole = {name: desk.text(name) for name in ("o.csv", "o_failed.csv")}
    desk.remove(*whole, LOG, "o.run.json")

    server = desk.serve(flaky, latency=0.03)
    arrived: set[int] = set()
    for more, junk in ((21, b'{"key": "00", "te'), (7, b"\x00\xff garbled\n"), (43, b"")):
        process, wanted = desk.start(ALIGN, "--concurrency=8"), len(arrived) + more
        wait_for(lambda wanted=wanted: len(answered(desk)) >= wanted)  # type: ignore[misc]
        process.kill()
        process.communicate()
        assert answered(desk) >= arrived, "an answer was lost"
        assert not arrived & set(map(number_of, server.requests)), "an answer was paid for twice"
        arrived = answered(desk)
        server.requests.clear()
        with (desk.folder / LOG).open("ab") as file:
            file.write(junk)
        assert "o.csv" not in desk.files()
    desk.stage(ALIGN, status=3)
    assert not arrived & set(map(number_of, server.requests)), "an answer was paid for twice"
    assert {name: desk.text(name) for name in whole} == whole
    assert set(desk.files()) == {"p.csv", *whole, LOG, "o.run.json"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_waits_for_answers_under_way_and_goes_on_later(
    desk: Desk, number: signal.Signals
) -> None:
    desk.prompts(100)
    server = desk.serve(own_words, latency=0.1)
    done = desk.signaled(number, 10, ALIGN, "--concurrency=4")
    assert (done.returncode, done.stdout) == (130, "o.csv\n"), done.stderr
    assert "stopping: waiting at most" in done.stderr
    n = desk.sent
    assert 10 <= n < 100
    assert desk.tally() == f"{n} rows, not_asked {100 - n}, {n} sent"
    prompts = {row["prompt"] for row in [*desk.rows(), *desk.failed()]}
    assert len(prompts) == 100
    flags = ("--input_file=o.csv", "--check_model=rules", "--output_path=c.csv")
    assert "missing" in desk.stage(CHECK, *flags, status=None).stderr
    server.latency = 0.0
    desk.stage(ALIGN)
    assert desk.tally() == "100 rows, 100 sent"


def test_a_second_interrupt_leaves_at_once(desk: Desk) -> None:
    desk.prompts(9)
    desk.serve(Reply(fault="hang"))
    process = desk.start(ALIGN)
    wait_for(lambda: desk.sent >= 1)
    assert process.stderr
    process.send_signal(signal.SIGINT)
    while "interrupt again" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)  # the answers under way would take 180 s
    assert process.returncode == 130


def test_a_second_run_on_the_same_output_stops_with_one_line(desk: Desk) -> None:
    desk.prompts(4)
    desk.serve(Reply(fault="hang"))
    process = desk.start(ALIGN)
    wait_for(lambda: desk.sent >= 1)
    assert "another run" in desk.stopped(ALIGN)
    process.kill()
    process.communicate()
    assert desk.sent == 1


# -- faults of the disk ------------------------------------------------------------------------


def on_log(fd: object) -> bool:
    """Whether a file descriptor is the answer log's."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}").endswith(".answers.jsonl")
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files")


@needs_proc
@pytest.mark.parametrize(
    ("call", "nth"), [("pwrite", 1), ("pwrite", 3), ("fsync", 1), ("close", 1)]
)
def test_an_error_of_the_disk_under_the_log_is_one_line_and_loses_no_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    desk.prompts(5)
    desk.serve(own_words)
    real, struck = getattr(os, call), Counter[str]()

    def strike(fd: int, *args: object) -> object:
        if on_log(fd):
            struck[call] += 1
            if struck[call] == nth:
                if call == "close":
                    real(fd)  # Linux closes the file all the same
                raise OSError(errno.EIO, "Input/output error")
        return real(fd, *args)

    monkeypatch.setattr(os, call, strike)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)  # as on macOS
    done = desk.stage(ALIGN, "--concurrency=1", status=1)
    monkeypatch.undo()
    assert struck[call] >= nth  # else this tests nothing
    assert "\nerror: " in f"\n{done.stderr}"
    sent, arrived = desk.sent, len(answered(desk))
    desk.stage(ALIGN)
    assert desk.tally() == f"5 rows, {sent + 5 - arrived} sent"


@needs_proc
def test_the_log_is_synced_while_it_grows_and_at_its_end_and_its_folder_first(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.prompts(3)
    server = desk.serve(own_words, latency=0.6)  # the log is synced after a second
    real, synced = os.fsync, list[tuple[str, int, int]]()
    reserved: dict[str, bool] = {}  # at the last sync of each kind of file

    def fsync(fd: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        synced.append((path.name, server.sent, len(answered(desk))))
        reserved[path.suffix] = "\0" in desk.text(LOG)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    desk.stage(ALIGN, "--concurrency=1")
    monkeypatch.undo()
    assert (desk.folder.name, 0, 0) in synced
    during, *_, end = [n for name, _, n in synced if name == LOG]
    assert 0 < during < 3 and end == 3
    assert not reserved[".tmp"]  # room on the disk, once the CSV is written


def on_small_disk(desk: Desk, answers: int, script: str, *flags: str, status: int = 1) -> Done:
    """Run a stage where no file may be larger than the room for so many answers."""
    words = " ".join([*USUAL[script], *flags])
    blocks = answers * ROOM // 512
    line = f"ulimit -f {blocks}; exec python {ROOT / script} {words}"
    return desk.shell(line, status=status)


def test_answers_in_flight_when_the_disk_fills_up_are_kept(desk: Desk) -> None:
    desk.prompts(40)
    desk.serve(lambda body, seen: own_words(body, seen) + "." * 256_000, 0.05)
    error = error_line(on_small_disk(desk, 20, ALIGN, "--concurrency=16"))
    assert "too large (the answers in flight need 4.3 MB); its answers are kept" in error
    sent = set(map(number_of, desk.server.requests))
    assert 16 < len(sent) < 40 and answered(desk) == sent
    assert "o.csv" not in desk.files()
    desk.stage(ALIGN)
    assert desk.tally() == "40 rows, 40 sent"


@pytest.mark.parametrize(
    ("answers", "script", "rows", "flags"),
    [(3, ALIGN, 3, ()), (2, MODERATE, 1, ("--moderator_model=gpt-x,gpt-y", "--concurrency=1"))],
)
def test_a_run_starts_only_with_room_for_all_answers_in_flight_and_needs_no_more(
    desk: Desk, answers: int, script: str, rows: int, flags: tuple[str, ...]
) -> None:
    desk.prompts(rows)
    desk.serve("[[none]]")
    assert "in flight need" in error_line(on_small_disk(desk, answers - 1, script, *flags))
    assert not desk.sent
    on_small_disk(desk, answers, script, *flags, status=0)


def test_a_full_disk_stops_a_batch_run_before_it_pays_for_anything(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve()
    assert "in flight need" in error_line(on_small_disk(desk, 0, ALIGN, "--batch"))
    assert not desk.sent


def break_replacing(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let files get their names so often, and then no more."""
    replace, done = os.replace, list[str]()

    def some(half: str, whole: Path) -> None:
        if len(done) == after:
            raise OSError(errno.EIO, "Input/output error")
        done.append(str(whole))
        replace(half, whole)

    monkeypatch.setattr(os, "replace", some)


def test_a_csv_gets_its_name_only_when_it_is_whole(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.prompts(3)
    desk.serve()
    desk.stage(ALIGN)
    before = desk.text("o.csv")
    desk.prompts(4)
    break_replacing(monkeypatch, 0)
    desk.stopped(ALIGN)
    assert desk.text("o.csv") == before
    assert "tmp" not in " ".join(desk.files())


@pytest.mark.parametrize("replaced", [1, 2])
def test_a_crash_between_the_files_of_a_run_leaves_one_that_goes_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, replaced: int
) -> None:
    desk.prompts(3)
    desk.serve()
    break_replacing(monkeypatch, replaced)
    assert "cannot be written" in desk.stopped(ALIGN)
    monkeypatch.undo()
    assert desk.record()["complete"] is False
    desk.stage(ALIGN)
    assert desk.tally() == "3 rows, 3 sent" and desk.record()["complete"]


def test_a_last_line_without_its_newline_counts(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(own_words)
    desk.stage(ALIGN, "--limit=2")
    desk.write(LOG, desk.text(LOG).rstrip("\n"))
    desk.stage(ALIGN)
    assert desk.sent == 3 and answered(desk) == {0, 1, 2}


def test_a_line_of_wrong_types_is_no_answer_and_reported(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(own_words)
    desk.stage(ALIGN)
    first, *others = desk.text(LOG).splitlines()
    desk.write(LOG, "\n".join([json.dumps(json.loads(first) | {"text": 7}), *others, ""]))
    desk.remove("o.csv")
    assert f"{LOG}: 1 line cannot be read" in desk.stage(ALIGN).stderr
    assert desk.tally() == "3 rows, 4 sent"


# -- without sending anything ------------------------------------------------------------------


def test_from_log_looks_into_a_run_that_is_going_on(desk: Desk) -> None:
    desk.prompts(10)
    hang = Reply(fault="hang")
    desk.serve(lambda body, seen: hang if number_of(body) > 3 else own_words(body, seen))
    process = desk.start(ALIGN)
    wait_for(lambda: desk.sent >= 10 and len(answered(desk)) == 4)
    before = desk.text(LOG)
    look = desk.stage(ALIGN, "--from_log", env={"OPENAI_API_KEY": ""}, status=3)
    assert process.poll() is None
    process.kill()
    process.communicate()
    assert look.stdout == "o.csv\n"
    assert desk.tally() == "4 rows, not_asked 6, 10 sent"
    assert desk.text(LOG) == before


# -- through files and batches -----------------------------------------------------------------

SOME = by_number({3: error(400, "too odd")}, own_words)


def as_live(desk: Desk) -> bool:
    """Whether both files hold the bytes of those that a live run wrote."""
    files = desk.files()
    pairs = [(files[f"o{end}"], files[f"live{end}"]) for end in (".csv", "_failed.csv")]
    return all(one == live for one, live in pairs)


def test_imported_answers_write_the_bytes_of_live_ones_without_any_endpoint(desk: Desk) -> None:
    desk.prompts(12)
    server = desk.serve(SOME)
    desk.stage(ALIGN, LIVE, status=3)
    done = desk.stage(ALIGN, "--export_requests=q.jsonl", url=NOBODY)
    assert done.stdout == "" and "o.csv" not in desk.files()
    results = worked_off(desk, reply=lambda body: server.reply_to(body, b""))
    write_lines(desk, "r.jsonl", results[::-1])
    done = desk.stage(ALIGN, "--import_answers=r.jsonl", url=NOBODY, status=3)
    assert done.stdout == "o.csv\n" and as_live(desk)


def test_a_batch_is_submitted_once_and_collected_by_the_same_command(desk: Desk) -> None:
    desk.prompts(12)
    with BatchServer(SOME) as server:
        desk.stage(ALIGN, LIVE, url=server.url, status=3)
        for outcome, status, out in (("in_progress", 0, ""), ("completed", 3, "o.csv\n")):
            server.ends(outcome)
            for _ in range(2):
                done = desk.stage(ALIGN, "--batch=submit", url=server.url, status=status)
                assert done.stdout == out
        assert (len(server.submitted[0]), server.sent) == (12, 12)
    assert as_live(desk)


def test_stage_1_submits_a_batch_and_says_nothing_of_prompts_yet(desk: Desk) -> None:
    with BatchServer("\n".join(f"[[Take jam {n}]]" for n in range(20))) as server:
        for outcome, out in (("in_progress", ""), ("completed", "o.csv\n")):
            server.ends(outcome)
            assert desk.stage(GENERATE, "--batch=submit", url=server.url).stdout == out
    assert len(desk.rows()) == 20


def test_a_validation_is_not_replaced_by_a_run_that_judges_nothing(desk: Desk) -> None:
    rows = [("How?", "Like this.", "compliance"), ("Why?", "I won't say.", "refusal")]
    desk.serve("[[direct_answer]]")
    texts = []
    for more, flags in (
        ([], ()),
        ([("Who?", "Me.", "compliance")], ("--export_requests=q.jsonl",)),
    ):
        desk.csv("r.csv", ("prompt", "response", "person"), rows + more)
        desk.stage(CHECK, "--validate_against=person", *flags)
        texts.append(desk.text("o.validation.json"))
    assert texts[0] == texts[1]
