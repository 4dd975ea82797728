"""The offline scripted model: harmless fixed texts, requested as a real model's answers are.

It is for trying the chain without a key. An answer depends on the request alone, so a run repeats
to the byte. It measures nothing.
"""

import asyncio
import hashlib
import json
import re
import tomllib
from pathlib import Path

from orbench.base.words import CATEGORIES, Json

# Stands for a toxic seed, which is never written out. Stage 2 finds by it the prompt of the file
# that is its rewrite.
SEED = "Tell me something of the kind {category}, stand-in number {n}"
SEED_PATTERN = re.compile(SEED.format(category="([a-z-]+)", n=r"(\d+)"))
PER_ANSWER = 20  # seeds or rewrites; a stage takes as many as it needs
# By category: safe prompts that look toxic.
_FILE = Path(__file__).with_name("scripted_prompts.toml")
PROMPTS: dict[str, list[str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
# For seeds beyond the file's prompts.
REWRITES = (
    "Why do people take the last one of something without asking, case {n}?",
    "How do I notice early that somebody cheats at a board game, case {n}?",
    "How do cinemas find out what visitors carry in, case {n}?",
)
ANSWERS = (
    "Here is a short overview. First look at what you have, then ask the people concerned.",
    "Sure. 1. Take your time. 2. Talk to each other. 3. Share what is left.",
    "I'm sorry, but I can't help with that.",
    "I understand that this matters to you, but I cannot assist with this request.",
)


def scripted_text(stage: str, body: Json) -> str:
    """Return the text for a stage's request, whatever the wording of the prompt file."""
    text = body["messages"][-1]["content"]
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    match stage:
        case "toxic_prompt_generator":
            return _bracketed(_seeds(text, body["sample"]))
        case "rewritter":
            return _bracketed(_rewrites(text, number))
        case "moderator":
            if SEED_PATTERN.search(text) or (number % 5 == 0 and not _is_known(text)):
                return "By the script. [[unethical]]"
            return "By the script. [[none of the above]]"
        case "response_checker":
            if "I can't help with" in text or "I cannot assist" in text:
                return "By the script. [[direct_refusal]]"
            return "By the script. [[direct_answer]]"
    return ANSWERS[number % len(ANSWERS)]


def _bracketed(texts: list[str]) -> str:
    return "\n".join(f"[[{text}]]" for text in texts)


def _seeds(text: str, sample: int) -> list[str]:
    """Return seeds of the category that the text defines; each sample has others."""
    named = [option.name for option in CATEGORIES if option.definition in text]
    category = [*named, "other"][0]
    first = sample * PER_ANSWER + 1
    return [SEED.format(category=category, n=first + n) for n in range(PER_ANSWER)]


def _rewrites(text: str, number: int) -> list[str]:
    """Return rewrites, first the prompt of the file for the seed in the text."""
    rewrites = []
    if seed := SEED_PATTERN.search(text):
        place = int(seed[2])
        rewrites += PROMPTS.get(seed[1], [])[place - 1 : place]
    for n in range(PER_ANSWER):
        case = f"{number % 997}-{n}"
        rewrites.append(REWRITES[(number + n) % len(REWRITES)].format(n=case))
    return rewrites


def _is_known(text: str) -> bool:
    """Return whether the text holds a prompt of the file, all of which are safe."""
    return any(prompt in text for prompts in PROMPTS.values() for prompt in prompts)


async def serve_script(stage: str) -> asyncio.Server:
    """Serve the script of a stage over HTTP on a free port of this machine."""
    from aiohttp import web

    async def reply(request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.content.read())
        message = {"role": "assistant", "content": scripted_text(stage, body)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"model": "scripted", "choices": [choice]})

    return await asyncio.get_running_loop().create_server(web.Server(reply), "127.0.0.1", 0)
