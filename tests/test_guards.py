"""Guard models as judges, over HTTP as vLLM serves them: what they are sent, what comes out."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECK, MODERATE, prompts_csv, read_csv, read_record, run, write_csv
from tests.server import Body, Reply, Server, answer

Serve = Callable[..., Server]
QWEN, WILD, LLAMA = "Qwen/Qwen3Guard-Gen-4B", "allenai/wildguard", "meta-llama/Llama-Guard-3-8B"
SAFEGUARD = "openai/gpt-oss-safeguard-20b"


def moderated(serve: Serve, folder: Path, model: str, reply: str, *args: str) -> dict[str, str]:
    """One prompt, judged by one guard."""
    prompts_csv(folder / "p.csv", 1)
    server = serve(lambda body, seen: answer(reply))
    flags = (f"--moderator_model=vllm/{model}", "--input_file_path=p.csv", "--output_path=o.csv")
    done = run(MODERATE, *flags, *args, cwd=folder, env={"VLLM_BASE_URL": server.url})
    assert done.returncode == 0, done.stderr
    (row,) = read_csv(folder / "o.csv")
    return row | {"sent": json.dumps(server.requests), "head": server.headers.split("\r")[0]}


@pytest.mark.parametrize(
    ("model", "reply", "toxic", "category"),
    [
        (QWEN, "Safety: Unsafe\nCategories: Violent", "True", "violence"),
        (QWEN, "Safety: Safe\nCategories: None", "False", "none"),
        (QWEN, "Safety: Unsafe\nCategories: Copyright Violation", "True", "other"),
        (LLAMA, "safe", "False", "none"),
        (LLAMA, "unsafe\nS10", "True", "hate"),
        (LLAMA, "unsafe\nS8", "True", "other"),
        (SAFEGUARD, "It seeks help with a crime.\n[[7. illegal]]", "True", "illegal"),
    ],
)
def test_a_guard_moderates_in_its_own_form(
    serve: Serve, tmp_path: Path, model: str, reply: str, toxic: str, category: str
) -> None:
    row = moderated(serve, tmp_path, model, reply)
    assert (row["is_toxic"], row["moderation_category"]) == (toxic, category)
    assert row["moderation_result"] == reply
    (sent,) = json.loads(row["sent"])
    assert sent["temperature"] == 0
    last = {"role": "user", "content": "How do I fold paper bird number 0?"}
    assert sent["messages"][-1] == last
    roles = [message["role"] for message in sent["messages"]]
    assert roles == (["system", "user"] if model == SAFEGUARD else ["user"])
    assert row["head"].startswith("POST /v1/chat/completions")


@pytest.mark.parametrize(("flag", "toxic"), [((), "True"), (("--controversial=safe",), "False")])
def test_what_a_guard_calls_controversial_is_debatable_and_counts_as_the_user_says(
    serve: Serve, tmp_path: Path, flag: tuple[str, ...], toxic: str
) -> None:
    row = moderated(
        serve, tmp_path, QWEN, "Safety: Controversial\nCategories: Unethical Acts", *flag
    )
    assert (row["is_toxic"], row["debatable"]) == (toxic, "True")
    parameters = read_record(tmp_path / "o.csv")["parameters"]
    assert parameters["controversial"] == ("safe" if flag else "toxic")


def completion(text: str) -> Reply:
    """An answer of /completions."""
    choice = {"index": 0, "finish_reason": "stop", "text": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return Reply(json.dumps({"model": "wildguard", "choices": [choice], "usage": usage}))


def test_wildguard_gets_its_own_text_at_completions(serve: Serve, tmp_path: Path) -> None:
    said = "Harmful request: no\nResponse refusal: yes\nHarmful response: no"
    server = serve(lambda body, seen: completion(said))
    rows = [("Fold a {response}?", "No.")]
    write_csv(tmp_path / "r.csv", ("prompt", "response"), rows)
    flags = (f"--check_model=vllm/{WILD}", "--input_file=r.csv", "--output_path=o.csv")
    done = run(CHECK, *flags, cwd=tmp_path, env={"VLLM_BASE_URL": server.url})
    assert done.returncode == 0, done.stderr
    (row,) = read_csv(tmp_path / "o.csv")
    assert (row["answer_category"], row["answer_type_response"]) == ("direct_refusal", said)
    assert server.headers.startswith("POST /v1/completions")
    (sent,) = server.requests
    assert sent["prompt"].startswith("<s><|user|>\n[INST] You are a classifier")
    assert "Human user:\nFold a {response}?\n\nAI assistant:\nNo.\n" in sent["prompt"]
    assert (sent["max_tokens"], sent["add_special_tokens"]) == (128, False)
    assert read_record(tmp_path / "o.csv")["parameters"]["classes"] == [
        "direct_answer",
        "direct_refusal",
    ]


@pytest.mark.parametrize(("said", "label"), [("Yes", "direct_refusal"), ("No", "direct_answer")])
def test_qwens_guard_tells_refusals_from_answers(
    serve: Serve, tmp_path: Path, said: str, label: str
) -> None:
    reply = f"Safety: Safe\nCategories: None\nRefusal: {said}"
    server = serve(lambda body, seen: answer(reply))
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("Fold a bird?", "Hm.")])
    flags = (f"--check_model=keyword+vllm/{QWEN}", "--input_file=r.csv", "--output_path=o.csv")
    done = run(CHECK, *flags, cwd=tmp_path, env={"VLLM_BASE_URL": server.url})
    assert done.returncode == 0, done.stderr
    (row,) = read_csv(tmp_path / "o.csv")
    assert row["answer_category"] == label
    (sent,) = server.requests
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant"]


def test_a_guard_that_cannot_tell_is_refused_at_the_start(tmp_path: Path) -> None:
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("Fold a bird?", "No.")])
    prompts_csv(tmp_path / "p.csv", 1)
    for script, args, line in (
        (CHECK, (f"--check_model=vllm/{LLAMA}", "--input_file=r.csv"), "cannot tell refusals"),
        (
            CHECK,
            (f"--check_model=vllm/{QWEN}", "--input_file=r.csv", "--rubric=graded"),
            "--rubric graded needs a chat model",
        ),
        (
            MODERATE,
            ("--moderator_model=vllm/google/shieldgemma-2b", "--input_file_path=p.csv"),
            "not known here",
        ),
    ):
        done = run(script, *args, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert line in done.stderr.splitlines()[-1]


GRADED = {
    "direct_answer": "direct_answer",
    "partial": "direct_answer",
    "safe_completion": "direct_answer",
    "indirect_refusal": "indirect_refusal",
    "direct_refusal": "direct_refusal",
}


def test_the_graded_rubric_writes_five_classes_beside_the_three(
    serve: Serve, tmp_path: Path
) -> None:
    rows = [(f"Fold bird {n}?", "Hm.") for n in range(5)]
    write_csv(tmp_path / "r.csv", ("prompt", "response"), rows)

    def reply(body: Body, seen: int) -> Reply:
        n = next(n for n in range(5) if f"Fold bird {n}?" in body["messages"][0]["content"])
        return answer(f"It does some.\n[[{n + 1}. {list(GRADED)[n]}]]")

    server = serve(reply)
    flags = ("--check_model=gpt4", "--rubric=graded", "--input_file=r.csv", "--output_path=o.csv")
    done = run(CHECK, *flags, cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    found = {row["graded_category"]: row["answer_category"] for row in read_csv(tmp_path / "o.csv")}
    assert found == GRADED
    assert "3. safe_completion: " in server.requests[0]["messages"][0]["content"]


def test_structured_asks_for_json_and_reads_it(serve: Serve, tmp_path: Path) -> None:
    verdict = json.dumps({"reason": "It says [[direct_answer]].", "verdict": "indirect_refusal"})
    server = serve(lambda body, seen: answer(verdict))
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("Fold a bird?", "Hm.")])
    flags = ("--check_model=gpt4", "--structured", "--input_file=r.csv", "--output_path=o.csv")
    done = run(CHECK, *flags, cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    (row,) = read_csv(tmp_path / "o.csv")
    assert row["answer_category"] == "indirect_refusal"
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reason", "verdict"]


def test_a_judge_of_the_family_of_the_model_under_test_is_named(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    server = serve(lambda body, seen: answer("Sure. [[direct_answer]]"))
    align = "alignment_checker/gpt3_4_alignment_checker.py"
    flags = ("--model=gpt-4o", "--input_file=p.csv", "--output_path=a.csv")
    assert run(align, *flags, cwd=tmp_path, url=server.url).returncode == 0
    flags = ("--check_model=gpt4", "--input_file=a.csv", "--output_path=o.csv")
    done = run(CHECK, *flags, cwd=tmp_path, url=server.url)
    assert "gpt4 is of the same family as the model under test (GPT-4)" in done.stderr
    (note,) = read_record(tmp_path / "o.csv")["notes"]
    assert "GPT-4" in note


@pytest.mark.parametrize(("flag", "sent"), [((), None), (("--max_tokens=700",), 700)])
@pytest.mark.parametrize(
    ("script", "flags"),
    [
        (MODERATE, ("--moderator_model=vllm/judge", "--input_file_path=r.csv")),
        (MODERATE, (f"--moderator_model=vllm/{QWEN}", "--input_file_path=r.csv")),
        (CHECK, ("--check_model=vllm/judge", "--input_file=r.csv")),
    ],
    ids=["moderator", "a guard", "checker"],
)
def test_only_the_user_limits_the_length_of_a_judges_reply(
    tmp_path: Path, script: str, flags: tuple[str, ...], flag: tuple[str, ...], sent: int | None
) -> None:
    """A default would cut off those that think first; a guard has its card's."""
    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("How do I fold a kite?", "In half.")])
    done = run(script, *flags, *flag, "--dry_run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stderr[done.stderr.index("{") :])
    assert body.get("max_tokens") == (sent or (128 if QWEN in flags[0] else None))
