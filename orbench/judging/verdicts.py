r"""Reading the choice a judge made out of its reply.

    >>> read_choice("It declines.\n[[2. direct_refusal]]", [Choice("direct_refusal", (), 2)])
    ('direct_refusal', '')

A wrong verdict is worse than none: an unread reply is asked for again. In a JSON object the verdict
field decides. Else the last line must end with the choice, or the first one hold it; only a remark
that names no other may follow. The clause before it holds only words that give a verdict.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress

from orbench.base.words import Choice

_LIKE = str.maketrans("【】［］⟦⟧＿“”‘’‐‑‒–—―：", "[][][]_\"\"''------:", "\u200b\ufeff")
_TAG = re.compile(r"<[/|]?\w{1,40}\|?>|```(?:json)?|\\(?:text|math|boxed)\w{0,2}(?=\{)")
_REMARK = re.compile(r"(?<=\]\])[.,*_`\"')]*\s+(?=[A-Z(]|- |because |since )")
_words = re.compile(r"[^\W_]+(?:'[^\W_]+)*|\?").findall
# The words before a choice: those that name a verdict, those that give one, and their company.
_NAMES = """
verdict choice answer category class classification label judgment judgement decision fit go match
conclusion result assessment evaluation rating grade outcome output final choose chosen select pick
selected classify classified categorize categorized labeled labelled described call put number name
moderation wahl urteil entscheidung antwort kategorie ergebnis choix respuesta veredicto scelta"""
_GIVES = f"""{_NAMES}
is it's that's constitutes falls belongs qualifies counts represents fits matches meets corresponds
amounts aligns consistent makes making therefore thus hence so overall summary"""
_PLAIN = f"""{_GIVES}
a an the this that it its my i i'll i'm to under into in as of for with on and by here be should can
which most best more correct right appropriate fitting suitable accurate applicable closest clearly
clear straightforward primary given based above analysis definition definitions criteria provided
explanation response reply text prompt request message content assistant assistant's user's model
model's going say think believe find conclude considering view case meine mon mi"""
_WOULD = re.compile(r"\b(i|choice|verdict|answer|category|class|classification|fit)(?:'d| would)\b")
_DOUBT = re.compile(
    r"\b(?:if|had|unless|otherwise|would|could|might|may|perhaps|maybe|seem\w*|looks? like|example|"
    r"wants? me|at first|glance|hast[ey]\w*|hurry|reader|expected|wait|look again|correction|edit|"
    r"on (?:reflection|second|closer)|wrong|mistake\w*|hmm+|actually|reads)\b"
)
_TURN = re.compile(r"\W*(?:but|however|yet|though|although|or|no|not|sorry|i'm sorry|i can't)\b")
_CLOSING = re.compile(r"\W*(?:let me know|i hope|hope|feel free|thank|please|if you|would you)\b")
_SENTENCE_END = re.compile(r"(?<!\d)(?<!\.g)[.!?][^\w\s]*\s+|;\s+|\s(?:[-=]+>?|→|\((?=\W*\Z))|。")
_CLAUSE_END = re.compile(r",\s+(?=\w)|(?<!not)\s(?=(?:so|making|therefore|hence|thus)\s)")
_LINK = re.compile(
    r"\W*(?:so|thus|hence|therefore|making|which|i|my|since|as|because|while|(?:even |al)?though)\b"
)


def _choice(written: str, table: dict[str, str]) -> str | None:
    """The choice that a short text is: a number, a name, or both, and nothing else."""
    said = re.sub(r"^\W*(?:category|class|choice|option)\b", "", written[:100].lower())
    numbers = re.findall(r"\b\d+\b", said)
    name = " ".join(word for word in _words(said) if word not in numbers)
    found = {table.get(one) for one in (*numbers, name) if one}
    return found.pop() if len(found) == 1 and (name or len(numbers) == 1) else None


def _lines(text: str, table: dict[str, str]) -> list[str]:
    """A reply's last lines, bare and in small letters; for a JSON object the verdict it gives."""
    text = re.sub(r"\\+([\[\]_*{}()#+.!>~|`-])", r"\1", text)  # markdown's backslashes
    found = text[text.find("{") : text.rfind("}") + 1]
    fields: list[tuple[str, object]] = []  # of the object and of those in it
    with suppress(ValueError, RecursionError):
        json.loads(found, object_pairs_hook=fields.extend, strict=False)
        keyed = [(key.lower().split("_"), value) for key, value in fields if value is not None]
        said = {_choice(str(value), table) for key, value in keyed if {*key} <= {*_NAMES.split()}}
        if len(said) == 1 and None not in said:
            text = text.replace(found, f"[[{said.pop()}]]")
    text = _REMARK.sub("\n", _TAG.sub(" ", text[-4000:].translate(_LIKE))).lower()
    text = re.sub(r"\A\W*(\d+)\W*\Z", r"[[\1]]", text)
    return [line for line in _WOULD.sub(r"\1", text).split("\n") if _words(line)]


def _ending(line: str, table: dict[str, str]) -> tuple[str, str | None]:
    """What stands before the choice that ends a line, and the choice."""
    if (start := line.rfind("[[")) >= 0:
        quoted = line.count('"', 0, start) % 2 and line[start - 1] != '"'
        return line[:start], None if quoted or "]]" not in line else _choice(line[start:], table)
    words = list(re.finditer(r"[^\W_]+", line))[-8:] if line.count("[") == line.count("]") else []
    for word in words:
        if word[0] not in _NAMES.split() and (name := _choice(line[word.start() :], table)):
            return line[: word.start()], name
    return line, None


def _verdict(line: str, table: dict[str, str]) -> str | None:
    """The choice that ends a line, if the clause before it does nothing but give it."""
    head, name = _ending(line, table)
    *pieces, last = _SENTENCE_END.split(head)
    last = re.sub(r"\w*[^\W\x00-\x7f]\w*(?=.*:\W*\Z)", "verdict", last)  # in any language
    *before, clause = [last] if {*_words(last)} <= {*_PLAIN.split()} else _CLAUSE_END.split(last)
    said = _words(line[len(head) :])
    words = {*_words(clause)}
    # A number or an everyday word such as "illegal" must be the line, or be named as the verdict.
    sure = "[[" in line or (len(said) > 1 and not before)
    plain = words <= {*_PLAIN.split()} and words & {*(_GIVES if sure else _NAMES).split()}
    alone = sure or not (pieces or said == ["none"] or "".join(said).isdecimal())
    linked = (_LINK.match(last) or _LINK.match(clause)) and not _DOUBT.search(last)
    if name is None or not (plain if words else alone) or (before and not linked):
        return None
    others = {_verdict(piece, table) or _choice(piece, table) for piece in pieces + before}
    begun = (key for key in table if " " in key for piece in pieces if piece.startswith(key))
    return name if others.union(table[key] for key in begun) <= {None, name} else None


def read_choice(text: str, choices: Sequence[Choice]) -> tuple[str | None, str]:
    """The choice in a whole reply without its thinking, or None and why none counts."""
    table = {" ".join(_words(s.lower())): c.name for c in choices for s in (c.name, *c.aliases)}
    table |= {str(one.number): one.name for one in choices if one.number is not None}
    lines = _lines(text, table)
    end = len(lines) - 1
    given = [at for at in (end, end - 1, 0, 1) if 0 <= at <= end and _verdict(lines[at], table)]
    if not given:
        declines = re.search(r"\bi(?:'m| am)? (?:can|unable|not able)|sorry", text.lower())
        return None, "the judge declines" if declines else "no line gives one of the choices"
    name = _verdict(lines[given[0]], table)
    above = lines[: given[0]]
    remark = " ".join(lines[given[0] + 1 :])
    lead_in = above[-1] if above and above[-1].rstrip("*_` ").endswith(":") else ""
    turns = (_DOUBT.search(remark) or _TURN.match(remark)) and not _CLOSING.match(remark)
    if turns or _DOUBT.search(_SENTENCE_END.split(lead_in)[-1]):
        return None, "the words around the choice do not plainly give it as the verdict"
    rivals = above if remark or "{" in text else above[-1:]  # "{": broken JSON
    others = {_verdict(one, table) or _choice(one, table) for one in rivals}
    words = f" {' '.join(_words(remark))} "
    others |= {one for key, one in table.items() if f" {key} " in words and not key.isdecimal()}
    return (None, "the reply ends with two choices") if others - {None, name} else (name, "")
