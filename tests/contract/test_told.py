"""What a stage tells its user: what it will send, how it went, and what its record keeps."""

from tests.conftest import ALIGN, GENERATE, MODERATE, Desk
from tests.server import Body, Reply, answer, completion, error, number_of

NO = "I'm sorry, but I can't help with that."


def from_version(body: Body, seen: int) -> Reply:
    """Answers of two versions of the model; three prompts are bad requests."""
    number = number_of(body)
    if number > 4:
        return error(400, "too long" if number > 5 else "too odd")
    choice = {"finish_reason": "stop", "message": {"content": NO if number == 2 else "Fold it."}}
    return Reply(completion(choices=[choice], model=f"gpt-4o-2024-0{5 + number // 3}-01"))


def test_the_last_lines_account_for_rows_requests_files_and_errors(desk: Desk) -> None:
    desk.prompts(8)
    desk.serve(from_version)
    flags = ("--model=gpt-4o", "--merge_result=False")
    done = desk.stage(ALIGN, *flags, "--prices=1000,10000")
    assert (done.returncode, done.stdout) == (3, "o_rejected.csv\n")
    versions = "gpt-4o answered as gpt-4o-2024-05-01 (3), gpt-4o-2024-06-01 (2)"
    assert done.stderr.splitlines()[-5:] == [
        "done 5 · failed 3 · unscored 0 · answers reused from the log 0",
        f"requests 8, retries 0 · tokens in 50, out 25 · cost 0.3000 · {versions}",
        "3 rows in o_failed.csv",
        "the most frequent error (2): 400: too long",
        "also written: o_accepted.csv",
    ]
    desk.server.reply = answer("Fold it.", "length")
    done = desk.stage(ALIGN, *flags, "--quiet")
    other = "8 answered by gpt-4o-2024-05-01 (3), gpt-4o-2024-06-01 (2), loopback-1 (3)"
    assert done.stderr.splitlines()[-4:] == [
        "done 8 · failed 0 · unscored 0 · answers reused from the log 5",
        f"requests 3, retries 0 · tokens in 30, out 15 · {other} instead of gpt-4o",
        "3 answers cut off at the limit of 1,000 tokens (--max_tokens)",
        "also written: o_accepted.csv",
    ]
    record = desk.record("o_accepted.csv")
    assert record["part"] == "accepted" and desk.record("o_rejected.csv")["part"] == "rejected"
    counts = {"done": 8, "reused": 5, "cut off": 3, "written": 8, "requests": 3, "retries": 0}
    assert record["counts"].items() >= counts.items()


def test_a_dry_run_names_the_requests_the_tokens_and_the_most_it_can_cost(desk: Desk) -> None:
    desk.csv("p.csv", ("prompt",), [("a" * 400,), ("b" * 400,), ("b" * 400,), ("c" * 400,)])
    desk.serve("[[none]]")
    assert desk.stage(ALIGN, "--limit=1").returncode == 0
    before = desk.files()
    done = desk.stage(ALIGN, "--dry_run", "--prices=1000,10000", env={"OPENAI_API_KEY": ""})
    assert done.stdout == "" and done.stderr.splitlines() == [
        "duplicate prompts, used as they are: 1",
        "requests: 3, answered in the log: 1, to send: 2",  # equal ones are sent once
        "tokens: about 200 in the prompts, at most 2,000 in the answers (max_tokens)",
        "cost: at most about 20.20",
    ]
    assert desk.files() == before and len(desk.server.requests) == 1


def test_a_run_without_a_result_says_where_the_replies_are(desk: Desk) -> None:
    desk.prompts(2)
    desk.serve("Hm.")
    done = desk.stage(MODERATE, "--merge_result=False")
    assert (done.returncode, done.stdout) == (1, "") and "also written" not in done.stderr
    assert "none of the 2 requests gave a result; see o_failed.csv\n" in done.stderr
    assert "unreadable replies are kept; to ask again, delete o.answers.jsonl" in done.stderr
    assert "toxic 0 · not toxic 0 · unscored 2\n" in done.stderr


# -- stage 1 -----------------------------------------------------------------------------------


def test_stage_1_tells_how_many_prompts_came_and_why_there_are_no_more(desk: Desk) -> None:
    desk.serve(lambda body, seen: NO if seen else "[[Take the biscuit]]")
    done = desk.stage(GENERATE, "--num_toxic_prompts=60")
    assert done.returncode == 3
    n = len(desk.server.requests)
    for line in (
        f"giving up: {n - 1} requests in a row produced no new prompt",
        f"gpt-x: refused {n - 1} of {n} requests; try another --model",
        "1 prompt of the 60 wanted",
    ):
        assert line + "\n" in done.stderr


# -- run records -------------------------------------------------------------------------------
