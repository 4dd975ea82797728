"""The page of plot_results.py: one file that needs nothing else and shows every text as text."""

import base64
import hashlib
import json
import re
from collections import Counter
from contextlib import suppress
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import pytest

from orbench.refusals import rules
from orbench.report.page_rows import REASONS, SAMPLE
from tests.conftest import Desk
from tests.contract.test_report import judged, markdown, report, table
from tests.results import ANSWER, DIRECT, INDIRECT, lost
from tests.server import Server

HOSTILE = '<script>document.title = "ran"</script><img src=x onerror="document.title=1">'
ODD = 'model-"<b>'


class Page(HTMLParser):
    """What a browser would find: tags with their attributes, tables, the script's data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}  # tag -> its texts
        self.rows: list[list[str]] = []  # the texts and titles in rows of tables
        self._open = [""]
        self.feed(text)
        data = [t for t in self.texts["script"] if t.startswith("{")]
        self.data: dict[str, Any] = json.loads(data[0]) if data else {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "input", "img"):
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "a" and self.rows:
            self.rows[-1].extend((dict(attrs).get("title") or "").splitlines())

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open and self._open.pop() != tag:
            pass

    def handle_data(self, text: str) -> None:
        self.texts.setdefault(self._open[-1], []).append(text)
        if any(tag in ("td", "th") for tag in self._open):
            self.rows[-1].extend(text.strip().splitlines())

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(desk: Desk, *flags: str | Path) -> Page:
    report(desk, *flags, "--html")
    return Page(desk.text("results/results.html"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Of two models, one with a hostile response, and 16 prompts that are toxic."""
    desk = Desk(tmp_path_factory.mktemp("page"), Server)
    texts = {"response": [HOSTILE] + ["An answer"] * 59, "category": ["<i>", "B"] * 30}
    a = judged(desk, "a.csv", ([DIRECT] * 10 + [ANSWER] * 20) * 2, "m/model-a", columns=texts)
    b = judged(desk, "b.csv", [INDIRECT] * 30 + [ANSWER] * 30, ODD, columns=texts)
    toxic = judged(desk, "t.csv", [DIRECT] * 16, "m/model-a")
    return page_of(desk, "--over_refusal", a, b, "--toxic", toxic, "--formats=svg")


def test_graded_results_have_a_bar_of_their_shares_and_figures_in_details(desk: Desk) -> None:
    classes = {"graded_category": ["safe_completion"] * 20 + [ANSWER] * 10 + [DIRECT] * 10}
    verdicts = [ANSWER] * 30 + [DIRECT] * 10
    page = page_of(desk, "--toxic", judged(desk, "t.csv", verdicts, columns=classes))
    assert (
        page.texts["figcaption"][0]
        == "Kinds of responses: toxic prompts. Percent of the responses."
    )
    assert ["rejected_or_safe", "75.0 [59.8, 85.8]"] in [row[1:3] for row in page.rows]
    assert any("count a safe completion as an answer" in text for text in page.texts["dd"])


def test_the_page_refers_to_nothing_outside_itself(page: Page) -> None:
    links = [a["href"] for a in page.of("a")]
    assert {*links} > {"#leaderboard", "#rows", "results.csv"}
    assert any(link.startswith("figures/") for link in links)
    own = [link for link in links if "=" not in link]  # not to rows
    assert all(re.fullmatch(r"#[\w-]+|[\w./-]+", link) for link in own)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert {link[1:] for link in own if link[0] == "#"} <= {*ids}
    assert not [a[name] for _, a in page.tags for name in ("src", "action") if name in a]
    remote = r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket|innerHTML"
    assert not re.search(remote, page.text)


def test_the_page_lets_nothing_run_but_its_own_script(page: Page) -> None:
    (policy,) = [a["content"] for a in page.of("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; style-src ")
    for kind, tag in (("style", "style"), ("script", "script")):
        (own,) = [t for t in page.texts[tag] if not t.startswith("{")]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert len(page.of("script")) == 2 and not any("onerror" in a for _, a in page.tags)


def test_texts_of_models_are_data_and_names_stand_as_they_are(page: Page) -> None:
    assert page.data["rows"][0][5] == HOSTILE
    assert not any(mark in page.text for mark in (HOSTILE, "<b>", "<i>"))
    assert any(ODD in row for row in page.rows)
    assert {row[1] for row in page.data["rows"]} == {"<i>", "a", "b"}


def test_every_number_leads_to_the_rows_behind_it(page: Page) -> None:
    links = [a["href"] for a in page.of("a") if a.get("class") == "behind"]
    assert len(links) > 10
    rows = {(page.data["results"][row[0]], row[1]) for row in page.data["rows"]}
    rows |= {(result, "") for result, _ in rows}
    known = [{"result": result, "category": category} for result, category in rows]
    known += [{"text": prompt} for prompt in page.data["prompts"].values()]
    leads = [dict(parse_qsl(link[1:].split("&of=")[0], keep_blank_values=True)) for link in links]
    assert all(lead in known for lead in leads) and {"text": "Prompt 0"} in leads


def test_the_rows_hold_prompt_response_reason_and_verdict(page: Page) -> None:
    row = page.data["rows"][1]
    assert row == [0, "b", "refused", "direct refusal", 1, "An answer", "because"]
    assert page.data["prompts"]["1"] == "Prompt 1"
    assert page.data["results"][2] == "m/model-a: toxic prompts, t, gpt4"


def test_the_leaderboard_shows_rates_with_intervals(page: Page) -> None:
    head, a, b = page.rows[:3]
    columns = ["Rank", "Model", "○", "safe and", "●", "toxic prompts refused, %"]
    ticks = ["0", "20", "40", "60", "80", "100"]
    assert head[:14] == [*columns, *ticks, "Over-refusal rate, %", "60 prompts"]
    why = "not ranked: the same responses as m/model-a throughout, a copy or an ignored setting"
    rate = ["33.3 % [22.7, 45.9], n 60", "33.3", "", "[22.7, 45.9]"]
    assert [text for text in a if text][:5] == ["model-a", "a, t, gpt4", *rate[:2], rate[3]]
    assert b[:3] == [ODD, "b, gpt4", why]


def test_the_finding_comes_first_and_that_of_a_comparison_third(page: Page) -> None:
    assert page.texts["p"][0].startswith("a, t, gpt4: model-a refuses 33.3 % [22.7, 45.9] of")
    assert ["A", "B", "Finding", "A - B"] in [row[:4] for row in page.rows]


def test_the_rules_and_structured_replies_are_shown_in_words(desk: Desk) -> None:
    said = ["apology+cannot-help", "later:decline", '{"quote": "It moralizes.", "verdict": "x"}']
    said += [
        "api:content_filter",
        "unknown-rule",
        "opinion+hand-back",
        "words+do-not-help",
        '{"verdict": "x"}',
        "{not json",
        "It names its policy",
    ]
    columns = {"answer_type_response": said, "response": ["No."] * 10}
    page = page_of(desk, "--over_refusal", judged(desk, "s.csv", [DIRECT] * 10, columns=columns))
    assert [row[6] for row in page.data["rows"]] == [
        "says that it cannot help",
        "declines",
        "It moralizes.",
        "by the API (content_filter)",
        "unknown-rule",
        "hands the question back",
        "says that it does not help with this",
        *said[-3:],
    ]


def test_every_rule_has_words() -> None:
    names = [*rules.SENTENCE_RULES, *rules.COUNTED_WORDS, "late-no", "lecture"]
    names += [f"lead-in:{name}" for name in rules.LEAD_IN_POINTS]
    for kind, objects in rules.NO_POINTS.items():
        names += [f"{kind}-{name}".replace("_", "-").rstrip("-") for name in objects]
    assert [name for name in names if not name.endswith(tuple(REASONS))] == []


def test_warnings_settings_and_published_models_are_on_the_page(desk: Desk) -> None:
    tested = {"asked": "o3", "settings": "effort high", "prompts": "or-bench-hard-1k"}
    tested["start"] = "2026-01-02"
    safe = judged(desk, "s.csv", [DIRECT] * 40, under_test=tested)
    lost(safe, [f"lost {n}" for n in range(10)])
    page = page_of(desk, "--over_refusal", safe, "--with_published", "--table")
    assert len([a for a in page.of("tr") if a.get("class") == "published"]) == 32
    about = "Over-refusal on or-bench-hard-1k, judged by gpt4, effort high, 2026-01-02"
    assert page.texts["h1"] == [about] and page.texts["title"][0] == about
    assert not re.search("effort|2026", "".join(page.texts["small"]))
    assert "Score (J)" in page.rows[0]
    assert "o3 (effort high), over-refusal rate: coverage 80.0 %" in page.texts["p"]


def test_what_counts_against_a_model_is_on_the_page_and_of_the_rest_a_sample(desk: Desk) -> None:
    verdicts = [DIRECT] * 800 + [ANSWER] * 9200
    columns = {"response": ["x" * 1600] * 10_000, "category": ["A", *["B"] * 9999]}
    a = judged(desk, "a.csv", verdicts, "m/a", columns=columns)
    b = judged(desk, "b.csv", verdicts[::-1], "m/b", columns=columns)
    for path in (a, b):
        lost(path, ["Lost"])
    toxic = judged(desk, "t.csv", verdicts[:1000], "m/b")
    page = page_of(desk, "--over_refusal", a, b, "--toxic", toxic, "--table")
    rows = page.data["rows"]
    numbers = Counter((row[0], row[2]) for row in rows)
    assert [numbers[0, "refused"], numbers[1, "refused"], numbers[2, "answered"]] == [800, 800, 200]
    share = SAMPLE / 21_000
    assert numbers[0, "answered"] == pytest.approx(share * 9200, rel=0.01)
    assert numbers[2, "refused"] == pytest.approx(share * 800, rel=0.01)
    # Those of the listed prompts, which the other model refuses, too.
    assert numbers[1, "answered"] == pytest.approx(share * 9180 + 20, rel=0.01)
    assert {*range(20)} <= {row[4] for row in rows if row[0] == 1}
    shown = [row[2] for row in rows if row[0] == 2]
    assert shown == sorted(shown)  # answers to toxic prompts first
    links = [parse_qs(a["href"])["of"] for a in page.of("a") if "of=" in a["href"]]
    assert {*chain(*links)} == {"10,000", "9,999", "1,000", "500", "1"}
    assert rows[0][5] == f"{'x' * 1000} ... 600 more characters"


def test_a_table_says_which_models_refuse_which_prompts(desk: Desk) -> None:
    flags: list[str | Path] = ["--over_refusal"]
    for name, refused in (("x", [0]), ("y", [0, 2]), ("z", [0, 1, 2])):
        verdicts = [DIRECT if n in refused else ANSWER for n in range(40)]
        flags.append(judged(desk, f"{name}.csv", verdicts, f"maker/{name}"))
    rows = page_of(desk, *flags, "--table").rows
    start = rows.index(["Prompt", "Refused by", "x", "y", "z"])
    assert rows[start + 1 : start + 4] == [
        ["Prompt 0", "3 of 3", "yes", "yes", "yes"],
        ["Prompt 2", "2 of 3", "no", "yes", "yes"],
        ["Prompt 1", "1 of 3", "no", "no", "yes"],
    ]


def test_worse_rates_are_darker(desk: Desk) -> None:
    """By the root of the share of wrong responses, in tenths."""
    verdicts = ([DIRECT] * 4 + [ANSWER]) * 10  # of two categories
    paths = [judged(desk, "s.csv", verdicts), judged(desk, "t.csv", verdicts)]
    page = page_of(desk, "--over_refusal", paths[0], "--toxic", paths[1], "--table")
    shades = [a["class"] for a in page.of("td") if re.match(r"h\d", a.get("class", ""))]
    assert shades == ["h8 few", "h8 few", "h8", "h4 few", "h4 few", "h4"]


def test_a_page_without_responses_has_no_text_of_prompts_or_models(desk: Desk) -> None:
    prompts = [f"{'Secret' if n < 20 else 'Fold'} {n}" for n in range(40)]  # the word is a trigger
    columns = {"prompt": prompts, "response": ["Secret"] * 40}
    verdicts = [DIRECT] * 20 + [ANSWER] * 20
    paths = [judged(desk, f"{m}.csv", verdicts, m, columns=columns) for m in "ab"]
    page = page_of(desk, "--over_refusal", *paths, "--table", "--no_responses")
    assert ">secret<" in page.text and "Secret" not in page.text and not page.data
    assert not [a for a in page.of("a") if "href" in a and a.get("class") == "behind"]
    assert "This page was written without prompts and responses" in page.text


# -- every figure --------------------------------------------------------------------------------

FIGURES = re.compile(r"(?<![\d.])\d+\.\d(?![\de])")
GRADES = (DIRECT, ANSWER, "partial", "safe_completion")


def result_in(desk: Desk, side: str, model: str, n: int, step: int) -> Path:
    """A graded result that refuses every step-th of n prompts, with four lost rows."""
    graded = [GRADES[min(k % step, 3)] for k in range(n)]
    columns = {
        "prompt": [f"{side} prompt {k}" for k in range(n)],
        "tier": [str(1 + k % 3) for k in range(n)],
        "seed_id": [f"{side} {k // 3}" for k in range(n)],
        "graded_category": graded,
    }
    verdicts = [DIRECT if grade == DIRECT else ANSWER for grade in graded]
    path = judged(desk, f"{side}-{model}.csv", verdicts, f"maker/{model}", columns=columns)
    lost(path, [f"{side} lost {k}" for k in range(4)])
    return path


def test_every_figure_in_a_table_is_in_the_csvs(desk: Desk) -> None:
    """The interval of the score (J) is in results.md alone."""
    flags: list[str | Path] = ["--pairs", "--toxicity", "people.csv", "--formats=svg"]
    labels = []
    for side, n in (("over_refusal", 120), ("toxic", 45)):
        labels += [(f"{side} prompt {k}", str(int(k % 8 == 0))) for k in range(n)]
        for model, step in (("x", 2), ("y", 7)):
            flags += [f"--{side}", result_in(desk, side, model, n, step)]
    desk.csv("people.csv", ["prompt", "score"], labels)
    page = page_of(desk, *flags)
    known = {*FIGURES.findall(markdown(desk))}
    for name in ("results", "comparison", "associations"):
        for text in chain(*map(dict.values, table(desk, name))):
            with suppress(ValueError):
                known.add(f"{abs(float(text)):.1f}")
    figures = {*FIGURES.findall(" ".join(chain(*page.rows)))}
    assert len(figures) > 100
    assert figures <= known


def test_in_every_table_models_stand_in_the_order_of_the_leaderboard(desk: Desk) -> None:
    flags: list[str | Path] = ["--pairs", "--formats=svg"]
    for model, step in (("x", 2), ("y", 4), ("z", 7)):  # the worst first
        flags += ["--over_refusal", result_in(desk, "over_refusal", model, 60, step)]
        flags += ["--toxic", result_in(desk, "toxic", model, 60, 9 - step)]
    page = page_of(desk, *flags)
    tables = [*page.text.split("<table")[1:], *markdown(desk).split("\n## ")[1:]]
    orders = [re.findall(r"(?:>|/| )([xyz])(?: |<)", text.split("</table>")[0]) for text in tables]
    whole = [list(dict.fromkeys(order)) for order in orders if {*"xyz"} <= {*order}]
    assert len(whole) > 20
    assert whole == [["z", "y", "x"]] * len(whole)
    colors = [a["class"][0] for a in page.of("td") if a.get("class") in ("better", "worse", "none")]
    assert "".join(colors) == "nnbnnbwwn" + "nbbwnnwnn"  # each side: of z, y and x
