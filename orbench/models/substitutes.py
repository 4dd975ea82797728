"""Whether the model asked has answered, by the id that came back.

What tells models apart stands in substitutes.toml; two dates do, too, but not a date and none. All
else in an id is left aside: the prefixes of gateways, folders, revisions, quantizations, and
deployments that users name.
"""

import re
from functools import lru_cache

from orbench.base.toml_files import toml_beside
from orbench.base.words import Words
from orbench.refusals.api import FALLBACK

SERIES = toml_beside(__file__)["series"]
# 7b, 8x7b, 0.5b, 135m; not the active part of the parameters (a3b), nor 4bit.
SIZE = r"(?<![a-z\d.])(?:\d+x)?\d+(?:\.\d+)?b(?![a-z\d])|(?<!\d)\d{3}m(?![a-z\d])"
# 3.5, 3-5, v3p5, 35, 4o; 4.0 is 4. Dates have more digits.
VERSION = r"[vkmrx]?([1-9])(?:[-._:p]?([1-9]\d?))?(o?)(?![a-z\d]|\.[1-9])"
# 2024-08-06, 20240806, 0806 and 2408, in small parts. One year alone is none.
DATE = r"(?<![a-z\d.])(?:20\d\d-?)?(?!20)([0-2]\d)(?:(?<=20\d\d-\d\d)-)?([0-3]\d)(?![a-z\d])"
# A model that was trained to judge: in other ids of its series this finds "", which differs.
GUARD = r"^(?:.*(guard|shield|moderation|-cls\b)[^/]*$)?"


@lru_cache(maxsize=4096)  # asked for each row
def is_same_model(asked: str, returned: str) -> bool | None:
    """Return whether two ids differ in no series, version, tier, size or date; None if they do not
    tell.

    `gpt-4o-2024-08-06` is `gpt-4o`, `gpt-4o-mini` is not, and `my-deployment` may be. What the API
    declares as a fallback is another model, whatever its id.
    """
    if returned.startswith(FALLBACK):
        return False
    names = (asked.lower(), returned.lower())
    of_asked, of_returned = map(_series_in, names)
    shared = of_asked & of_returned
    if of_asked and of_returned and not shared:
        return False
    patterns = [SIZE]
    for series in shared:
        pattern, *words = SERIES[series]
        between = "|".join(words)
        patterns += [f"(?:{pattern})(?:[-_. :]|{between})*{VERSION}", GUARD, DATE, *words]
    if any(_differ(pattern, names) for pattern in patterns):
        return False
    return bool(shared) or asked == returned or None


def _series_in(name: str) -> set[str]:
    return {series for series in SERIES if re.search(SERIES[series][0], name)}


def _differ(pattern: str, names: Words) -> bool:
    """Return whether both of two names have what a pattern finds, but not the same."""
    found = [set(re.findall(pattern, name)) for name in names]
    return all(found) and found[0] != found[1]
