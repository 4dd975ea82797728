"""API keys, which no file and no message may hold.

`masked` is the last step before anything is written, and so catches what nothing before it could
see: a key that a server sends in two parts, one in a flag, one in an address. Servers' texts are
masked when they arrive, too, see orbench.models.errors: there, a short key can be told from a word.
"""

import os
import re

LONG = 16  # characters; a text that a user wrote holds no key of this length by chance
NAMES = ("_API_KEY", "_TOKEN")  # how the variables end that hold a key
MASK = "[key]"
_keys: set[str] = set()


def keep_secret(key: str) -> str:
    """Return a key; from now on it is masked."""
    if len(key) >= LONG:
        _keys.add(key)
    return key


def keep_environment_secret() -> None:
    """Mask the keys in the environment."""
    for name, value in os.environ.items():
        if name.endswith(NAMES):
            keep_secret(value)


def masked(text: str) -> str:
    """Return a text without the keys, and without any half of one."""
    for key in _keys:
        quarter = len(key) // 4
        # Each half of a key holds one of these quarters whole.
        if any(key[at : at + quarter] in text for at in range(0, 4 * quarter, quarter)):
            text = _without(text, key)
    return text


def _without(text: str, key: str) -> str:
    """Return a text without a key and what it has in common with it, from half of it on.

    A half without a digit stays: it can be words, such as those of "sk-no-key-required".
    """
    text = text.replace(key, MASK)
    for size in range(len(key), len(key) // 2 - 1, -1):
        for start in range(len(key) - size + 1):
            part = key[start : start + size]
            if re.search(r"\d", part):
                text = text.replace(part, MASK)
    return text
