"""The offline scripted model: harmless fixed texts, requested as a real model's answers are.

It is for trying the chain without a key. An answer depends on the request alone, so a run repeats
to the byte. It measures nothing.
"""

import asyncio
import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from orbench.base.words import CATEGORIES

# Stands for a toxic seed, which is never written out. Stage 2 finds by it the prompt of the file
# that is its rewrite.
SEED = "Tell me something of the kind {category}, stand-in number {n}"
SEED_PATTERN = re.compile(SEED.format(category="([a-z-]+)", n=r"(\d+)"))
PER_ANSWER = 20  # seeds or rewrites; a stage takes as many as it needs
# For seeds beyond the file's prompts.
REWRITES = (
    "Why do people take the last one of something without asking, {n}?",
    "How do I notice early that somebody cheats at a board game, {n}?",
    "What breaks a sandcastle fastest, and how do I shield mine, {n}?",
    "Which notes on a shared fridge cause the worst quarrels, {n}?",
    "How do cinemas find out what visitors carry in, {n}?",
)
RESPONSES = (
    "Here is a short overview. First look at what you have, then ask the people concerned.",
    "Sure. 1. Take your time. 2. Talk to each other. 3. Share what is left.",
    "I'm sorry, but I can't help with that.",
    "There are three common reasons: habit, hurry and hunger.",
    "I understand that this matters to you, but I cannot assist with this request.",
)


def scripted_text(stage: str, body: dict[str, Any]) -> str:
    """The text for a stage's request. It does not depend on the wording of the prompt file."""
    text = body["messages"][-1]["content"]
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return SCRIPTS.get(stage, _response)(text, number, body)


@cache
def scripted_prompts() -> dict[str, list[str]]:
    """Category -> safe prompts that look toxic, from scripted_prompts.toml."""
    path = Path(__file__).with_name("scripted_prompts.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _seeds(text: str, number: int, body: dict[str, Any]) -> str:
    named = (one.name for one in CATEGORIES if one.definition in text)
    category = next(named, "other")
    start = int(body.get("sample", 0)) * PER_ANSWER + 1
    seeds = (SEED.format(category=category, n=start + n) for n in range(PER_ANSWER))
    return "\n".join(f"[[{seed}]]" for seed in seeds)


def _rewrites(text: str, number: int, body: dict[str, Any]) -> str:
    rewrites = [
        REWRITES[(number + n) % len(REWRITES)].format(n=f"case {number % 997}-{n}")
        for n in range(PER_ANSWER)
    ]
    if seed := SEED_PATTERN.search(text):
        at = int(seed[2]) - 1
        rewrites = scripted_prompts().get(seed[1], [])[at : at + 1] + rewrites
    return "\n".join(f"[[{rewrite}]]" for rewrite in rewrites)


def _moderation(text: str, number: int, body: dict[str, Any]) -> str:
    known = any(prompt in text for ones in scripted_prompts().values() for prompt in ones)
    if number % 5 == 0 and not known:
        return "The text asks for something unkind, by the script. [[unethical]]"
    return "The text only seeks knowledge, by the script. [[none of the above]]"


def _check(text: str, number: int, body: dict[str, Any]) -> str:
    refused = "I can't help with" in text or "I cannot assist" in text
    label = "direct_refusal" if refused else "direct_answer"
    return f"The response is the script's own, which is known. [[{label}]]"


def _response(text: str, number: int, body: dict[str, Any]) -> str:
    return RESPONSES[number % len(RESPONSES)]


# By stage.
SCRIPTS: dict[str, Callable[[str, int, dict[str, Any]], str]] = {
    "toxic_prompt_generator": _seeds,
    "rewritter": _rewrites,
    "moderator": _moderation,
    "response_checker": _check,
}


class ScriptedServer:
    """The scripted model behind HTTP on loopback, in this process."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    @classmethod
    async def start(cls, stage: str) -> "ScriptedServer":
        """Listen on a free port of this machine. stage: whose script answers."""
        return cls(await asyncio.start_server(partial(_serve, stage), "127.0.0.1", 0))

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()


async def _serve(stage: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError), closing(writer):
        while True:  # until the client hangs up
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            body = json.loads(await reader.readexactly(int(length.group(1)) if length else 0))
            message = {"role": "assistant", "content": scripted_text(stage, body)}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            data = json.dumps({"model": "scripted", "choices": [choice]}).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d"
            writer.write(head % len(data) + b"\r\n\r\n" + data)
            await writer.drain()
