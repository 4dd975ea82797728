"""What each of the five stages makes of a model's answers."""

import re
from collections import Counter
from typing import Any

import pytest

from orbench.stages.prompt_sets import stratified_sample
from tests.conftest import ALIGN, MODERATE, REWRITE, Desk, Done
from tests.server import KEY, Body, Server, error, prompt_of

# -- stage 2 -----------------------------------------------------------------------------------


def test_a_few_odd_seeds_do_not_keep_the_others_from_being_asked_again(desk: Desk) -> None:
    desk.csv("p.csv", ("prompt",), [(f"Take biscuit number {n}",) for n in range(60)])
    odd = {f"number {n}" for n in range(0, 60, 3)}

    def reply(body: Body, seen: int) -> str:
        found = re.search(r"number \d+", prompt_of(body))
        return "Hm." if found and found[0] in odd else "[[Who bakes?]]"

    desk.serve(reply)
    for _ in range(2):
        desk.stage(REWRITE, status=3)
        assert desk.sent == 40 + 3 * 20


# -- stage 3 with several judges ---------------------------------------------------------------


def panel(desk: Desk, n: int, *flags: str, judges: str = "gpt-a,gpt-b,gpt-c", **more: Any) -> Done:
    desk.prompts(n)
    return desk.stage(MODERATE, f"--moderator_model={judges}", *flags, **more)


# What a judge answers that is gone; None: it cannot be reached.
GONE = {"401": error(401, "bad key"), "404": error(404, "no such model"), "unreachable": None}


@pytest.mark.parametrize("name", GONE)
def test_the_other_judges_go_on_without_one_that_is_gone_and_it_is_asked_later(
    desk: Desk, name: str
) -> None:
    desk.serve("[[none]]")
    third = Server(GONE[name] or "")

    def moderate() -> list[str]:
        env = {"TOGETHER_API_KEY": KEY, "TOGETHER_BASE_URL": third.url}
        panel(desk, 4, "--max_retries=1", judges="gpt-a,gpt-b,together/c", env=env)
        return desk.cells("votes")

    with third:
        votes = moderate() if GONE[name] else []
    assert (votes or moderate()) == ["2"] * 4
    desk.server.requests.clear()
    with Server("[[none]]", port=third.port) as back:
        assert moderate() == ["3"] * 4
    assert (back.sent, desk.sent) == (4, 0)


# -- samples of the input ----------------------------------------------------------------------


def test_a_shuffled_sample_is_spread_over_the_categories_whatever_the_order_of_the_file(
    desk: Desk,
) -> None:
    rows = [(f"{name} {n}", name) for name, size in (("a", 40), ("b", 20)) for n in range(size)]

    def sample(*flags: str) -> list[str]:
        desk.stage(ALIGN, "--model=scripted", "--overwrite", "--shuffle=0", *flags)
        return desk.cells("prompt")

    desk.csv("p.csv", ("prompt", "category"), rows)
    few = sample("--limit=21")
    assert few == [prompt for prompt, _ in rows if prompt in few]  # in the file's order
    assert Counter(prompt[0] for prompt in few) == {"a": 14, "b": 7}
    assert set(few) < set(sample("--limit=30"))
    assert few != sample("--limit=21", "--shuffle=1")
    more = [(*row, "x") for row in rows[::-1]]  # nor any other column
    desk.csv("p.csv", ("prompt", "category", "note"), more)
    assert sample("--limit=21") == few[::-1]
    desk.csv("p.csv", ("text",), [(prompt,) for prompt, _ in rows])
    desk.serve("[[none]]")
    flags = ("--column=text", "--limit=21", "--shuffle=0", "--output_path=m.csv")
    desk.stage(MODERATE, *flags)
    assert len(desk.rows("m.csv")) == 21


def test_a_category_has_its_share_of_a_sample_however_small_it_is() -> None:
    rows = [{"prompt": f"Fold {n}?", "category": "b" if n == 3 else "a"} for n in range(10)]
    taken = [stratified_sample(rows, limit, 0) for limit in range(11)]
    of_b = [sum(row["category"] == "b" for row in rows) for rows in taken]
    assert (of_b[:5], of_b[6:]) == ([0] * 5, [1] * 5)
