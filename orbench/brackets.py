"""Reading `[[...]]` lists out of a model's text.

Models are asked to put what counts in double brackets, so that all the rest (explanations,
numbering, excuses) can be told apart from it.
"""

import re
from collections.abc import Iterator
from typing import Final

_NUMBERING = re.compile(r"^\s*(?:\(?\d{1,3}\s*[.):]|[-*•])\s+")
_PAIRS = ("** **", "__ __", "* *", "_ _", "` `", '" "', "' '", "“ ”", "‘ ’", "« »", "„ “")


def _around(pair: str) -> tuple[str, str, re.Pattern[str]]:
    """A pair of marks, and what shows that they do not belong together: `"a" or "b"`."""
    start, end = pair.split()
    mark = f"(?:{re.escape(start)}|{re.escape(end)})"
    return start, end, re.compile(rf"(?<!\w){mark}|{mark}(?!\w)")


_AROUND = tuple(map(_around, _PAIRS))
_ROUNDS = 4  # so many marks around one another are taken off: 2. **"a"**


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the bracketed items stand, brackets included, first to last; never overlapping.

    `[[a]] [[b]]` are two, `[[a [b]]]` and `[[[a] b]]` are one each. Plain searches: the time grows
    with the text, not faster.
    """
    at = 0
    while (start := text.find("[[", at)) >= 0 and (end := text.find("]]", start + 2)) >= 0:
        start = text.rfind("[[", start, end)
        unclosed = text.count("[", start + 2, end) - text.count("]", start + 2, end)
        end += 2
        while unclosed > 0 and text[end : end + 1] == "]":
            end, unclosed = end + 1, unclosed - 1
        while unclosed < 0 and start > at and text[start - 1] == "[":
            start, unclosed = start - 1, unclosed + 1
        yield start, end
        at = end


def items(text: str) -> list[str]:
    """The bracketed items of a text in order, without numbering, quotes and bold marks around
    them.
    """
    found = (without_marks(text[start + 2 : end - 2]) for start, end in spans(text))
    return [item for item in found if item]


def without_marks(item: str) -> str:
    """One item: blanks folded, numbering in front and quotes or bold marks around it taken off."""
    item = " ".join(item.split())
    for _ in range(_ROUNDS):
        item = _NUMBERING.sub("", item).strip()
        for start, end, apart in _AROUND:
            if item.startswith(start) and item.endswith(end):
                inside = item[len(start) : -len(end)]
                if inside and not apart.search(inside):
                    item = inside.strip()
    return item


def same(text: str) -> str:
    """What two prompts have in common that differ only in case, spacing and end punctuation."""
    return " ".join(text.casefold().split()).rstrip(" .!?…。！？;:,\"'”’")


_NUMBERS: Final = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_ORDINALS: Final = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth", "next", "another", "last", "final"),
)
_NOTHING_BUT = re.compile(
    r"(?:the |your |my |an? )?"
    rf"(?:(?:\d+(?:st|nd|rd|th)?|{'|'.join(_ORDINALS)})[ -])?"
    r"(?:different |new |rewritten |toxic |safe )?"
    r"(?:request|prompt|rewrite|seed|question)s?"
    rf"(?:[ :#-]*(?:number |no\.? ?|#)?(?:\d+|{'|'.join(_NUMBERS)}|[a-z]))?(?: goes)?(?: here)?"
)


class Placeholders:
    """What stands in brackets in a reply and is no prompt: an item of our own prompt file, however
    it is spelt, or nothing but `request 3`, `Fifth prompt`, `...`.
    """

    def __init__(self, template: str) -> None:
        """template: the prompt file, as it is sent."""
        self._ours = {same(item) for item in items(template)}

    def __contains__(self, item: object) -> bool:
        found = same(str(item))
        return not found or found in self._ours or _NOTHING_BUT.fullmatch(found) is not None
