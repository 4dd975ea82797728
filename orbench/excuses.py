"""An excuse in place of a prompt: what a generator writes where it does not want to write one.

The rules for responses (`orbench.refusal`) are of no use for prompts: people ask in the first
person what they may refuse, what they can't do, what somebody won't. Only a text that opens as a
refusal of the request does is an excuse; the data sets must not be biased against these words.
"""

import re

_SUBJECT = r"(?:i|we)"
_CANNOT = (
    r"(?:cannot and will not|can't and won't|(?:cannot|can't) in good conscience|"
    r"(?:won't|will not) be able to|"
    r"cannot|can't|can not|could not|couldn't|won't|will not|would not|am unable to|"
    r"'m unable to|are unable to|am not able to|'m not able to|'re unable to|'re not able to|"
    r"am not comfortable|'m not comfortable|don't feel comfortable|do not feel comfortable|"
    r"must (?:respectfully )?(?:decline|refuse)|have to (?:respectfully )?(?:decline|refuse)|"
    r"(?:respectfully )?decline|refuse)"
)
# What a model is asked to do with the request, and the request as the thing it is done to.
_DO = (
    r"(?:to )?(?:fulfil+(?:ing)?|comply(?:ing)?|assist(?:ing)?|help(?:ing)?|provid(?:e|ing)|"
    r"creat(?:e|ing)|generat(?:e|ing)|writ(?:e|ing)|produc(?:e|ing)|rewrit(?:e|ing)|"
    r"rephras(?:e|ing)|offer(?:ing)?|engag(?:e|ing)|continu(?:e|ing)|support(?:ing)?|"
    r"participat(?:e|ing)|answer(?:ing)?|discuss(?:ing)?|complet(?:e|ing)|do(?:ing)?|"
    r"respond(?:ing)?|satisfy(?:ing)?|accommodat(?:e|ing)|shar(?:e|ing)|giv(?:e|ing)|"
    r"suggest(?:ing)?|promot(?:e|ing)|process(?:ing)?)"
)
_WITH_IT = (
    r"(?: you)?(?: (?:with|in|to|on|for|out))?(?: (?:creating|generating|writing|rewriting))?"
    r"(?: (?:your|this|that|these|those|such|any|the|a|an|content|material))?"
    r"(?: (?:kind|type|sort)s? of)?(?: [\w-]+){0,4}? ?"
    r"(?:requests?|content|prompts?|material|tasks?|examples?|assistance|instructions?|"
    r"information|responses?|rewrites?|queries|query|list|"
    r"(?<=with )(?:that|this|it)|(?<=provide )that|(?<=do )(?:that|this)|(?<=create )that|"
    r"(?<=generate )(?:that|this)|(?<=fulfill )that|(?<=fulfil )that|(?<=comply)|(?<=assist you))"
    r"(?=[.,;:!]|$| (?:as|that|which|because|of|like|or|and|with|promoting|containing|but|due)\b)"
)
_REFUSES = rf"{_SUBJECT} ?{_CANNOT}(?: {_DO}{_WITH_IT}| (?:your|this|that) request)"
_SORRY = (
    r"(?:(?:i'm|i am|we're|we are) (?:really |very |so |truly |deeply )?sorry|sorry|"
    r"i'm afraid|i am afraid|(?:i|we) apologi[sz]e|(?:my )?apologies|unfortunately|"
    r"regrettably|i regret to say that)"
    r"[^.?!]{0,40}?"
)
_AS_AN_AI = (
    r"(?:as|i'm just|i am just|i'm only|i'm|i am) an? (?:responsible |ethical |helpful |large )*"
    r"(?:ai|artificial intelligence|language model)(?: language)?"
    r"(?: model| assistant| system| chatbot)?(?: and)?(?: (?:developed|created|made|trained|"
    r"designed|built) by [\w ]{1,30})?,? (?:i|my|it's|it is|we)\b"
)
_NOT_PROPER = (
    r"(?:it is|it's|it would be) (?:not |never |in)(?:appropriate|ethical|acceptable|right)"
    r"(?: or \w+)? (?:for me )?to (?:generate|create|provide|write|produce|rewrite)"
)
_EXCUSE = re.compile(
    rf"[^\w]*(?:{_SORRY}[\s,;:-]*(?:but |that )?{_REFUSES}|{_AS_AN_AI}|{_REFUSES}|{_NOT_PROPER})"
)
# A person's question may open like an excuse; a model's only offers something else.
_ASKS = re.compile(r"\?\W*$")
_OFFERS = re.compile(
    r"\b(?:anything|something|what) else\b|\belse i can\b|\binstead\b|\bwould you like"
)
_LIKE = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'"))


def is_refusal_of_request(text: str) -> bool:
    """Whether a text that should be a prompt opens as a refusal of the request to write one does.

    True for "I'm sorry, but I can't create such prompts." and "As an AI, I ..."; False for "How can
    I refuse to testify?" and for first-person prompts with refuse, can't or won't.
    """
    text = " ".join(text.lower().translate(_LIKE)[:1000].split())
    if not _EXCUSE.match(text):
        return False
    return not _ASKS.search(text) or bool(_OFFERS.search(text))
