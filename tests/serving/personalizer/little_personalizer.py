"""A service with the routes of Personalizer, asked in-process or over a port of loopback."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastbandit.settings.service import Config
from tests.serving.little_service import Caller, Reply, run

OLD, NEW = "/personalizer/v1.0", "/personalizer/v1.1-preview.3"
CONTEXT = [{"age": 31, "country": "DE"}, {"likes": ["jazz"], "member": True}]
_Told = TypeVar("_Told")


def action(id: str, **more: Any) -> dict[str, Any]:
    """Return an action whose features come in two objects."""
    features = {"title": f"A {id}", "price": 12.5, "genre": "rock", "since": "2024-03-01"} | more
    return {
        "id": id,
        "features": [dict(list(features.items())[:2]), dict(list(features.items())[2:])],
    }


def rank_of(*ids: str, **more: Any) -> dict[str, Any]:
    """Return the body of a rank of some actions."""
    return {"contextFeatures": CONTEXT, "actions": [action(id) for id in ids]} | more


class Client:
    """Asks a service as a client of Personalizer does."""

    def __init__(self, ask: Caller, base: str = OLD) -> None:
        self.ask, self.base, self.service = ask, base, ask.service

    async def __call__(self, method: str, path: str, told: Any = None, **more: Any) -> Reply:
        return await self.ask(method, self.base + path, told, **more)

    async def rank(self, *ids: str, **more: Any) -> Any:
        reply = await self("POST", "/rank", rank_of(*ids, **more))
        assert reply.status == 201, reply
        return reply.body


def tell(config: Config, story: Callable[[Client], Awaitable[_Told]], *, base: str = OLD) -> _Told:
    """Start a service, let a story happen, and stop it."""
    return run(config, lambda ask: story(Client(ask, base)))
