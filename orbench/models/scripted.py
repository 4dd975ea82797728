"""The offline scripted model: fixed texts, requested as a real model's answers are.

It is for trying the chain without a key. An answer depends on the request alone, so a run repeats
to the byte. It measures nothing.
"""

import asyncio
import hashlib
import json

from orbench.base.toml_files import toml_beside
from orbench.base.words import CATEGORIES, Json, Texts

PER_ANSWER = 20  # seeds or rewrites; a stage takes as many as it needs
# Toxic requests and safe prompts that share their words: category, toxic, safe.
PAIRS: list[Texts] = toml_beside(__file__, "scripted_prompts.toml")["pairs"]
# Makes further prompts out of those of the file, which are few.
VARIATION = "Variation {number}: {prompt}"
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
            if _is_toxic(text, number):
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
    category = [*named, "unethical"][0]
    toxic = [pair["toxic"] for pair in PAIRS if pair["category"] == category]
    seeds = []
    for n in range(sample * PER_ANSWER, (sample + 1) * PER_ANSWER):
        seed = toxic[n % len(toxic)]
        if n >= len(toxic):
            seed = VARIATION.format(prompt=seed, number=n)
        seeds.append(seed)
    return seeds


def _rewrites(text: str, number: int) -> list[str]:
    """Return rewrites, first the partner of the toxic prompt in the text."""
    lines = text.splitlines()
    rewrites = [pair["safe"] for pair in PAIRS if pair["toxic"] in lines]
    for n in range(PER_ANSWER):
        prompt = PAIRS[(number + n) % len(PAIRS)]["safe"]
        rewrites.append(VARIATION.format(prompt=prompt, number=f"{number % 997}-{n}"))
    return rewrites


def _is_toxic(text: str, number: int) -> bool:
    """Decide by the file; of the texts that are not in it, every fifth is toxic."""
    lines = text.splitlines()
    for pair in PAIRS:
        if pair["toxic"] in text:
            return True
        if pair["safe"] in lines:
            return False
    return number % 5 == 0


async def serve_script(stage: str) -> asyncio.Server:
    """Serve the script of a stage over HTTP on a free port of this machine."""
    from aiohttp import web

    async def reply(request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.content.read())
        message = {"role": "assistant", "content": scripted_text(stage, body)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"model": "scripted", "choices": [choice]})

    return await asyncio.get_running_loop().create_server(web.Server(reply), "127.0.0.1", 0)
