"""Items by what they have in common."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, both in the order in which they first occur."""
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
