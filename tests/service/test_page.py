"""The page in a real browser: clusters appear, a hostile id does no harm, it comes back by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie.cli.demo import visit
from coterie.service.core.experiments import Experiment
from coterie.service.http.api_keys import FRESH, create_key
from coterie.service.http.page import FOLDER, Projection
from coterie.service.http.routes import ROUTES
from coterie.service.settings import PolicySettings
from inspection import never_keep_house, pass_engine_time
from optional import need_package, need_program
from service.serving import Served, served

PAINTED = """[...document.querySelectorAll('canvas:not([hidden])')].map(canvas =>
  new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size > 3)"""
INSIDE = """[...map.dots.values()].every(dot => {
  const [x, y] = map.place({x: dot.toX, y: dot.toY}, map.canvas.clientWidth, map.canvas.clientHeight);
  return 0 <= x && x <= map.canvas.clientWidth && 0 <= y && y <= map.canvas.clientHeight; })"""
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=document.title='broken'>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = need_package("playwright.sync_api", distribution="playwright")
    chromium = need_program("chromium", "chromium-browser", "google-chrome")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(str(tmp_path_factory.mktemp("page") / "a.db")) as one:
        visit(one.url, 600)
        one.engine.find("demo").feedback(HOSTILE, 1.0, item="item-00")
        yield one


def opened(browser: Any, url: str, **options: Any) -> tuple[Any, list[str]]:
    """The page, once it is live, and whatever it complained of."""
    page = browser.new_page(**options)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.extend([message.text] if message.type == "error" else []))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(url)
    page.wait_for_selector("#state[data-live=yes]", timeout=20_000)
    return page, complaints


def until(page: Any, expression: str) -> None:
    """Wait until it is true. The page allows no `eval`, with which the browser would wait by itself."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(expression)


def test_experiments_are_shown_with_what_they_suggest(browser: Any, tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as one:
        for name in ("now", "new"):
            live = one.engine.settle(one.engine.create(name, PolicySettings(dim=2, policy="LinUCBInd")))
            one.engine.settle(live.change_items({"tea": [1.0, 0.0]}))
        one.engine.experiments.create(Experiment(name="spring", shares={"now": 1.0, "new": 1.0}))
        for number in range(20):
            live, pending = one.engine.experiments.decide("spring", f"u{number}")
            one.engine.settle(live.reward(one.engine.settle(pending).id, 1.0))
        page, complaints = opened(browser, one.url, viewport={"width": 390, "height": 900})
        until(page, "document.querySelector('#experiments').innerText.includes('spring')")
        assert "Proposal: go on: too little data for an interval." in page.inner_text("#experiments")
        assert "Numbers of users are as intended" in page.inner_text("#experiments")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not complaints
        page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_clusters_appear_and_nothing_is_wider_than_the_screen(
    browser: Any, service: Served, width: int, scheme: str, tmp_path: Path
) -> None:
    page, complaints = opened(
        browser, service.url, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    until(page, "document.querySelector('#map').ariaLabel.includes('61 of 61 users')")
    reported = page.inner_text("#numbers")
    assert "Clusters" in reported
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.wait_for_timeout(1500)
    assert all(page.evaluate(PAINTED)[:2])
    assert "clusters now, the largest of" in page.evaluate("document.querySelector('#sizes').ariaLabel")
    assert page.evaluate(INSIDE)
    page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
    assert complaints == []
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (390, "light")])
def test_hours_from_before_the_page_was_opened_items_and_alerts_are_shown(
    browser: Any, width: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    with served(None, dim=2) as one:
        live = one.engine.find("default")
        live.change_items({HOSTILE: [1.0, 0.0], **{f"item-{n}": [0.0, 1.0] for n in range(9)}})
        for hour, reward in enumerate([1.0] * 4 + [0.1]):
            for number in range(300):
                items = [HOSTILE, f"item-{number % 9}"]
                decision = live.decide(f"u{number % 5}", items=[items[number % 2]]).result
                live.reward(decision.id, reward)
            pass_engine_time(one.engine, 3_600 if hour < 4 else 0)
        live.watch_due()
        page, complaints = opened(
            browser, one.url, viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        until(page, "document.querySelector('#items').innerText.includes('Shown most')")
        assert "the reward of a decision has fallen from 1 to 0.1" in page.inner_text("#alerts")
        assert "5 hours, 0.1 in the latest" in page.evaluate("document.querySelector('#history').ariaLabel")
        assert page.evaluate("document.querySelector('#history').hidden") is False
        assert "(1,500 in 5 hours)" in page.inner_text("#history-note")
        assert page.inner_text("#items").count(HOSTILE) == 3
        assert page.query_selector("#items img") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert complaints == []
        page.close()


def test_what_is_empty_says_why(browser: Any) -> None:
    with served(None, dim=2) as one:
        one.engine.settle(one.engine.create("other", PolicySettings(dim=2, policy="LinUCBInd")))
        page, complaints = opened(browser, one.url)
        page.select_option("#policy", "other")
        until(page, "document.querySelector('#changed').innerText.includes('does not look for users')")
        for place, words in (
            ("map", "No users yet"),
            ("sizes", "No clusters yet"),
            ("reward", "No rewards yet"),
            ("latency", "No decisions while this page was open"),
            ("history", "No decisions in the last 35 days"),
        ):
            until(page, f"document.querySelector('#{place}').hidden")
            assert words in page.inner_text(f"#{place}-empty")
        assert "No item of the catalogue was shown yet" in page.inner_text("#items")
        assert page.query_selector("#alerts").is_hidden()
        assert complaints == []
        page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_the_pages_of_the_api_list_every_route_and_message(browser: Any, width: int, scheme: str) -> None:
    with served(None, dim=2) as one:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        foreign: list[str] = []
        page.on("request", lambda sent: foreign.extend([] if sent.url.startswith(one.url) else [sent.url]))
        page.on("pageerror", lambda error: foreign.append(str(error)))
        page.goto(f"{one.url}/docs")
        until(page, "document.querySelectorAll('details').length > 0")
        described = httpx.get(f"{one.url}/openapi.json", trust_env=False).json()
        listed = page.inner_text("#routes")
        routes = [(method, path) for path, methods in described["paths"].items() for method in methods]
        assert len(routes) == len(ROUTES) == page.evaluate("document.querySelectorAll('details').length")
        for method, path in routes:
            assert f"{method.upper()} {path}" in listed
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for name in described["components"]["schemas"]:
            assert page.query_selector(f"#message-{name}") is not None
        page.fill("#filter", "forget a user")
        assert (
            page.evaluate("[...document.querySelectorAll('details')].filter(one => !one.hidden).length") == 1
        )
        assert foreign == []
        page.close()


def test_a_hostile_id_is_shown_as_it_is(browser: Any, service: Served) -> None:
    page, complaints = opened(browser, service.url)
    page.fill("#user", HOSTILE)
    page.click("#search button")
    page.wait_for_selector("#explanation table")
    assert HOSTILE in page.inner_text("#explanation")
    assert page.title() == "Coterie"
    assert page.query_selector("#explanation img") is None
    page.fill("#user", "nobody")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#explanation').textContent.includes('no user')")
    assert [one for one in complaints if "404" not in one] == []
    page.close()


def test_arrow_keys_walk_through_users(browser: Any, service: Served) -> None:
    page, _ = opened(browser, service.url)
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#explanation table")
    assert "rewards and learns from" in page.inner_text("#explanation")
    page.close()


def test_it_says_when_it_is_not_live_and_comes_back(browser: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    with served(store) as one:
        port = int(one.url.rpartition(":")[2])
        page, _ = opened(browser, one.url)
    page.wait_for_selector("#state[data-live=no]", timeout=20_000)
    assert "not live" in page.inner_text("#state")
    with served(store, port=port):
        page.wait_for_selector("#state[data-live=yes]", timeout=30_000)
    page.close()


def test_who_comes_later_sees_the_past(browser: Any, service: Served) -> None:
    first, _ = opened(browser, service.url)
    until(first, "samples.length >= 4")
    second, complaints = opened(browser, service.url)
    assert second.evaluate("samples.length") >= 4
    first.close()
    second.reload()
    second.wait_for_selector("#state[data-live=yes]", timeout=20_000)
    assert second.evaluate("samples.length") >= 4
    assert complaints == []
    second.close()


def test_everything_is_reached_by_keyboard_and_has_a_name(browser: Any, service: Served) -> None:
    page, _ = opened(browser, service.url)
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert reached == ["policy", "API", "map", "user", "Explain"]
    named = "canvas => Boolean(canvas.ariaLabel) && Boolean(canvas.role)"
    assert page.evaluate(f"[...document.querySelectorAll('canvas')].every({named})")
    titled = "one => document.getElementById(one.getAttribute('aria-labelledby'))"
    assert page.evaluate(f"[...document.querySelectorAll('section')].every({titled})")
    page.keyboard.press("Escape")
    page.focus("#policy")
    page.select_option("#policy", "default")
    until(page, "policy === 'default' && document.querySelector('#map').ariaLabel.includes('0 of 0 users')")
    page.close()


SILENT = """() => {
  readFrames = () => new Promise((_, fail) => reading.signal.addEventListener('abort', fail));
  reading.changed = true;
  reading.abort();
}"""


def test_a_stream_that_falls_silent_is_given_up(browser: Any, service: Served) -> None:
    page, _ = opened(browser, service.url)
    page.evaluate(SILENT)
    said = "document.querySelector('#state').textContent.includes('no data for 10 seconds')"
    until(page, f"(heard = Date.now() - 11000, {said})")
    page.close()


def test_a_key_is_asked_for_and_one_of_a_policy_shows_that_policy(browser: Any, tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db")) as one:
        store = one.engine.store
        key = one.engine.journal.run(lambda: create_key(store, "reader", policy="default"))
        time.sleep(FRESH + 0.1)
        page = browser.new_page()
        page.goto(one.url)
        page.fill("#key", key)
        page.keyboard.press("Enter")
        page.wait_for_selector("#state[data-live=yes]", timeout=20_000)
        assert page.evaluate("[...document.querySelectorAll('#policy option')].map(one => one.value)") == [
            "default"
        ]
        page.close()


def test_the_page_allows_nothing_from_elsewhere(service: Served) -> None:
    answer = httpx.get(service.url, trust_env=False)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert httpx.get(f"{service.url}/static/..%2Fapp.py", trust_env=False).status_code == 404
    for file in FOLDER.iterdir():
        assert "http://" not in file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "innerHTML" not in file.read_text()
        assert httpx.get(f"{service.url}/static/{file.name}", trust_env=False).status_code == 200


def test_the_map_is_stable_from_sample_to_sample() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 8))
    estimates = centres[rng.integers(3, size=90)] + 0.05 * rng.normal(size=(90, 8))
    projection = Projection()
    for _ in range(40):
        before = projection.project(estimates)
    after = projection.project(estimates + 0.01 * rng.normal(size=(90, 8)))
    assert np.abs(after - before).max() < 0.1 * np.abs(before).max()
