"""The offline scripted model: harmless fixed texts over the same client and code as a real one.

It is for trying the chain without a key. What it answers depends on nothing but the request, so a
run can be repeated to the byte. It measures nothing.
"""

import asyncio
import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from orbench.columns import CATEGORIES

PROMPTS_FILE = Path(__file__).with_name("scripted_prompts.toml")
# A stand-in for a toxic seed, which is never spelt out. It tells stage 2 which prompt of the file
# is its rewrite.
SEED = "Tell me something of the kind {category}, stand-in number {n}"
SEED_PATTERN = re.compile(SEED.format(category="([a-z-]+)", n=r"(\d+)"))
# For seeds beyond the file's prompts.
REWRITES = (
    "Why do people take the last one of something without asking, {n}?",
    "How do I notice early that somebody cheats at a board game, {n}?",
    "What breaks a sandcastle fastest, and how do I shield mine, {n}?",
    "Which notes on a shared fridge cause the worst quarrels, {n}?",
    "How do cinemas find out what visitors carry in, {n}?",
)
ANSWERS = (
    "Here is a short overview. First look at what you have, then ask the people concerned.",
    "Sure. 1. Take your time. 2. Talk to each other. 3. Share what is left.",
    "I'm sorry, but I can't help with that.",
    "There are three common reasons: habit, hurry and hunger.",
    "I understand that this matters to you, but I cannot assist with this request.",
)


def reply(stage: str, body: dict[str, Any]) -> str:
    """The text for a request of a stage: its script depends on the stage, never on the wording of
    the prompt file.
    """
    text = body["messages"][-1]["content"]
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    script = SCRIPTS.get(stage)
    return script(text, number, body) if script else ANSWERS[number % len(ANSWERS)]


@cache
def prompts() -> dict[str, list[str]]:
    """Category -> its prompts in the file: safe ones that look toxic."""
    with PROMPTS_FILE.open("rb") as file:
        return tomllib.load(file)


def _seeds(text: str, number: int, body: dict[str, Any]) -> str:
    named = (one.name for one in CATEGORIES if one.definition in text)
    category = next(named, "other")
    start = int(body.get("sample", 0)) * 20 + 1
    return "\n".join(f"[[{SEED.format(category=category, n=start + n)}]]" for n in range(20))


def _rewrites(text: str, number: int, body: dict[str, Any]) -> str:
    # More than any stage asks for: it takes as many as it wants.
    rewrites = [
        REWRITES[(number + n) % len(REWRITES)].format(n=f"case {number % 997}-{n}")
        for n in range(20)
    ]
    if seed := SEED_PATTERN.search(text):
        at = int(seed[2]) - 1
        rewrites = prompts().get(seed[1], [])[at : at + 1] + rewrites
    return "\n".join(f"[[{rewrite}]]" for rewrite in rewrites)


def _moderation(text: str, number: int, body: dict[str, Any]) -> str:
    known = any(prompt in text for ones in prompts().values() for prompt in ones)
    if number % 5 == 0 and not known:
        return "The text asks for something unkind, by the script. [[unethical]]"
    return "The text only seeks knowledge, by the script. [[none of the above]]"


def _check(text: str, number: int, body: dict[str, Any]) -> str:
    refused = "I can't help with" in text or "I cannot assist" in text
    label = "direct_refusal" if refused else "direct_answer"
    return f"The response is the script's own, which is known. [[{label}]]"


SCRIPTS: dict[str, Callable[[str, int, dict[str, Any]], str]] = {
    "toxic_prompt_generator": _seeds,
    "rewritter": _rewrites,
    "moderator": _moderation,
    "response_checker": _check,
}


class Server:
    """The scripted model behind HTTP on loopback, in this process, for as long as a run lasts."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    @classmethod
    async def start(cls, stage: str) -> "Server":
        """Listen on a free port of this machine alone, and answer as the stage's script says."""
        return cls(await asyncio.start_server(partial(_serve, stage), "127.0.0.1", 0))

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()


async def _serve(stage: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            body = json.loads(await reader.readexactly(int(length.group(1)) if length else 0))
            answer = {
                "id": "scripted",
                "object": "chat.completion",
                "created": 0,
                "model": "scripted",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": reply(stage, body)},
                    }
                ],
                "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            }
            data = json.dumps(answer).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(data) + data
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client hung up
    finally:
        writer.close()
