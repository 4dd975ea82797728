"""What a generator returns: prompts in double brackets; excuses and copies among them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from orbench.base.messages import counted
from orbench.base.prompts import same
from orbench.base.words import Words
from orbench.models.requests import Answer, Missing
from orbench.refusals.detect import classify, counts_as_refusal
from orbench.refusals.text import answer_of
from orbench.stages.stage import Closing, Result, Results

_IN_BRACKETS = re.compile(r"\[\[((?:(?!\[\[|\]\]).)*\]*)\]\]", re.S)  # `[[a [b]]]` is one
_NUMBERING = re.compile(r"^\s*(?:\(?\d{1,3}\s*[.):]|[-*•])\s+")
# Marks around an item.
_AROUND = ("[ ]", "** **", "__ __", "* *", "_ _", "` `", '" "', "' '", "“ ”", "‘ ’", "« »", "„ “")


class Generated(NamedTuple):
    """What a generator's reply holds."""

    prompts: Words
    refused: bool = False  # by the model or its API
    dropped: int = 0  # excuses
    copies: int = 0  # of what was sent
    whole: bool = True  # False: cut off inside its thinking


def prompts_in(answer: Answer, sent: str) -> Generated:
    """Return the prompts of a reply to the text `sent`, without excuses and copies."""
    text, whole = answer_of(answer.text)
    if answer.refused_by_api or not whole:
        return Generated([], refused=answer.refused_by_api, whole=whole)
    items = list(filter(None, map(without_marks, _IN_BRACKETS.findall(text))))
    lines = [_words(line) for line in _LINES.split(sent)]
    own = [item for item in items if not _is_copy(_words(item), lines)]
    prompts = [item for item in own if not is_excuse(item)]
    refused = not prompts and (bool(own) or counts_as_refusal(classify(text)))
    return Generated(prompts, refused, len(own) - len(prompts), len(items) - len(own))


def only_new(results: Results, wanted: float = inf) -> Results:
    """Yield results without the prompts that equal their seed or an earlier prompt.

    wanted: new prompts, after which all others are left out too.
    """
    seen: set[str] = set()
    for result in results:
        if isinstance(result.rows, Missing):
            yield result
            continue
        new = []
        for row in result.rows:
            prompt = same(row["prompt"])
            known = prompt in seen or prompt == same(row.get("toxic_seed", ""))
            if not known and len(seen) < wanted:
                seen.add(prompt)
                new.append(row)
        yield result._replace(rows=new)


# Name of a count -> a noun, and what became of them.
DROPPED = {
    "dropped": ("refusal", "dropped from the prompts"),
    "copies": ("copied prompt", "dropped (of the examples or the seed)"),
}


class Replies(Closing):
    """What came back beside new prompts."""

    def __init__(self, **others: tuple[str, str]) -> None:
        """others: entries as in DROPPED, of what else is said."""
        self.counts = Counter[str]()
        self.words = DROPPED | others

    def add(self, result: Result) -> None:
        """Count excuses and copies, refusals, failed requests, and rows with nothing new."""
        self.counts["idle"] += result.rows == []
        for reply in result.readings:
            if isinstance(reply, Missing):
                self.counts["failed"] += 1
                continue
            self.counts.update(refused=reply.refused, dropped=reply.dropped, copies=reply.copies)

    def lines(self) -> Iterable[str]:
        for name, (noun, became) in self.words.items():
            if n := self.counts[name]:
                yield f"{counted(n, noun)} {became}"


def without_marks(item: str) -> str:
    """Return one item with blanks folded, without numbering in front and marks around it."""
    item = " ".join(item.split())
    before = ""
    while item != before:
        before = item
        item = _NUMBERING.sub("", item).strip()
        for start, end in map(str.split, _AROUND):
            inside = item[len(start) : -len(end)]
            mark = f"(?:{re.escape(start)}|{re.escape(end)})"
            apart = rf"(?<!\w){mark}|{mark}(?!\w)"  # as in `"a" or "b"`
            around = item.startswith(start) and item.endswith(end)
            if around and inside and not re.search(apart, inside):
                item = inside.strip()
    return item


NEARLY = 0.8  # Jaccard index of a copy
_LINES = re.compile(r"\n+(?:\w+: *)?|\[\[|\]\]")  # without a label such as `Seed:`
_PLACEHOLDER = re.compile(
    r"\d*(?:st|nd|rd|th|[a-z])?|one|two|three|four|five|six|seven|eight|nine|ten|first|second|third|"
    r"(?:four|fif|six|seven|eigh|nin|ten)th|next|another|last|final|the|your|"
    r"my|an|no|number|different|new|rewritten|toxic|safe|example|sample|placeholder|goes|here|"
    r"(?:request|prompt|rewrite|seed|question|response|answer|text)s?"
)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold()))


def _is_copy(words: set[str], lines: Sequence[set[str]]) -> bool:
    """Tell whether these words are a placeholder's (`request 3`) or nearly those of a line sent."""
    nearly = any(len(words & line) >= NEARLY * len(words | line) for line in lines)
    return nearly or all(map(_PLACEHOLDER.fullmatch, words))


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
    """Tell whether a text that should be a prompt is a refusal to write one.

    False for "How can I refuse to testify?" and "I refuse to work overtime. Draft a letter."
    """
    opening = " ".join(text[:1000].lower().split())
    if _ASKS.search(opening) and not _OFFERS.search(opening):
        return False
    return classify(text).kind == "refusal" or _AS_AN_AI.match(opening) is not None
