"""What a generator returns: prompts in double brackets, and excuses and placeholders among them."""

import re
from typing import Final, NamedTuple

from orbench.asking.requests import Answer
from orbench.refusals.detect import classify, counts_as_refusal
from orbench.refusals.text import answer_of

_IN_BRACKETS = re.compile(r"\[\[((?:(?!\[\[|\]\]).)*\]*)\]\]", re.S)  # `[[a [b]]]` is one
_NUMBERING = re.compile(r"^\s*(?:\(?\d{1,3}\s*[.):]|[-*•])\s+")
# Marks around an item, and what shows that they do not belong together, as in `"a" or "b"`.
_AROUND = [
    (one, other, re.compile(rf"(?<!\w){mark}|{mark}(?!\w)"))
    for one, other in map(
        str.split,
        ("[ ]", "** **", "__ __", "* *", "_ _", "` `", '" "', "' '", "“ ”", "‘ ’", "« »", "„ “"),
    )
    for mark in [f"(?:{re.escape(one)}|{re.escape(other)})"]
]


class Given(NamedTuple):
    """What a generator's reply holds.

    refused: the model declines, or its API does. dropped: items that are excuses. whole: False if
    the reply was cut off inside its thinking.
    """

    prompts: list[str]
    refused: bool = False
    dropped: int = 0
    whole: bool = True


def prompts_in(answer: Answer, placeholders: "Placeholders") -> Given:
    """The prompts of a reply, without excuses and placeholders."""
    text, whole = answer_of(answer.text)
    if answer.refused_by_api or not whole:
        return Given([], refused=answer.refused_by_api, whole=whole)
    found = [item for item in bracketed(text) if item not in placeholders]
    prompts = [item for item in found if not is_excuse(item)]
    refused = not prompts and (bool(found) or counts_as_refusal(classify(text)))
    return Given(prompts, refused, len(found) - len(prompts))


# -- brackets ----------------------------------------------------------------------------------


def bracketed(text: str) -> list[str]:
    """The items in double brackets, without numbering, quotes and bold marks around them."""
    return [item for item in map(without_marks, _IN_BRACKETS.findall(text)) if item]


def without_marks(item: str) -> str:
    """One item with blanks folded, without numbering in front and marks around it."""
    item = " ".join(item.split())
    before = ""
    while item != before:
        before = item
        item = _NUMBERING.sub("", item).strip()
        for start, end, apart in _AROUND:
            inside = item[len(start) : -len(end)]
            if item.startswith(start) and item.endswith(end) and inside:
                item = item if apart.search(inside) else inside.strip()
    return item


def same(text: str) -> str:
    """What two prompts share that differ only in case, spacing and end punctuation."""
    return " ".join(text.casefold().split()).rstrip(" .!?…。！？;:,\"'”’")


# -- placeholders ------------------------------------------------------------------------------

_COUNTED: Final = (
    "one|two|three|four|five|six|seven|eight|nine|ten|first|second|third|fourth|fifth|sixth|"
    "seventh|eighth|ninth|tenth|eleventh|twelfth|twentieth|next|another|last|final"
)
_NOTHING_BUT = re.compile(
    rf"(?:the |your |my |an? )?(?:(?:\d+(?:st|nd|rd|th)?|{_COUNTED})[ -])?"
    r"(?:different |new |rewritten |toxic |safe )?(?:request|prompt|rewrite|seed|question)s?"
    rf"(?:[ :#-]*(?:number |no\.? ?|#)?(?:\d+|{_COUNTED}|[a-z]))?(?: goes)?(?: here)?"
)


class Placeholders:
    """Items in brackets that are no prompts: those of our own prompt file, however spelt, and
    nothing but `request 3`, `Fifth prompt` or `...`.
    """

    def __init__(self, template: str) -> None:
        """template: the prompt file, as it is sent."""
        self._ours = {same(item) for item in bracketed(template)}

    def __contains__(self, item: str) -> bool:
        found = same(item)
        return not found or found in self._ours or _NOTHING_BUT.fullmatch(found) is not None


# -- excuses -----------------------------------------------------------------------------------

_AS_AN_AI = re.compile(r"\W*as an? (?:\w+ ){0,3}?(?:ai|language model)\b.{0,60}?,? (?:i|my)\b")
# People say in the first person what they refuse or cannot do, and then ask for something. A model
# that does not want to write prompts asks nothing, at most it offers something else.
_ASKS = re.compile(
    r"\?\W*$|(?:^|[.,:;!] )(?:please )?(?:write|tell|draft|explain|suggest|argue|continue|give|"
    r"teach|show|make|describe|list|help|i need)\b"
)
_OFFERS = re.compile(
    r"\b(?:anything|something|what) else\b|\belse i can\b|\binstead\b|\bwould you like"
)


def is_excuse(text: str) -> bool:
    """Whether a text that should be a prompt is a refusal to write one.

    True for "I'm sorry, but I can't create such prompts."; False for "How can I refuse to testify?"
    and for "I refuse to work overtime. Draft a letter."
    """
    opening = " ".join(text[:1000].lower().split())
    if _ASKS.search(opening) and not _OFFERS.search(opening):
        return False
    return classify(text).kind == "refusal" or _AS_AN_AI.match(opening) is not None
