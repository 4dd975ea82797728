"""What a response says: its answer without the thinking, and the words of it made alike.

Every judge and every rule reads the answer (`answer_of`); the refusal rules read it folded: small
letters, straight quotes, short forms written out, the marks before the first word left out.
"""

import re
from functools import cache

HEAD = 2400  # characters in which the first word is looked for, behind marks that say nothing

_THINK_TAG = re.compile(
    r"<(/?)(?:think|thinking|thought|reasoning)>|◁(/?)think▷|\[(/?)THINK\]", re.IGNORECASE
)

# gpt-oss's channels, with their marks or with the marks lost: "analysisThe user ...assistantfinal"
_ANALYSIS = re.compile(r"\s*(?:<\|start\|>assistant)?(?:<\|channel\|>analysis|analysis(?=[A-Z]))")
_FINAL = re.compile(r"(?:assistant\s*final|<\|channel\|>final)(?:<\|message\|>)?")
_END_MARKS = ("<|return|>", "<|end|>")


def answer_of(text: str) -> tuple[str, bool]:
    """The answer without its thinking blocks, and False if the text ends inside the thinking.

    A text without thinking comes back as it is. A closing tag that was never opened ends a
    thinking that began with the text (the template had opened it). An opening tag that is never
    closed counts only where nothing but blanks stands before it: later on it is a word of the
    answer, as is a tag in backticks. What stands in gpt-oss's analysis channel is thinking too.
    """
    if _ANALYSIS.match(text):
        *_, answer = _FINAL.split(text)
        if answer == text:
            return "", False
        for mark in _END_MARKS:
            answer = answer.strip().removesuffix(mark)
        return answer.strip(), True
    if "<" not in text and "◁" not in text and "[" not in text:
        return text, True
    kept: list[str] = []  # pieces of the answer
    position, opened_at = 0, -1
    for tag in _THINK_TAG.finditer(text):
        start = tag.start()
        if start and text[start - 1] == "`":
            continue
        closing = bool(tag[1] or tag[2] or tag[3])
        if not closing and opened_at < 0:
            opened_at = start
        elif closing:
            if opened_at >= 0:
                kept.append(text[position:opened_at])
            else:
                kept.clear()
            position, opened_at = tag.end(), -1
    if opened_at < 0 and not position:
        return text, True
    if opened_at >= 0:
        before = ("".join(kept) + text[position:opened_at]).lstrip()
        if marks_end(before[:HEAD]) == len(before):
            return "", False
    return ("".join(kept) + text[position:]).strip(), True


_LIKE = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\uff07\u055a`", "'"),
    **dict.fromkeys('"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02()[]{}', " "),
    **dict.fromkeys("\u2013\u2014\u2015\u2212", " - "),
    **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\u3000\u2028\u2029\u0085\t\r", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f*_~", ""),
    "\u2026": "...",
}
_LIKE_ASCII = [(mark, like) for mark, like in _LIKE.items() if mark.isascii()]
_UNLIKE = re.compile("[" + re.escape("".join(_LIKE)) + "]")

# What stands before the first word and says nothing: all that is neither letter nor digit (blanks,
# markdown, quotes, emoji), template marks, role headers.
_MARK = re.compile(
    r"</?s>|<\|[^|<>]{0,40}\|>|<[be]os>|<(?:start|end)_of_turn>(?:model\b)?|<</?sys>>"
    r"|\[/?(?:inst|out|sys|bot|assistant|answer)\]"
    r"|(?:assistant|ai assistant|ai|model|response|answer|bot|output|chatgpt|gpt|claude|gemini|"
    r"llama)(?:\s*:|\s*\n|\s*(?=<\|)|$)"
    r"|(?-i:assistant(?=\s*[A-Z]))"
    r"|[\W_]+?(?=</?s>|<\||<[be]os>|<start|<end|<<|\[/?(?:inst|out|sys|bot|assistant|answer)\]|"
    r"[^\W_]|$)",
    re.IGNORECASE,
)
# Quotation marks that open, those of other languages with them, and all of them.
_OPENING = '"\u201c\u201e\u00ab\u300c\u300e'
_QUOTES = _OPENING + "\u201d\u00bb\u300d\u300f"
_OPENED_QUOTE = re.compile(f"[^{_QUOTES}\\n]{{1,300}}[{_QUOTES}]\\s*(?=\\S)")
# Marks that look alike at both ends open only before a word and close only behind one.
_QUOTE = re.compile(
    f'(?<!^)(?:(?<!\\w)["\u201c](?=\\S)|[\u201e\u00ab\u300c\u300e])[^{_QUOTES}\\n]{{1,300}}'
    '(?:(?<=\\S)["\u201d]|[\u201c\u00bb\u300d\u300f])'
)
ANY_QUOTE = re.compile(f"[{_OPENING}]")
SENTENCE = re.compile(r"[^.!?\n\u3002\uff01\uff1f\u061f]+[.!?\u3002\uff01\uff1f\u061f]*")


def marks_end(head: str) -> int:
    """Where the first word begins, behind all that says nothing."""
    position = 0
    while (found := _MARK.match(head, position)) and found.end() > position:
        position = found.end()
    return position


def unquoted(text: str, opened: bool) -> str:
    """Without what others say in it: the characters of a story, a phrase that is discussed."""
    quoted = '"' in text if text.isascii() else ANY_QUOTE.search(text)
    if not opened and not quoted:
        return text
    if opened and (found := _OPENED_QUOTE.match(text)):
        text = " " + text[found.end() :]
    return _QUOTE.sub("", text)


# Short forms, by what each of a group has in it, in the order they are written out: "short=long",
# with bars between them. The last group works on what the others have written.
_SHORT_FORMS: dict[str, str] = {
    "n't": "can't=cannot|won't=will not|shan't=shall not|ain't=am not|n't= not",
    "'s": "it's=it is|that's=that is|here's=here is|there's=there is|what's=what is",
    "'": "let's=let us|i'm=i am|'re = are |'ve = have |'ll = will |'d = would ",
    # "icannot" has lost its word break, as some small models do
    "": "can not=cannot|icannot=i cannot|i cant =i cannot |i dont =i do not |"
    "i have no personal =i do not have personal |i have no opinion=i do not have opinion",
}


def folded(text: str) -> str:
    """Small letters, straight quotes, short forms written out, emphasis marks gone."""
    text = text.lower()
    if text.isascii():
        for mark, like in _LIKE_ASCII:
            text = text.replace(mark, like)
    else:
        text = _UNLIKE.sub(lambda found: _LIKE[found[0]], text)
    while "  " in text:
        text = text.replace("  ", " ")
    for mark, forms in _short_forms():
        if mark in text:
            for short, long in forms:
                text = text.replace(short, long)
    return text


@cache
def _short_forms() -> list[tuple[str, list[list[str]]]]:
    """(what all of a group have in them, [short, long] of each)."""
    groups = _SHORT_FORMS.items()
    return [(mark, [one.split("=") for one in forms.split("|")]) for mark, forms in groups]
