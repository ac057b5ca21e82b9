"""The client in a page of a browser: it selects, outlasts being offline, and delivers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from little_app import App

from tests.serving.little_service import CONTEXT

pytestmark = pytest.mark.slow

ALL = "**/bandit/**"
MAKE = """async (options) => {
    const { Client } = await import("/fastbandit/index.js");
    window.client = new Client({ url: "/bandit", timeoutMs: 10000, ...options });
}"""
SELECT = "async (context) => window.selected = await client.select({ context })"
REWARD = "(value) => client.reward({ decision: window.selected, value })"
SPOOLED = "() => client.spooled"


@pytest.fixture
def page(browser: Any, app: App) -> Iterator[Any]:
    """A page of the application, with a client; all that goes wrong on it is an error."""
    context = browser.new_context()
    yield opened(context, app)
    context.close()


def opened(context: Any, app: App, **options: Any) -> Any:
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.goto(app.url)
    page.evaluate(MAKE, options)
    return page


def became_of(app: App, decision: str) -> str:
    """Return what the service says to a reward of 1, given once more."""
    status, content, _ = app.forward(
        "POST", "/v1/reward", json.dumps({"decision": decision, "value": 1.0}).encode()
    )
    assert status in (200, 202, 404, 409), content
    return str(json.loads(content)["status"])


def test_a_page_selects_and_rewards_without_a_key(page: Any, app: App) -> None:
    selected = page.evaluate(SELECT, CONTEXT)

    assert selected["arm"].startswith("arm-")
    assert page.evaluate(REWARD, 1.0) == "counted"
    assert became_of(app, selected["decision"]) == "duplicate"


def test_a_retry_after_a_lost_answer_gives_the_same_decision(page: Any, app: App) -> None:
    lost: list[Any] = []

    def lose_the_first(route: Any) -> None:
        answer = route.fetch()
        if lost:
            route.fulfill(response=answer)
        else:
            lost.append(answer.json())
            route.abort()

    page.route(ALL, lose_the_first)
    selected = page.evaluate(SELECT, CONTEXT)

    sent = [json.loads(body) for path, body in app.asked if path == "/v1/select"]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert {key: selected[key] for key in lost[0]} == lost[0]
    assert page.evaluate("() => client.counts") == {"retries": 1}


def test_rewards_of_a_page_that_is_offline_are_delivered_by_a_later_one(
    browser: Any, app: App
) -> None:
    context = browser.new_context()
    page = opened(context, app, retries={"tries": 2})
    selected = page.evaluate(SELECT, CONTEXT)
    page.route(ALL, lambda route: route.abort())

    assert page.evaluate(REWARD, 1.0) == "spooled"
    waiting = {"waiting": 1, "rejected": 0, "where": "localStorage", "why": ""}
    assert page.evaluate(SPOOLED) == waiting
    page.close()
    later = opened(context, app)
    assert later.evaluate(SPOOLED) == waiting
    assert later.evaluate("() => client.flush()") == {"sent": 1, "rejected": 0, "left": 0}
    assert later.evaluate("() => localStorage.length") == 0
    assert became_of(app, selected["decision"]) == "duplicate"
    context.close()


def test_what_waits_is_sent_in_its_order_when_the_browser_is_online_again(
    browser: Any, app: App
) -> None:
    context = browser.new_context()
    page = opened(context, app, retries={"tries": 2})
    ids = []
    for _ in range(3):
        ids.append(page.evaluate(SELECT, CONTEXT)["decision"])
        context.set_offline(True)
        assert page.evaluate(REWARD, 1.0) == "spooled"
        page.evaluate("() => client.close()")  # or the next one would send it
        context.set_offline(False)
        page.evaluate(MAKE, {"retries": {"tries": 2}})
    context.set_offline(True)
    assert page.evaluate(SPOOLED)["waiting"] == 3
    context.set_offline(False)

    page.wait_for_function("() => client.spooled.waiting === 0")
    (sent,) = [json.loads(body)["rewards"] for path, body in app.asked if path == "/v1/reward"]
    assert [reward["decision"] for reward in sent] == ids
    assert [became_of(app, id) for id in ids] == ["duplicate"] * 3
    context.close()


def test_two_pages_that_share_a_storage_lose_nothing(browser: Any, app: App) -> None:
    context = browser.new_context()
    pages = [opened(context, app, retries={"tries": 1}) for _ in range(2)]
    for page in pages:
        page.evaluate(SELECT, CONTEXT)
        page.route(ALL, lambda route: route.abort())
    assert [page.evaluate(REWARD, 1.0) for page in pages] == ["spooled", "spooled"]
    for page in pages:
        assert page.evaluate(SPOOLED)["waiting"] == 2
        page.unroute(ALL)

    assert pages[0].evaluate("() => client.flush()") == {"sent": 2, "rejected": 0, "left": 0}
    assert pages[1].evaluate(SPOOLED)["waiting"] == 0
    context.close()


REFUSALS = {
    "localStorage itself": (
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied') } })"
    ),
    "to store": "Storage.prototype.setItem = () => { throw new Error('denied') }",
}


@pytest.mark.parametrize("refused", REFUSALS)
def test_where_storage_is_refused_rewards_wait_in_memory(
    browser: Any, app: App, refused: str
) -> None:
    context = browser.new_context()
    context.add_init_script(REFUSALS[refused])
    page = opened(context, app, retries={"tries": 1})
    page.evaluate(SELECT, CONTEXT)
    page.route(ALL, lambda route: route.abort())

    assert page.evaluate(REWARD, 1.0) == "spooled"
    spooled = page.evaluate(SPOOLED)
    assert (spooled["waiting"], spooled["where"]) == (1, "memory")
    assert spooled["why"] == "localStorage is refused: Error: denied"
    page.unroute(ALL)
    assert page.evaluate("() => client.flush()")["sent"] == 1
    context.close()


def test_a_reward_is_sent_although_the_page_is_left_at_once(page: Any, app: App) -> None:
    selected = page.evaluate(SELECT, CONTEXT)
    page.evaluate(
        "() => { client.reward({ decision: selected, value: 1 }); location.href = '/?next' }"
    )
    page.wait_for_url("**/?next")
    for _ in range(200):
        if app.asked[-1][0] == "/v1/reward":
            break
        page.wait_for_timeout(50)

    assert became_of(app, selected["decision"]) == "duplicate"


def test_what_the_service_rejects_is_an_error_with_its_problem(page: Any) -> None:
    error = page.evaluate(
        """async (context) => {
            const { ServiceError } = await import("/fastbandit/index.js");
            try {
                await client.select({ context, k: 0 });
            } catch (error) {
                const { name, status, field, fix } = error;
                return { name, status, field, fix, isOurs: error instanceof ServiceError };
            }
        }""",
        CONTEXT,
    )

    assert error.pop("fix")
    assert error == {"name": "ServiceError", "status": 422, "field": "k", "isOurs": True}


def test_a_page_of_another_origin_cannot_ask_even_with_a_key(page: Any, app: App) -> None:
    """The service sends no headers for pages of other origins: a proxy has to stand in front."""
    direct = {"url": app.service.url, "key": app.service.key, "timeoutMs": 5_000}
    page.evaluate(MAKE, {**direct, "fallback": "home"})

    assert page.evaluate(SELECT, CONTEXT)["isFallback"]
    headers = {"Authorization": f"Bearer {app.service.key}"}
    assert httpx.get(f"{app.service.url}/v1/status", headers=headers).status_code == 200
