"""The offline scripted model: harmless fixed texts, requested as a real model's answers are.

It is for trying the chain without a key. An answer depends on the request alone, so a run repeats
to the byte. It measures nothing.
"""

import asyncio
import hashlib
import json
import re
import tomllib
from functools import cache
from itertools import cycle, islice
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


def scripted_text(stage: str, body: dict[str, Any]) -> str:
    """The text for a stage's request. It does not depend on the wording of the prompt file."""
    text = body["messages"][-1]["content"]
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    match stage:
        case "toxic_prompt_generator":
            category = next((one.name for one in CATEGORIES if one.definition in text), "other")
            start = body["sample"] * PER_ANSWER + 1
            numbers = range(start, start + PER_ANSWER)
            return "\n".join(f"[[{SEED.format(category=category, n=n)}]]" for n in numbers)
        case "rewritter":
            texts = islice(cycle(REWRITES), number % 3, number % 3 + PER_ANSWER)
            rewrites = [one.format(n=f"{number % 997}-{n}") for n, one in enumerate(texts)]
            if seed := SEED_PATTERN.search(text):
                at = int(seed[2]) - 1
                rewrites[:0] = scripted_prompts().get(seed[1], [])[at : at + 1]
            return "\n".join(f"[[{rewrite}]]" for rewrite in rewrites)
        case "moderator":
            known = any(prompt in text for ones in scripted_prompts().values() for prompt in ones)
            toxic = bool(SEED_PATTERN.search(text)) or (number % 5 == 0 and not known)
            return f"By the script. [[{'unethical' if toxic else 'none of the above'}]]"
        case "response_checker":
            refused = "I can't help with" in text or "I cannot assist" in text
            return f"By the script. [[{'direct_refusal' if refused else 'direct_answer'}]]"
    return ANSWERS[number % len(ANSWERS)]


@cache
def scripted_prompts() -> dict[str, list[str]]:
    """Category -> safe prompts that look toxic, from scripted_prompts.toml."""
    path = Path(__file__).with_name("scripted_prompts.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


async def serve_script(stage: str) -> asyncio.Server:
    """Serve the script of a stage over HTTP on a free port of this machine."""
    from aiohttp import web

    async def reply(request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.content.read())
        message = {"role": "assistant", "content": scripted_text(stage, body)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"model": "scripted", "choices": [choice]})

    return await asyncio.get_running_loop().create_server(web.Server(reply), "127.0.0.1", 0)
