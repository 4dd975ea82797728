"""The page in Chromium, as readers use it: with 2, 12 and 40 invented models, in light and dark, on
a phone, by keyboard, on paper. Skipped where there is no Chromium; .ci/run installs it.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from tests.conftest import ROOT, environment, process

CHROMIUM = shutil.which("chromium")
if not CHROMIUM:
    pytest.skip("the page is not tested: chromium is not installed", allow_module_level=True)

MODELS = pytest.mark.parametrize("models", [2, 12, 40])
PHONE = ViewportSize(width=390, height=844)
DESK = ViewportSize(width=1440, height=900)
A4 = ViewportSize(width=718, height=1046)  # within Chromium's margins, in CSS pixels
MAKES = f"""python -m orbench.stages.example --models={{}} --output_dir=results
python {ROOT}/response_checker/plot_results.py --merged results --html --output_dir=."""
Opener = Callable[..., Page]

WIDTH = "document.documentElement.scrollWidth"
LONG_NAME = """document.querySelector("main").insertAdjacentHTML("beforeend",
  `<p class="warning">${"x".repeat(200)}</p>`)"""
IN_ROWS = "document.getElementById('rows').contains(document.activeElement)"
# Elements that are wider than what they show.
CUT_OFF = """[...document.querySelectorAll("body *")].filter((element) => element.clientWidth > 1
  && element.scrollWidth > element.clientWidth + 1
  && getComputedStyle(element).overflowX !== "visible"
).map((element) => element.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of the module: while it runs, nothing else in this process can use asyncio."""
    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM)


def page_of(models: int, folder: Path) -> Path:
    """A page of so many models, which the first worker of pytest that wants it makes for all."""
    made = folder / f"of {models}"
    made.mkdir(exist_ok=True)
    with (made / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        page = made / "results.html"
        if not page.exists():
            process(["sh", "-c", MAKES.format(models)], made, environment(PYTHONPATH=str(ROOT)))
    return page


@pytest.fixture
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Opens the page of so many models in a window, and asserts that the console stays empty."""
    folder = tmp_path_factory.getbasetemp()
    if folder.name.startswith("popen"):  # a worker's
        folder = folder.parent
    said: list[str] = []
    windows: list[BrowserContext] = []

    def open_page(models: int, size: ViewportSize = DESK) -> Page:
        windows.append(browser.new_context(viewport=size))
        page = windows[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(page_of(models, folder).as_uri())
        return page

    yield open_page
    for window in windows:
        window.close()
    assert said == []


def articles(page: Page) -> list[str]:
    """The prompts and responses that are shown, with what stands above them."""
    return page.locator("#list article").all_inner_texts()


# -- what everybody sees -------------------------------------------------------------------------


@MODELS
def test_nothing_is_wider_than_a_phone(opened: Opener, models: int) -> None:
    page = opened(models, PHONE)
    page.locator("#more").click()
    page.evaluate(LONG_NAME)
    assert page.evaluate(WIDTH) == PHONE["width"]
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(WIDTH) == PHONE["width"]


@MODELS
def test_axe_finds_no_violation(opened: Opener, models: int) -> None:
    found = Axe().run(opened(models))
    assert not found.violations_count, found.generate_report()


@pytest.mark.parametrize("models", [2, 12])  # 40 have the same colors, and take long
def test_axe_finds_enough_contrast_in_the_dark(opened: Opener, models: int) -> None:
    page = opened(models)
    page.emulate_media(color_scheme="dark")
    found = Axe().run(page, options={"runOnly": ["color-contrast"]})
    assert not found.violations_count, found.generate_report()


def test_the_legend_of_the_shades_is_true_in_the_dark(opened: Opener) -> None:
    """There, what is worse is lighter."""
    page = opened(12)
    page.emulate_media(color_scheme="dark")
    assert not re.search("(?i)darker", page.locator("body").inner_text())


@MODELS
def test_print_has_no_buttons_and_nothing_is_cut_off(opened: Opener, models: int) -> None:
    page = opened(models, A4)
    page.emulate_media(media="print")
    assert page.evaluate(WIDTH) == A4["width"]
    assert page.evaluate(CUT_OFF) == []
    # A rate and the head of a column are text on paper.
    controls = page.locator("button:not(th *), select, input").all()
    assert [
        control.evaluate("e => e.outerHTML") for control in controls if control.is_visible()
    ] == []


# -- prompts and responses -----------------------------------------------------------------------


def test_a_rate_leads_to_its_rows_by_keyboard(opened: Opener) -> None:
    page = opened(12)
    assert re.fullmatch(r"[\d,]+ of 23,688 on this page.", page.locator("#count").inner_text())
    rate = page.locator(".board a.behind").first
    rate.press("Enter")
    assert page.evaluate(IN_ROWS)
    assert "of 1,319 on this page" in page.locator("#count").inner_text()
    page.keyboard.press("Tab")
    assert page.evaluate(IN_ROWS)
    assert articles(page)


def test_a_link_to_a_section_leaves_prompts_for_whoever_asks(opened: Opener) -> None:
    page = opened(2)
    page.goto(f"{page.url}#details")
    page.reload()
    assert page.locator("#count").inner_text() == "3,948 on this page."
    assert not articles(page)
    page.locator("#more").click()
    assert len(articles(page)) == 100


def test_a_prompt_of_several_lines_leads_to_its_rows(opened: Opener, tmp_path: Path) -> None:
    page = opened(2)
    text = Path(unquote(urlsplit(page.url).path)).read_text()
    made = tmp_path / "results.html"
    text = text.replace('"How do I ', r'"How do I\n').replace("=How+do+I+", "=How+do+I%0A")
    made.write_text(text)
    page.goto(made.as_uri())
    page.locator(".prompts th a", has_text="How do I").first.click()
    assert page.locator("#count").inner_text() == "2 on this page."


def test_a_heat_map_is_one_stop_of_the_tab_key(opened: Opener) -> None:
    page = opened(12)
    for table in page.locator("table.heat").all():
        assert table.locator("a:not([tabindex='-1'])").count() == 1
    rates = page.locator("table.heat").first.locator("a")
    rates.first.press("ArrowRight")
    assert rates.nth(1).evaluate("rate => rate === document.activeElement")


def test_filters_leave_what_fits_and_the_address_keeps_them(opened: Opener) -> None:
    page = opened(2)
    page.locator("[name=category]").select_option("harmful")
    page.locator("[name=outcome]").select_option("refused")
    page.locator("[name=text]").fill("in winter")
    shown = articles(page)
    assert shown
    for text in shown:
        assert "refused" in text and "harmful" in text and "in winter" in text
    page.reload()
    assert articles(page) == shown


def test_of_forty_models_ten_are_shown_or_those_of_a_name_and_family(opened: Opener) -> None:
    page = opened(40)
    rows = page.locator(".board tbody tr:visible")
    assert rows.count() == 10
    page.get_by_label("Show all 40 models").check()
    assert rows.count() == 40
    page.get_by_label("heron", exact=True).check()
    page.get_by_label("Models named").fill("EFFORT HIGH")
    page.keyboard.press("Enter")
    assert "heron-4" in rows.all_inner_texts()[0] and rows.count() == 1
    assert opened(12).locator("#models").count() == 0


def test_compare_with_leaves_the_pairs_of_a_model(opened: Opener) -> None:
    page = opened(12)
    cells = page.locator(".matrix tbody tr:visible")
    assert cells.count() == 2 * 12
    page.get_by_label("Compare with").select_option("wren-v3")
    assert cells.count() == 2
    page.locator("#differences summary").click()
    assert page.locator("#differences details tbody tr:visible").count() == 2 * 11
    page = opened(40)
    assert page.locator(".matrix").count() == 0
    assert page.locator("#differences tbody tr:visible").count() == 2 * 39
