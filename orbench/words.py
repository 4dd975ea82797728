"""Numbers in sentences."""


def counted(n: int, noun: str) -> str:
    """`1 row`, `2,000 rows`; noun: one whose plural ends in s."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
