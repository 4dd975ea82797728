"""What a user can get wrong ends in one line that says what to do, before anything is paid for."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ALIGN, CHECK, ROOT, Desk
from tests.hub_server import HubServer
from tests.server import KEY, Reply, answer, completion, error, number_of

# -- malformed CSVs ----------------------------------------------------------------------------


TURN = {"role": "user", "content": "Go on."}


def test_rows_of_a_shuffled_sample_are_numbered_as_in_the_file(desk: Desk) -> None:
    turns = [json.dumps([{**TURN, "content": f"Fold {n}."}]) for n in range(5)]
    desk.csv("p.csv", ("messages",), [(turn,) for turn in (*turns, "[]")])
    desk.serve()
    said = ""
    for n in range(4):
        said += desk.stage(ALIGN, "--limit=5", f"--shuffle={n}", "--overwrite", status=None).stderr
    assert "p.csv, row 6" in said


# -- flags and names ---------------------------------------------------------------------------


def test_addresses_and_keys_are_set_in_the_environment_or_by_flags(desk: Desk) -> None:
    desk.prompts(1)
    server = desk.serve()
    own = ("--model=my/own", f"--base_url={server.url}", "--api_key_env=MY_KEY")
    desk.stage(ALIGN, *own, url="", env={"MY_KEY": "mine-123"})
    assert server.requests[0]["model"] == "my/own" and "Bearer mine-123" in server.headers
    assert "MY_KEY" in desk.stopped(ALIGN, *own, "--output_path=o2.csv", url="")
    env = {"OPENAI_BASE_URL": server.url}  # a server of one's own needs no key
    desk.stage(ALIGN, "--model=qwen2.5", "--overwrite", url="", env=env)


# -- what endpoints reject ---------------------------------------------------------------------


def test_a_rejected_parameter_is_recorded_and_not_tried_again_by_the_next_run(desk: Desk) -> None:
    odd = error(400, "m failed with the error above: it has no parameters ['temperature']")
    server = desk.serve(lambda body, seen: odd if "temperature" in body else "Fold it.", 0.2)
    for rows, sent, most in ((3, 4, 2), (9, 10, 6)):  # the second time none goes alone
        desk.prompts(rows)
        done = desk.stage(ALIGN, "--concurrency=64")
        assert "gpt-x rejects temperature: it is left out for the whole run" in done.stderr
        assert (server.sent, server.most) == (sent, most)
        assert desk.record()["models"][0]["left_out_parameters"] == {"temperature": rows}


# -- what endpoints answer ---------------------------------------------------------------------

ODD_USAGES: tuple[object, ...] = (
    *("n/a", [3], True, {"prompt_tokens_details": {"cached_tokens": "3"}, "prompt_tokens": [1]}),
    *({"prompt_tokens": float("nan")}, {"completion_tokens": 10**4299, "prompt_tokens": -1}),
    {"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": "x"},
)
# An answer in three protocols.
FOLD = {"type": "output_text", "text": "Fold it."}
PARTS = {"output": [{"type": "message", "content": [FOLD]}], "status": "completed"}
BLOCKS = {"content": [{"type": "text", "text": "Fold it."}], "stop_reason": "end_turn"}
CHOICES = {"choices": [{"message": {"content": "Fold it."}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("model", ["gpt-x", "o3-pro", "claude-opus-4"])
def test_no_answer_is_lost_to_its_token_counts_or_content_type(desk: Desk, model: str) -> None:
    desk.prompts(len(ODD_USAGES))
    answers = {**PARTS, **BLOCKS, **CHOICES}
    bodies = [completion(**answers, usage=usage) for usage in ODD_USAGES]
    plain = "text/plain; charset=utf-8"
    server = desk.serve(lambda body, seen: Reply(bodies[number_of(body)], content_type=plain))
    desk.stage(ALIGN, f"--model={model}")
    tokens = desk.record()["tokens"]
    assert (tokens["prompt"], tokens["completion"]) == (7, 5)
    assert server.sent == len(bodies)


@pytest.mark.parametrize("content", ["prompt\nWhy \ud83d?\n", '{"prompt": "Why \\ud83d?"}\n'])
def test_half_an_emoji_is_replaced_wherever_it_comes_in(desk: Desk, content: str) -> None:
    (desk.folder / "p.csv").write_text(content, "utf-8", "surrogatepass")
    desk.serve(Reply(str(answer("Fold \ud83d.").body).replace("loopback", "\\ud83d")))
    desk.stage(ALIGN, "--output_path=r.csv")
    responses = desk.text("r.csv")
    assert "Why \ufffd?" in responses and "Fold \ufffd." in responses
    desk.serve("It answers \ud83d. [[direct_answer]]")
    desk.stage(CHECK)
    assert "It answers \ufffd." in desk.text("o.csv")
    assert "ud83d" not in desk.text("o.answers.jsonl")


@pytest.mark.parametrize(("status", "model"), [(200, "gpt-x"), (200, "o3-pro"), (400, "gpt-x")])
def test_a_block_by_policy_is_stored_without_the_key(desk: Desk, status: int, model: str) -> None:
    desk.prompts(1)
    filters = {f"by {KEY}": {"filtered": True}}
    block = {"code": "content_filter", "innererror": {"content_filter_result": filters}}
    desk.serve(Reply(json.dumps({"error": block}), status))
    desk.stage(ALIGN, f"--model={model}")
    assert desk.rows()[0]["api_category"] == "by [key]"
    assert not any(KEY.encode() in content for content in desk.files().values())


def test_no_part_of_a_key_that_comes_in_two_is_written(desk: Desk) -> None:
    desk.csv("p.csv", ("prompt",), [("Is a sk-loopback like that a word?",)])
    half = len(KEY) // 2
    parts = [{"type": "text", "text": part} for part in (KEY[:half], KEY[half:])]
    about = {"model": KEY[:half], "provider": KEY[half:]}
    desk.serve(Reply(json.dumps({**about, "choices": [{"message": {"content": parts}}]})))
    flags = (f"--base_url={desk.url}/{KEY}", f'--extra_body={{"api_key": "{KEY}"}}')
    for _ in range(2):
        desk.stage(ALIGN, *flags)
    assert desk.sent == 1 and desk.server.requests[0]["api_key"] == KEY
    desk.server.reply = error(404)
    said = desk.stopped(ALIGN, *flags, "--output_path=n.csv")  # names the address
    assert "[key] (many end in /v1)" in said
    for content in [said, *map(bytes.decode, desk.files().values())]:
        assert KEY not in content and KEY[half:] not in content
    assert desk.cells("prompt") == desk.cells("prompt", "p.csv")  # half of it can be words


# -- outputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output", ["file/out.csv", ".", "p.csv", "o.txt", "o.answers.jsonl", f"{'n' * 252}.csv"]
)
def test_an_output_that_cannot_be_written_is_found_before_anything_is_paid(
    desk: Desk, output: str
) -> None:
    desk.prompts(1)
    desk.write("file", "")
    before, _ = desk.files(), desk.serve()
    desk.stopped(ALIGN, f"--output_path={output}")
    assert desk.files() == before and not desk.sent


# -- prompt sets of the Hub --------------------------------------------------------------------

FOLDS = b"prompt,category\nHow do I fold a crane?,paper\nHow do I fold a boat?,paper\n"


def hub_env(desk: Desk, url: str) -> dict[str, str]:
    home = {"HF_HOME": str(desk.folder / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return {"HF_ENDPOINT": url, **home}


def test_what_the_hub_does_not_give_is_one_line(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    says = {"mine/other.csv": "other.csv", "none/data.csv": "me/none", "gated/data.csv": "terms"}
    with HubServer({"me/mine/data.csv": FOLDS}, gated=("me/gated",)) as hub:
        for name, what in says.items():
            flags = ("--model=scripted", f"--input_file=hf://datasets/me/{name}")
            env = hub_env(desk, hub.url)
            assert what in desk.stopped(ALIGN, *flags, env=env, own_process=True)


# -- signals at odd moments --------------------------------------------------------------------


# What is being imported when the signal comes: the suite, or openai under the event loop.
@pytest.mark.parametrize("module", ["argparse", "orbench.", "dotenv", "openai"])
def test_an_interrupt_while_a_script_starts_ends_with_130(desk: Desk, module: str) -> None:
    desk.prompts(3)
    desk.serve()
    desk.write(".env", "A=b\n")
    desk.write(
        "sitecustomize.py",
        "import os, signal, sys\n"
        # A shell starts what runs in its background with SIGINT ignored, the tests included.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.startswith({module!r}):\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n",
    )
    env = {"PYTHONPATH": str(desk.folder)}
    done = desk.stage(ALIGN, env=env, own_process=True, status=130)
    assert not desk.sent and "interrupted" in done.stderr


def test_a_finalizer_does_not_swallow_an_interrupt() -> None:
    stop = "(_ for _ in ()).throw(KeyboardInterrupt)"
    code = f"import orbench; type('D', (), {{'__del__': lambda _: {stop}}})()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (130, 1)
