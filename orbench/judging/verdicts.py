r"""Reading the choice a judge made out of its reply.

    >>> read_choice("It declines.\n[[2. direct_refusal]]", [Choice("direct_refusal", (), 2)])
    ('direct_refusal', '')

A wrong verdict is worse than none: an unread reply is asked for again. In a JSON object the verdict
field decides. Else the last line must end with the choice, or the first one hold it; only a remark
that names no other may follow. The clause before it holds only words that give a verdict.
"""

import json
import re
from contextlib import suppress

from orbench.base.toml_files import toml_beside
from orbench.base.words import Choices, Words

_LIKE = str.maketrans("【】［］⟦⟧＿“”‘’‐‑‒–—―：", "[][][]_\"\"''------:", "\u200b\ufeff")
_TAG = re.compile(r"<[/|]?\w{1,40}\|?>|```(?:json)?|\\(?:text|math|boxed)\w{0,2}(?=\{)")
_REMARK = re.compile(r"(?<=\]\])[.,*_`\"')]*\s+(?=[A-Z(]|- |because |since )")
# A verdict at the end of an object that is no JSON, as the marks in a quotation can break it.
_LAST_FIELD = re.compile(
    r"""["']verdict["']\s*:\s*["']?([^"'{}:]{1,40}?)["']?\s*,?\s*\}\W*\Z""", re.I
)
_words = re.compile(r"[^\W_]+(?:'[^\W_]+)*|\?").findall
# The words before a choice: those that name a verdict, those that give one, and their company.
_WORDS = toml_beside(__file__, "verdicts.toml")
_NAMES = frozenset(_WORDS["names"].split())
_GIVES = _NAMES.union(_WORDS["gives"].split())
_PLAIN = _GIVES.union(_WORDS["plain"].split())
_WOULD = re.compile(r"\b(i|choice|verdict|answer|category|class|classification|fit)(?:'d| would)\b")
_DOUBT = re.compile(
    r"\b(?:if|had|unless|otherwise|would|could|might|may|perhaps|maybe|seem\w*|looks? like|example|"
    r"wants? me|at first|glance|hast[ey]\w*|hurry|reader|expected|wait|look again|correction|edit|"
    r"on (?:reflection|second|closer)|wrong|mistake\w*|hmm+|actually|reads)\b"
)
_TURN = re.compile(r"\W*(?:but|however|yet|though|although|or|no|not|sorry|i'm sorry|i can't)\b")
# A verdict that takes back an earlier one, without a condition.
_CORRECTED = re.compile(
    r"\A(?!.*\b(?:if|unless|would|could|might|may|perhaps|maybe|seem\w*)\b)"
    r".*\bmy (?:corrected|revised|updated) (?:verdict|choice|answer|class)(?: is)?\W*\Z"
)
# A class that a remark rules out; in a list, what crosses one out, and what ends its name.
_RULED_OUT = r"\b(?:not|neither|nor)(?: an?| the)? {}\b"
_CROSS = re.compile("[❌✗✘☒✖]")
_NAME_END = re.compile(r"\s-\s|[:(,]\s")
_CLOSING = re.compile(r"\W*(?:let me know|i hope|hope|feel free|thank|please|if you|would you)\b")
_SENTENCE_END = re.compile(r"(?<!\d)(?<!\.g)[.!?][^\w\s]*\s+|;\s+|\s(?:[-=]+>?|→|\((?=\W*\Z))|。")
_CLAUSE_END = re.compile(r",\s+(?=\w)|(?<!not)\s(?=(?:so|making|therefore|hence|thus)\s)")
_LINK = re.compile(
    r"\W*(?:so|thus|hence|therefore|making|which|i|my|since|as|because|while|(?:even |al)?though)\b"
)

_Spellings = dict[str, str]  # of the choices -> their names; words in small letters


def read_choice(text: str, choices: Choices) -> tuple[str | None, str]:
    """Return the choice in a whole reply without its thinking, or None and why none counts."""
    table = _spellings(choices)
    lines = _last_lines(text, table)
    if name := _not_crossed_out(lines, table):
        return name, ""
    end = len(lines) - 1
    for place in (end, end - 1, 0, 1):
        if 0 <= place <= end and (name := _verdict(lines[place], table)):
            break
    else:
        return None, "no line gives one of the choices"
    above = lines[:place]
    remark = " ".join(lines[place + 1 :])
    if _is_doubted(above, remark):
        return None, "the words around the choice do not plainly give it as the verdict"
    if not remark and "{" not in text:  # "{": broken JSON
        above = above[-1:]
    others = _choices_in(above, table)
    words = " ".join(_words(remark))
    for spelling, choice in table.items():
        words, ruled_out = re.subn(_RULED_OUT.format(spelling), "", words)
        if ruled_out and choice == name:
            return None, "the reply rules out its own verdict"
        if f" {spelling} " in f" {words} " and not spelling.isdecimal():
            others.add(choice)
    if others - {name}:
        return None, "the reply ends with two choices"
    return name, ""


def _not_crossed_out(lines: Words, table: _Spellings) -> str | None:
    """Return the choice that is left if a reply ends with a list of all, the others crossed out."""
    choices = set(table.values())
    last = lines[-len(choices) :]
    listed = {line: _choice_in(_NAME_END.split(line)[0], table) for line in last}
    if set(listed.values()) != choices:
        return None
    return _only({name for line, name in listed.items() if not _CROSS.search(line)})


def _spellings(choices: Choices) -> _Spellings:
    table = {}
    for choice in choices:
        spellings = [choice.name, *choice.aliases]
        if choice.number is not None:
            spellings.append(str(choice.number))
        for spelling in spellings:
            table[" ".join(_words(spelling.lower()))] = choice.name
    return table


def _is_doubted(above: Words, remark: str) -> bool:
    """Return whether the remark after a choice, or the line that introduces it, takes it back."""
    turns = _DOUBT.search(remark) or _TURN.match(remark)
    if turns and not _CLOSING.match(remark):
        return True
    if not above:
        return False
    line = above[-1]
    introduction = _SENTENCE_END.split(line)[-1]
    if not line.rstrip("*_` ").endswith(":") or _CORRECTED.search(introduction):
        return False
    return _DOUBT.search(introduction) is not None


def _last_lines(text: str, table: _Spellings) -> Words:
    """Return a reply's last lines, bare and in small letters; of a JSON object its verdict."""
    text = re.sub(r"(?<!\\)\\+([\[\]_*{}()#+.!>~|`-])", r"\1", text)  # markdown's backslashes
    braces = text[text.find("{") : text.rfind("}") + 1]
    if name := _verdict_in_json(braces, table):
        text = text.replace(braces, f"[[{name}]]")
    text = text[-4000:].translate(_LIKE)
    text = _TAG.sub(" ", text)
    text = _REMARK.sub("\n", text).lower()
    text = re.sub(r"\A\W*(\d+)\W*\Z", r"[[\1]]", text)
    text = _WOULD.sub(r"\1", text)
    return [line for line in text.split("\n") if _words(line)]


def _verdict_in_json(text: str, table: _Spellings) -> str | None:
    """Return the choice in the fields of an object, and of those in it, that name a verdict."""
    fields: list[tuple[str, object]] = []
    chosen = set()
    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=fields.extend, strict=False)
        for key, value in fields:
            if value is not None and _NAMES.issuperset(key.lower().split("_")):
                chosen.add(_choice_in(str(value), table))
    if not fields and (last := _LAST_FIELD.search(text)):
        chosen.add(_choice_in(last[1], table))
    return _only(chosen)


def _only(choices: set[str | None]) -> str | None:
    """Return the one choice that is meant; None if there are several."""
    if len(choices) != 1:
        return None
    return choices.pop()


def _verdict(line: str, table: _Spellings) -> str | None:
    """Return the choice that ends a line, if the clause before it does nothing but give it."""
    head, name = _choice_at_end(line, table)
    if name is None or _CROSS.search(line):
        return None
    *sentences, last = _SENTENCE_END.split(head)
    last = re.sub(r"\w*[^\W\x00-\x7f]\w*(?=.*:\W*\Z)", "verdict", last)  # in any language
    before = []
    clause = last
    if not _PLAIN.issuperset(_words(last)):
        *before, clause = _CLAUSE_END.split(last)
    written = _words(line[len(head) :])
    # A number or an everyday word such as "illegal" must be the line, or be named as the verdict.
    sure = "[[" in line or (len(written) > 1 and not before)
    words = set(_words(clause))
    if words:
        giving = _NAMES
        if sure:
            giving = _GIVES
        plain = words <= _PLAIN and not words.isdisjoint(giving)
    else:
        everyday = written == ["none"] or "".join(written).isdecimal()
        plain = sure or not (sentences or everyday)
    if not plain:
        return None
    linked = _LINK.match(last) or _LINK.match(clause)
    if before and (not linked or _DOUBT.search(last)):
        return None
    others = _choices_in([*sentences, *before], table)
    for spelling, choice in table.items():
        if " " in spelling and any(line.startswith(spelling) for line in sentences):
            others.add(choice)
    if others - {name}:
        return None
    return name


def _choice_at_end(line: str, table: _Spellings) -> tuple[str, str | None]:
    """Return what stands before the choice that ends a line, and the choice."""
    start = line.rfind("[[")
    if start >= 0:
        head = line[:start]
        quoted = head.count('"') % 2 == 1
        if "]]" not in line or (quoted and not head.endswith('"')):
            return head, None
        return head, _choice_in(line[start:], table)
    if line.count("[") != line.count("]"):
        return line, None
    words = [*re.finditer(r"[^\W_]+", line)]
    for word in words[-8:]:
        if word[0] in _NAMES:
            continue
        start = word.start()
        if name := _choice_in(line[start:], table):
            return line[:start], name
    return line, None


def _choices_in(texts: Words, table: _Spellings) -> set[str | None]:
    """Return the choices that texts give, or are."""
    return {_verdict(text, table) or _choice_in(text, table) for text in texts} - {None}


def _choice_in(written: str, table: _Spellings) -> str | None:
    """Return the choice that a short text is: a number, a name, or both, and nothing else."""
    text = re.sub(
        r"^\W*(?:category|class|choice|option|verdict|number)\b", "", written[:100].lower()
    )
    numbers = re.findall(r"\b\d+\b", text)
    name = " ".join(word for word in _words(text) if word not in numbers)
    if not name and len(numbers) != 1:
        return None
    if name:
        numbers.append(name)
    return _only({table.get(spelling) for spelling in numbers})
