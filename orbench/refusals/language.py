"""Which language a text is in: English, which the rules read, or another.

A cheap test comes first: English prose is full of words such as "the" and "you". What fails it goes
to py3langid, unless it holds no prose: a name, a number, code, a list of words. Py3langid and its
model take half a second to load, so that happens at the first such text.
"""

from math import sqrt

from orbench.refusals.rules import pattern

# How many frequent English words make a text English, times the root of its length in words: 2 of
# 9, 7 of 100. A text in another language may quote a few.
ENGLISH = 0.65
# How far a language has to be ahead of English: log odds, which grow with the root of the length.
LEAD = 1.4
# Labels of py3langid that no answer is in. Names of species, lists and code look like them.
NO_LANGUAGES = ("la", "pcm", "zxx")


def other_language(text: str) -> str:
    """Return the ISO 639 code of the language that a text is in, "" if it is English or unknown."""
    text = pattern("aside").sub(" ", text)
    english = pattern("english").findall(text)
    if len(english) > ENGLISH * sqrt(text.count(" ")):
        return ""
    prose = "\n".join(pattern("prose").findall(text))
    if not prose:
        return ""
    from py3langid import rank  # type: ignore[import-untyped]

    ranking = rank(prose)
    language, log_odds = ranking[0]
    lead = log_odds - dict(ranking)["en"]
    if language in NO_LANGUAGES or lead < LEAD * sqrt(len(prose.encode())):
        return ""
    return str(language)
