"""A service over a few arms, asked in-process: no sockets, no learner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.serving.app import App
from fastbandit.serving.server import key_ring
from fastbandit.serving.service import Service
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.snapshot_store import SnapshotStore

ARMS = 12
FEATURES = 3
CONTEXT = [0.5, -1.0, 2.0]
_Told = TypeVar("_Told")


class Reply(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


class Caller:
    """Asks an app as a server would."""

    def __init__(self, app: App) -> None:
        self.app, self.service = app, app.service

    async def __call__(
        self,
        method: str,
        path: str,
        told: Any = None,
        *,
        raw: bytes | None = None,
        key: str | None = None,
        host: str = "localhost:8080",
        pieces: int = 1,
        more: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"application/json"),),
    ) -> Reply:
        body = raw if raw is not None else b"" if told is None else msgspec.json.encode(told)
        headers = [(b"host", host.encode()), *more]
        if key is not None:
            headers.append((b"authorization", f"Bearer {key}".encode()))
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": headers,
        }
        step = max(1, -(-len(body) // pieces))
        parts = [body[at : at + step] for at in range(0, len(body), step)] or [b""]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        content = sent[1]["body"]
        is_json = "json" in found.get("content-type", "")
        return Reply(sent[0]["status"], msgspec.json.decode(content) if is_json else content, found)

    async def select(self, **more: Any) -> Any:
        """Select for one context; give the answer."""
        reply = await self("POST", "/v1/select", {"context": CONTEXT, **more})
        assert reply.status == 200, reply
        return reply.body


def config_in(folder: Path, **settings: Any) -> Config:
    """Return a config whose data lies in a folder; settings are named section__key."""
    told = {name.replace("__", "."): value for name, value in settings.items()}
    base = {"server.data_dir": str(folder), "context.features": FEATURES}
    return read_config(None, environ={}, overrides={**base, **told})


def write_arms(folder: Path, *, arms: int = ARMS) -> Path:
    """Write a little catalogue; the ids are arm-0 and so on, with a price and a colour."""
    path = folder / "arms.csv"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lines = ["id,a,b,c,price,colour"]
    for row, (a, b, c) in enumerate(rng.normal(size=(arms, 3)).round(3).tolist()):
        lines.append(f"arm-{row},{a},{b},{c},{row},{'red' if row % 2 else 'blue'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def begin(folder: Path, **settings: Any) -> Config:
    """Make a data folder with version 0 of a little catalogue."""
    arms = write_arms(folder)
    config = config_in(folder, arms__file=str(arms), arms__columns=("price", "colour"), **settings)
    publish_initial_version(config, SnapshotStore(folder / "snapshots"))
    return config


def run(config: Config, story: Callable[[Caller], Awaitable[_Told]]) -> _Told:
    """Start a service, let a story happen, and stop it."""

    async def live() -> _Told:
        service = Service(config)
        await service.start()
        try:
            return await story(Caller(App(service, key_ring(config))))
        finally:
            await service.stop()

    return asyncio.run(live())
