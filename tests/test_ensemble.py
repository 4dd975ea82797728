"""Several judges, their votes and their agreement; and the second chance of a toxic prompt."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ALIGN, KEY, MODERATE, prompts_csv, read_csv, read_record, run
from tests.server import Body, Reply, Server, answer, error, prompt_of

Serve = Callable[..., Server]
JUDGES = "gpt4,llama3,gemini-1.5"
MODELS = {
    "gpt-4-turbo-2024-04-09": "gpt4",
    "meta-llama/Llama-3-70b-chat-hf": "llama3",
    "gemini-1.5-pro": "gemini-1.5",
}
BUILD = "moderator/build_dataset.py"


def env_of(url: str) -> dict[str, str]:
    """The three judges' providers, all on loopback."""
    providers = ("OPENAI", "TOGETHER", "GEMINI")
    keys = {f"{provider}_API_KEY": KEY for provider in providers}
    return keys | {f"{provider}_BASE_URL": url for provider in providers}


def court(votes: dict[str, str]) -> Callable[[Body, int], Reply]:
    """Judges by votes: judge -> a letter a prompt, t toxic, s safe, ? unreadable, ! a fault."""

    def reply(body: Body, seen: int) -> Reply:
        number = re.search(r"bird number (\d+)", prompt_of(body))
        assert number
        model = str(body["model"])
        vote = votes[MODELS.get(model, model)][int(number[1])]
        if vote == "!":
            return error(400, "no")
        said = {"t": "[[7. illegal]]", "v": "[[violence]]", "s": "[[none of the above]]"}
        return answer(said.get(vote, "Hard to say."))

    return reply


def moderate(server: Server, folder: Path, n: int, *args: str) -> tuple[int, str, Path]:
    """Moderate n prompts with the three judges."""
    prompts_csv(folder / "p.csv", n)
    judges = f"--moderator_model={JUDGES}"
    done = run(
        MODERATE, judges, "--input_file_path=p.csv", *args, cwd=folder, env=env_of(server.url)
    )
    return (
        done.returncode,
        done.stderr,
        folder / "p_moderation_merged_gpt4+llama3+gemini-1.5_prompt.csv",
    )


def test_the_majority_of_the_judges_decides_and_each_keeps_its_columns(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(court({"gpt4": "tss", "llama3": "vts", "gemini-1.5": "tss"}))
    status, err, path = moderate(server, tmp_path, 3)
    assert status == 0, err
    rows = read_csv(path)
    assert [row["is_toxic"] for row in rows] == ["True", "False", "False"]
    assert [row["moderation_category"] for row in rows] == ["illegal", "none", "none"]
    assert [row["debatable"] for row in rows] == ["False", "True", "False"]
    assert {row["votes"] for row in rows} == {"3"}
    assert [row["is_toxic_llama3"] for row in rows] == ["True", "True", "False"]
    assert rows[0]["moderation_category_llama3"] == "violence"
    assert rows[1]["moderation_result_gemini-1.5"] == "[[none of the above]]"
    assert len(server.requests) == 9
    assert "gpt4 - llama3" in err
    assert "Fleiss' kappa" in err


def test_a_tie_decides_nothing_while_a_vote_is_missing(serve: Serve, tmp_path: Path) -> None:
    server = serve(court({"gpt4": "t?s", "llama3": "s?s", "gemini-1.5": "?s!"}))
    status, err, path = moderate(server, tmp_path, 3)
    assert status == 3, err
    rows = read_csv(path)
    assert [(row["is_toxic"], row["votes"]) for row in rows] == [("False", "2")]
    assert rows[0]["is_toxic_gemini-1.5"] == ""
    assert rows[0]["debatable"] == "False"
    failed = read_csv(path.with_name(path.stem + "_failed.csv"))
    assert ["number 0" in row["prompt"] for row in failed] == [True, False]
    assert {row["error_type"] for row in failed} == {"unscored"}
    assert failed[0]["error"].startswith("a tie of 2 votes, 1 of 3 missing; gemini-1.5: ")


def test_a_tie_of_all_judges_is_toxic(serve: Serve, tmp_path: Path) -> None:
    server = serve(court({"gpt4": "ts", "llama3": "ss"}))
    prompts_csv(tmp_path / "p.csv", 2)
    args = ("--moderator_model=gpt4,llama3", "--input_file_path=p.csv", "--output_path=o.csv")
    assert (
        run(MODERATE, *args, cwd=tmp_path, url=server.url, env=env_of(server.url)).returncode == 0
    )
    rows = read_csv(tmp_path / "o.csv")
    assert [(row["is_toxic"], row["debatable"]) for row in rows] == [
        ("True", "True"),
        ("False", "False"),
    ]


def test_a_substitute_is_asked_only_where_a_vote_is_missing(serve: Serve, tmp_path: Path) -> None:
    votes = {"gpt4": "tts", "llama3": "sts", "gemini-1.5": "?ss", "gpt-spare": "sss"}
    server = serve(court(votes))
    status, err, path = moderate(server, tmp_path, 3, "--substitute=gpt-spare")
    assert status == 0, err
    rows = read_csv(path)
    assert [(row["is_toxic"], row["votes"]) for row in rows] == [
        ("False", "3"),
        ("True", "3"),
        ("False", "3"),
    ]
    assert [row["is_toxic_gpt-spare"] for row in rows] == ["False", "", ""]
    assert sum(body["model"] == "gpt-spare" for body in server.requests) == 1
    sent = len(server.requests)
    again = moderate(server, tmp_path, 3, "--substitute=gpt-spare", "--from_log")
    assert again[0] == 0 and read_csv(path) == rows and len(server.requests) == sent


def test_min_votes_is_the_users_to_set(serve: Serve, tmp_path: Path) -> None:
    server = serve(court({"gpt4": "t", "llama3": "?", "gemini-1.5": "?"}))
    assert moderate(server, tmp_path, 1)[0] == 1
    status, _, path = moderate(server, tmp_path, 1, "--min_votes=1")
    assert status == 0
    assert read_csv(path)[0]["votes"] == "1"


@pytest.mark.parametrize("vote", ["?", "!"])
def test_a_judge_that_fails_throughout_is_named_and_recorded(
    serve: Serve, tmp_path: Path, vote: str
) -> None:
    server = serve(court({"gpt4": "s" * 40, "llama3": "s" * 40, "gemini-1.5": vote * 40}))
    status, err, path = moderate(server, tmp_path, 40)
    assert status == 0, err
    assert "gemini-1.5 has no vote at all" in err
    assert read_record(path)["findings"]["silent_judges"] == ["gemini-1.5"]
    assert {row["votes"] for row in read_csv(path)} == {"2"}
    if vote == "!":
        assert "gemini-1.5" in read_record(path)["left_out"]
        assert "20 requests in a row failed" in err


def test_a_retired_judge_stops_an_ensemble_instead_of_shrinking_it(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        retired = body["model"] == "gemini-1.5-pro"
        return error(404, "retired") if retired else answer("[[none of the above]]")

    status, err, _ = moderate(serve(reply), tmp_path, 5)
    assert status == 1
    assert "ORBENCH_MODEL_GEMINI_1_5" in err


def test_a_judge_named_twice_is_an_error(tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    args = ("--moderator_model=gpt4,gpt4", "--input_file_path=p.csv")
    done = run(MODERATE, *args, cwd=tmp_path, env={"OPENAI_API_KEY": KEY})
    assert done.returncode == 1
    assert "'gpt4' is named twice" in done.stderr


def test_a_model_under_two_names_has_one_vote_all_the_same(tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    args = ("--moderator_model=gpt4,openai/gpt-4-turbo-2024-04-09", "--input_file_path=p.csv")
    done = run(MODERATE, *args, cwd=tmp_path, env={"OPENAI_API_KEY": KEY})
    assert done.returncode == 1
    assert "each model has one vote" in done.stderr


def test_a_toxic_prompt_gets_a_second_chance(serve: Serve, tmp_path: Path) -> None:
    """Stage 3 -> stage 4 on the toxic file -> stage 3 on the responses -> the datasets."""

    def reply(body: Body, seen: int) -> Reply:
        text = prompt_of(body)
        number = re.search(r"number (\d)", text)
        assert number
        if "You are a moderator" not in text:
            return answer(f"Fold the corners of number {number[1]} first, then the wings.")
        toxic = int(number[1]) < 3 if "How do I fold" in text else number[1] == "0"
        return answer("[[violence]]" if toxic else "[[none of the above]]")

    url = serve(reply).url
    prompts_csv(tmp_path / "p.csv", 6)
    judge = ("--moderator_model=gpt4",)

    def go(script: str, *args: str) -> str:
        done = run(script, *args, cwd=tmp_path, url=url)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    toxic = go(MODERATE, *judge, "--input_file_path=p.csv", "--merge_result=False")
    answers = go(ALIGN, "--model=gpt-open", f"--input_file={toxic}")
    moderated = go(MODERATE, *judge, f"--input_file_path={answers}", "--column=response")
    rows = read_csv(tmp_path / moderated)
    assert [row["is_toxic"] for row in rows] == ["True"] * 3
    assert [row["response_is_toxic"] for row in rows] == ["True", "False", "False"]
    files = ("--moderated_files", moderated, toxic, toxic.replace("_toxic_", "_non_toxic_"))
    go(BUILD, *files, "--output_dir", "data", "--similarity=1")
    safe = [row["prompt"][-2] for row in read_csv(tmp_path / "data" / "or-bench-80k.csv")]
    assert sorted(safe) == ["1", "2", "3", "4", "5"]
    (bad,) = read_csv(tmp_path / "data" / "or-bench-toxic-all.csv")
    assert "number 0" in bad["prompt"]
