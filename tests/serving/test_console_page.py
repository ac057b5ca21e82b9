"""The console's page in a browser: every panel is drawn, nothing hostile runs, nothing leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browsers import launched
from msgspec import structs

from fastbandit.serving.console import CONTENT_SECURITY_POLICY, STATIC
from fastbandit.serving.console.figures import Figures
from fastbandit.serving.schemas import ExplainedChange, ExplanationAnswer
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog

pytestmark = pytest.mark.slow

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\"'><script>alert(2)</script>",
    "javascript:alert(3)",
    "\u202egnp.exe",
    "${alert(4)} </td></table>",
)
PANELS = ("reward", "versions", "traffic", "quality", "arms", "rewards", "models")


@dataclass
class Site:
    """Serves the page, and the answer of the day."""

    answer: bytes
    key: str | None = None
    is_down: bool = False
    explanation: bytes = b""
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def reply(self, path: str, key: str | None) -> tuple[int, bytes, str]:
        self.asked.append(path)
        if path in STATIC:
            return 200, *STATIC[path]
        if path.endswith("/explanation") and self.explanation:
            return 200, self.explanation, "application/json"
        if path.partition("?")[0] != "/v1/console":
            return 404, b"", "text/plain"
        if self.is_down:
            return 503, b"", "text/plain"
        if self.key is not None and key != f"Bearer {self.key}":
            return 401, b"{}", "application/json"
        return 200, self.answer, "application/json"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(answer_of(tmp_path))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, kind = site.reply(self.path, self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@dataclass
class Visit:
    """A page, and what went wrong on it."""

    page: Any
    faults: list[str]
    requests: list[str]


@pytest.fixture
def visit(browser: Any, site: Site) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(20_000)
    visit = Visit(page, [], [])

    def dismiss(dialog: Any) -> None:
        visit.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def note(message: Any) -> None:
        if message.type in ("error", "warning"):
            visit.faults.append(f"{message.type}: {message.text}")

    page.on("dialog", dismiss)
    page.on("console", note)
    page.on("pageerror", lambda error: visit.faults.append(f"error: {error}"))
    page.on("request", lambda request: visit.requests.append(request.url))
    yield visit
    page.close()


def opened(visit: Visit, site: Site) -> Any:
    visit.page.goto(f"{site.url}/console/")
    visit.page.wait_for_selector("#status.is-live")
    return visit.page


def answer_of(
    folder: Path, *, is_empty: bool = False, shadow: dict[str, str] | None = None
) -> bytes:
    """Return a true answer about a small log, with hostile words wherever words may come from."""
    now = [BEGIN]
    log = SqliteLog(folder / "events.db", clock=lambda: now[0])
    if not is_empty:
        _fill(log, folder, now)
    figures = Figures(folder / "events.db", folder / "snapshots", folder, clock=lambda: now[0])
    serving: dict[str, Any] = {"select_p50_s": 0.0012, "select_p99_s": 0.0061}
    serving |= {"rejected": 3, "errors": 0}
    serving = ({} if is_empty else serving) | ({} if shadow is None else {"shadow": shadow})
    answer = figures.figures(60, serving=serving)
    log.close()
    figures.close()
    return msgspec.json.encode(answer)


def _fill(log: SqliteLog, folder: Path, now: list[int]) -> None:
    log.append([ArmsChanged(upserted=[Arm(id, [0.0]) for id in HOSTILE])])
    for n in range(60):
        now[0] += 20 * SECOND
        made = DecisionMade(
            f"d{n}",
            [0.5],
            [HOSTILE[n % len(HOSTILE)]],
            [0.0],
            n,
            n // 20,
            1,
            60 * SECOND,
            decided_by="bandit" if n < 40 else "baseline",
            propensities=None if n < 40 else [0.3],
            other=None if n < 30 else HOSTILE[0],
        )
        log.append([made, RewardCame(f"d{n - 1}", float(n % 3 == 0)), RewardCame("none", 1.0)])
    curve = [[step, 1.0 / (step + 1)] for step in range(30)]
    checks = {"quality": 0.5, "recall": 0.9, "loss": 0.4, "worse": 0.2}
    report = {"reason": HOSTILE[0], "checks": checks, "curve": curve, "cut": {"pairs": 9, "at": 1}}
    SnapshotStore(folder / "snapshots").refuse(3, report)
    learner = {"state": "waiting", "error": HOSTILE[1], "seconds": 1.5, "fresh": 7, "needed": 500}
    (folder / "learner.json").write_text(json.dumps(learner))
    audit = {"version": 2, "quality": 0.91, "count": 64, "lowest": 0.5}
    (folder / "audits.json").write_text(json.dumps(audit))


def test_every_panel_is_drawn_and_nothing_goes_wrong(visit: Visit, site: Site) -> None:
    page = opened(visit, site)

    for panel in PANELS:
        assert page.inner_text(f"#{panel} .body").strip(), panel
    assert page.locator("#reward svg .band").count() >= 2  # the rewards' and the baseline's
    assert page.locator("#traffic svg rect").count() >= 20
    assert page.locator("#rewards svg rect").count() >= 1
    assert page.locator("#models .spark").count() == 1
    summary = page.inner_text("#summary")
    for told in ("Decisions", "60", "Against the baseline", "0.910", "1.2 / 6.1"):
        assert told in summary
    assert "7 of 500" in page.inner_text("#models")
    assert visit.faults == []


def test_hostile_names_are_shown_as_text_and_run_nothing(visit: Visit, site: Site) -> None:
    page = opened(visit, site)

    shown = page.inner_text("#arms")

    for name in HOSTILE:
        assert name.replace("\u202e", "⟨U+202E⟩") in shown
    assert HOSTILE[0] in page.inner_text("#models")
    assert page.locator("main img, main script, main [onerror], main a").count() == 0
    assert visit.faults == []


def test_names_that_a_version_learned_are_shown_as_text(visit: Visit, site: Site) -> None:
    names: list[dict[str, Any]] = [
        {"name": HOSTILE[0], "levels": None, "count": 0},
        {"name": HOSTILE[1], "levels": [HOSTILE[4], HOSTILE[3]], "count": 30},
    ]
    part = {"of": "contexts", "column": "", "names": names, "known": 2}
    part |= {"used": 3, "slots": 64, "hashed": 8}
    answer = msgspec.json.decode(site.answer)
    answer["serving"]["names"] = [part]
    site.answer = msgspec.json.encode(answer)
    page = opened(visit, site)

    shown = page.inner_text("#names")
    for said in (*HOSTILE[:2], HOSTILE[4], "number", "and 28 more", "2 names in 3 of 64 slots"):
        assert said in shown
    assert "\u202e" not in shown
    assert page.locator("main img, main script, main [onerror], main a").count() == 0
    assert visit.faults == []


def test_titles_stand_beside_the_ids_as_text(visit: Visit, site: Site) -> None:
    titles = [[HOSTILE[1], HOSTILE[0]], [HOSTILE[4], "A long one " * 10], [HOSTILE[3], HOSTILE[3]]]
    answer = msgspec.json.decode(site.answer)
    site.answer = msgspec.json.encode({**answer, "titles": titles})
    site.explanation = msgspec.json.encode(
        structs.replace(explanation_of("d59"), title=HOSTILE[2], runner_up_title=HOSTILE[0])
    )
    page = opened(visit, site)

    for panel in ("arms", "decisions"):
        shown = page.inner_text(f"#{panel}")
        assert f"{HOSTILE[1]}\n{HOSTILE[0]}" in shown
        assert f"{HOSTILE[4]}\nA long one" in shown
        assert "\u202e" not in shown
    page.click("#decisions .explain >> nth=0")
    page.wait_for_selector("#explanation .contributions")
    shown = page.inner_text("#explanation")
    assert f"{HOSTILE[0]} {HOSTILE[2]}" in shown
    assert f"{HOSTILE[2]} {HOSTILE[0]}, 0.600" in shown
    assert page.locator("main img, main script, main [onerror], main a").count() == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert visit.faults == []


@pytest.mark.parametrize(
    ("panel", "decision", "asked"), [("decisions", "d59", "/v1/decisions/d59"), ("arms", None, "")]
)
def test_a_click_on_a_decision_or_an_arm_shows_what_its_score_is_made_of(
    visit: Visit, site: Site, panel: str, decision: str | None, asked: str
) -> None:
    site.explanation = msgspec.json.encode(explanation_of(decision))
    page = opened(visit, site)

    page.click(f"#{panel} .explain >> nth=0")
    page.wait_for_selector("#explanation .contributions")

    shown = page.inner_text("#explanation")
    for name in (*HOSTILE[:2], "base", "+0.250", "−0.100", "0.650"):
        assert name in shown
    assert ("For the typical context" in shown) == (decision is None)
    assert page.locator("#explanation .contributions .bar").count() == 3
    assert page.locator("main img, main script, main [onerror], main a").count() == 0
    assert any(path.startswith(asked or "/v1/arms/") for path in site.asked)
    assert visit.faults == []


def explanation_of(decision: str | None) -> ExplanationAnswer:
    return ExplanationAnswer(
        arm=HOSTILE[0],
        score=0.65,
        expected=0.6,
        draw=0.05,
        interval=[0.5, 0.7],
        contributions={"base": 0.5, HOSTILE[1]: 0.25, "age": -0.1},
        runner_up=HOSTILE[2],
        runner_up_score=0.6,
        changes=[ExplainedChange([HOSTILE[1]], -0.2, -0.25)],
        propensity=None,
        version=3,
        decided_by_version=None if decision is None else 2,
        decision=decision,
    )


def test_the_policy_keeps_a_script_from_running_even_if_it_got_in(visit: Visit, site: Site) -> None:
    page = opened(visit, site)

    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')"
    )
    page.wait_for_timeout(200)

    assert page.title() == "fastbandit console"


def test_no_request_leaves_the_service(visit: Visit, site: Site) -> None:
    opened(visit, site)

    kinds = ("data:", site.url)
    assert visit.requests
    assert [url for url in visit.requests if not url.startswith(kinds)] == []
    assert {path.partition("?")[0] for path in site.asked} == {*STATIC, "/v1/console"}


def test_an_empty_log_says_why_nothing_is_shown(
    visit: Visit, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site.answer = answer_of(tmp_path_factory.mktemp("empty"), is_empty=True)
    page = opened(visit, site)

    assert "No decision has been made yet" in page.inner_text("#reward")
    for panel in PANELS:
        assert page.locator(f"#{panel} .note").count() >= 1, panel
    assert visit.faults == []


def test_shadow_mode_has_a_panel_with_the_difference_and_the_command(
    visit: Visit, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shadow = {"baseline": "request", "decides": "baseline", "command": "fastbandit promote"}
    site.answer = answer_of(tmp_path_factory.mktemp("shadow"), shadow=shadow)
    page = opened(visit, site)

    told = page.inner_text("#shadow")
    for words in (
        "The baseline decides",
        "20 % of 20",
        "a difference of ",
        "do not trust this",
        "the propensities of the bandit are not known",
        "Decisions of the bandit give no estimate of the difference",
        "fastbandit promote",
    ):
        assert words in told
    assert page.locator("#shadow svg .whisker").count() == 1
    assert page.locator("#shadow svg .mark").count() == 1
    assert visit.faults == []


def test_shadow_mode_without_decisions_says_so(
    visit: Visit, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shadow = {"baseline": "random", "decides": "bandit", "command": "fastbandit promote --back"}
    folder = tmp_path_factory.mktemp("early")
    site.answer = answer_of(folder, is_empty=True, shadow=shadow)
    page = opened(visit, site)

    told = page.inner_text("#shadow")
    assert "names an arm of both" in told
    assert "fastbandit promote --back" in told


def test_what_the_log_lacks_is_reported_at_the_top(visit: Visit, site: Site) -> None:
    answer = msgspec.json.decode(site.answer)
    site.answer = msgspec.json.encode({**answer, "notes": {"log": "It is <b>7</b> behind."}})

    page = opened(visit, site)

    assert page.inner_text("#reading") == "It is <b>7</b> behind."
    assert visit.faults == []


def test_without_shadow_mode_there_is_no_such_panel(visit: Visit, site: Site) -> None:
    assert opened(visit, site).is_hidden("#shadow")


def test_the_range_is_asked_for_by_keyboard(visit: Visit, site: Site) -> None:
    page = opened(visit, site)

    page.focus("input[name=range]:checked")
    with page.expect_request("**/v1/console?minutes=1440") as day:
        page.keyboard.press("ArrowRight")
    with page.expect_request("**/v1/console") as everything:
        page.keyboard.press("ArrowRight")

    assert day.value.url.endswith("?minutes=1440")
    assert everything.value.url.endswith("/v1/console")


def test_arrow_keys_read_single_points_of_a_chart(visit: Visit, site: Site) -> None:
    page = opened(visit, site)

    page.focus("#traffic svg")
    page.keyboard.press("End")

    assert "decisions" in page.inner_text("#traffic .readout")


def test_a_service_that_does_not_answer_is_reported_and_found_again(
    visit: Visit, site: Site
) -> None:
    page = opened(visit, site)

    site.is_down = True
    page.wait_for_selector("#status.is-lost")
    told = page.inner_text("#status")
    site.is_down = False
    page.wait_for_selector("#status.is-live")

    assert "does not answer since" in told
    assert "it answered 503" in told


def test_a_key_is_asked_for_and_stored_in_the_tab_only(visit: Visit, site: Site) -> None:
    site.key = "the-right-key"
    page = visit.page
    page.goto(f"{site.url}/console/")
    page.wait_for_selector("#key:not([hidden])")

    page.fill("#secret", "a-wrong-key")
    page.keyboard.press("Enter")
    page.wait_for_selector("#rejected:not(:empty)")
    page.fill("#secret", "the-right-key")
    page.keyboard.press("Enter")
    page.wait_for_selector("#status.is-live")

    assert page.evaluate("Object.keys(localStorage).length") == 0
    assert page.context.cookies() == []
    assert page.is_hidden("#key")


def test_a_hidden_page_asks_nothing(visit: Visit, site: Site) -> None:
    page = opened(visit, site)

    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(300)  # one that was on its way may still come
    before = len(site.asked)
    page.wait_for_timeout(2500)

    assert len(site.asked) == before


def test_a_phone_shows_all_without_scrolling_sideways(visit: Visit, site: Site) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 740})
    page = opened(visit, site)

    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_the_page_loads_nothing_inline() -> None:
    for content, kind in STATIC.values():
        text = content.decode()
        assert "innerHTML" not in text
        assert "http://www.w3.org/" in text or "http" not in text, kind
    assert b" style=" not in STATIC["/console/"][0]
    assert "'unsafe" not in CONTENT_SECURITY_POLICY
