"""A response's answer without the thinking, and its words made alike for the rules."""

import re
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

# What the veto reads: words, and the characters in which they are looked for.
VETO_WORDS = 100
VETO_WINDOW = 1200
HEAD_CHARACTERS = 2400  # characters in which the first word is looked for

_TAG = (
    r"(?i)<(?<!`<){0}(?:think(?:ing)?|thought|reasoning)>"
    r"|◁(?<!`◁){0}think▷|\[(?<!`\[){0}THINK\]"
)
_OPENS = re.compile(_TAG.format(""))
_CLOSES = re.compile(_TAG.format("/"))
# gpt-oss's channels, also with their marks lost: "analysisThe user ...assistantfinal"
_ANALYSIS = re.compile(r"\s*(?:<\|start\|>assistant)?(?:<\|channel\|>analysis|analysis(?=[A-Z]))")
_FINAL = re.compile(r"(?:assistant\s*final|<\|channel\|>final)(?:<\|message\|>)?")

# What stands before the first word and says nothing: all that is neither letter nor digit
# (blanks, markdown, quotes, emoji), marks of chat templates, role headers.
_TEMPLATE = (
    r"</?s>|<\|[^|<>]{0,40}\|>|<[be]os>|<(?:start|end)_of_turn>(?:model\b)?|<</?sys>>"
    r"|\[/?(?:inst|out|sys|bot|assistant|answer)\]"
)
_MARK = (
    rf"{_TEMPLATE}|(?:(?:ai )?assistant|ai|model|response|answer|bot|output)"
    r"(?:\s*:|\s*\n|\s*(?=<\|)|$)|(?-i:assistant(?=\s*[A-Z]))"
    rf"|[\W_]+?(?={_TEMPLATE}|[^\W_]|$)"
)
# What others say: the characters of a story, a phrase under discussion. The mark comes before the
# look behind it: the search for one character is fast. A value in JSON is no quote.
_QUOTE = re.compile(r'["“](?<!^.)(?<!\w.)(?<!": .)(?<!":.)(?=\S)[^"“”\n]{1,300}(?<=\S)["”]')
# Lines of a dialogue begin with a name. A model that goes on as "User" and "Bot" speaks itself.
_LINE = (
    r"[*_]*(?!AI|Answer|Assistant|Bot|Chat|Claude|Gemini|Human|Model|Response|System|User"
    r"|(?:A|I|Me|Q|We|You)\b)"
    r"([A-Z][\w' ]{0,20})[*_]*:[*_]* .*"
)
# At the beginning, without its first mark: "I cannot," said Sue. Elsewhere: speakers of whom the
# first one speaks again; labels such as "Reason" stand there once. Both behind a line break, as the
# search for one character is fast.
_SPEECH = re.compile(
    r"""\n(?<=\A\n)[^"“”\n]{1,300}?(?:[,!?…]["”'’] ?(?=[a-z])|,["”'’] (?=[A-Z])"""
    r"""|[.!?…]["”] (?=(?:He|She|His|Her)\b)|[,.!?…]["”]\s+(?=["“][^"“”\n]{1,300}["”] ?[a-z]))"""
    rf"|\n+{_LINE}(?:\n+(?![*_]*\1){_LINE})+?\n+[*_]*\1[*_]*:.*(?:\n+{_LINE})*"
)
SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


@lru_cache  # stage 4 needs it, and so do the rules right after that
def answer_of(text: str) -> tuple[str, bool]:
    """Return the answer without its thinking, and False if the text ends inside the thinking.

    A closing tag that was never opened ends a thinking that the chat template opened. An opening
    tag that is never closed counts only at the beginning, a tag in backticks never.
    """
    if _ANALYSIS.match(text):
        *thinking, answer = _FINAL.split(text)
        if not thinking:
            return "", False
        for mark in ("<|return|>", "<|end|>"):
            answer = answer.strip().removesuffix(mark)
        return answer.strip(), True
    answer = ""
    *closed, rest = _CLOSES.split(text)
    for piece in closed:
        before, *thinking = _OPENS.split(piece, maxsplit=1)
        answer = answer + before if thinking else ""
    before, *thinking = _OPENS.split(answer + rest, maxsplit=1)
    if thinking and not from_first_word(before):
        return "", False
    if closed:
        text = (answer + rest).strip()
    return text, True


def from_first_word(text: str) -> str:
    """Return the text without the marks in front of its first word."""
    text = text.lstrip()
    position = 0
    marks = re.compile(_MARK, re.IGNORECASE)  # at first use: the import stays fast
    while (mark := marks.match(text, position, HEAD_CHARACTERS)) and mark.end() > position:
        position = mark.end()
    return text[position:]


def unquoted(text: str) -> str:
    """Return the text without speech in a story and quotes of up to 300 characters.

    A quote that it begins with stays, unless somebody "said" it.
    """
    return _QUOTE.sub("", _SPEECH.sub("\n...", f"\n{text}")[1:])


_LIKE = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\uff07\u055a`", "'"),
    **dict.fromkeys('"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02()[]{}', " "),
    **dict.fromkeys("\u2013\u2014\u2015\u2212", " - "),
    **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\u3000\u2028\u2029\u0085\t\r", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f*_~", None),
    "\u2026": "...",
}
_LIKE_TABLE = str.maketrans(_LIKE)
# short=long, in the order of replacement
_SHORT_FORMS = (
    "can't=cannot|won't=will not|shan't=shall not|ain't=am not|n't= not|it's=it is|that's=that is|"
    "here's=here is|there's=there is|what's=what is|let's=let us|i'm=i am|'re= are|'ve= have|"
    "'ll= will|'d= would|can not=cannot|icannot=i cannot|i have no =i do not have "
)
_PAIRS = [form.split("=") for form in _SHORT_FORMS.split("|")]


def folded(text: str) -> str:
    """Return the text in small letters, with straight quotes, single blanks and long forms."""
    text = text.lower().translate(_LIKE_TABLE)
    text = re.sub("  +", " ", text)
    for short, long in _PAIRS:
        text = text.replace(short, long)
    return text


def word_grams(answer: str) -> set[str]:
    """Return the words and pairs of words at the beginning of an answer, for the veto."""
    words = re.findall("[a-z]+", folded(answer[:VETO_WINDOW]))[:VETO_WORDS]
    return {*words, *map(" ".join, pairwise(words))}


@cache
def veto_weights() -> dict[str, float]:
    """Return the veto's weight of each n-gram; "" has the intercept."""
    file = Path(__file__).with_name("refusal_weights.tsv")
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    weights = {}
    for line in lines:
        gram, hundredths = line.split("\t")
        weights[gram] = int(hundredths) / 100
    return weights
