"""Requests to every route of the service, good and bad, and what is recorded of the answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from golden_files import FILES, service_config

from fastbandit import __version__
from fastbandit.errors import LogError
from fastbandit.serving.keys import KEYS_FILE, create_key
from fastbandit.serving.rejections import NO_HTTP, OVERLOADED, on_wire
from fastbandit.serving.service import Service
from fastbandit.settings.service import Config
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import CONTEXT, Caller, Reply, begin, config_in, run

RECORDED = Path(__file__).parent / "routes.json"
NEW_ARM = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 99, "colour": "green"}}
ARM_3 = {"arm": "arm-3", "propensity": 0.25}
_VARIES = ("uptime_seconds", "select_p50_s", "select_p99_s")
_SECRET = re.compile(r"fb_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")
_MADE_ID = re.compile(r"^[0-9a-f]{16,}$")

Answer = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """A request; `key` names one of the keys of its scene, `trouble` what is broken meanwhile.

    `times` of the same request are sent at once.
    """

    method: str
    path: str
    told: Any = None
    raw: bytes | None = None
    key: str | None = None
    host: str = "localhost:8080"
    trouble: str = ""
    times: int = 1


@dataclass(frozen=True)
class Scene:
    """A service, and the requests that it gets, in their order.

    It is made in a folder, from another that holds the first version of a service.
    """

    make: Callable[[Path, Path], Config]
    asks: list[Ask]
    keys: dict[str, list[str]] = field(default_factory=dict)


# -- services


def first(**settings: Any) -> Callable[[Path, Path], Config]:
    """Give what makes a service that has learned nothing yet."""

    def make(folder: Path, begun: Path) -> Config:
        shutil.copytree(begun / "snapshots", folder / "snapshots")
        return config_in(folder, **settings)

    return make


def empty(folder: Path, begun: Path) -> Config:
    """Make a service without any version."""
    folder.mkdir()
    return config_in(folder)


def trained(folder: Path, begun: Path) -> Config:
    """Make a service that has learned: its versions lie among the files."""
    shutil.copytree(FILES / "service", folder, dirs_exist_ok=True)
    return service_config(folder)


def select(told: Any, **more: Any) -> Ask:
    return Ask("POST", "/v1/select", told, **more)


def one(**more: Any) -> Ask:
    """Ask for the arms of one context."""
    return select({"context": CONTEXT, **more})


def reward(told: Any, **more: Any) -> Ask:
    return Ask("POST", "/v1/reward", told, **more)


def put(*arms: Any) -> Ask:
    return Ask("PUT", "/v1/arms", {"arms": list(arms)})


def delete(*ids: Any) -> Ask:
    return Ask("DELETE", "/v1/arms", {"ids": list(ids)})


def get(path: str, **more: Any) -> Ask:
    return Ask("GET", path, **more)


# -- what is asked

STRANGER = "fb_00000000_" + "A" * 43
SCENES: dict[str, Scene] = {
    "selects": Scene(
        first(),
        [
            one(),
            one(id="visit-1"),
            one(id="visit-1"),
            one(id="visit-1", k=2),
            one(id="visit-2", k=3),
            one(id="visit-3", propensity=True),
            one(id="visit-4", explore=False),
            one(id="visit-5", eligible=["arm-3"]),
            one(id="visit-6", eligible={"price": {"<": 1}}),
            one(id="visit-7", k=1000),
            select({"contexts": [CONTEXT] * 3, "ids": ["a", "b", "c"], "k": 2}),
            select({"contexts": [CONTEXT] * 2}),
            select({}),
            select({"context": CONTEXT, "contexts": [CONTEXT]}),
            select({"context": [1.0]}),
            select({"contexts": [CONTEXT, [1.0]]}),
            select({"context": {"a": 1.0}}),
            select({"context": [1.0, 2.0, 1e39]}),
            select({"context": "text"}),
            one(k=0),
            one(k=1001),
            one(k=2, propensity=True),
            one(eligible=["nobody"]),
            one(eligible=[]),
            one(eligible={"prise": 1}),
            one(eligible={"price": {"<": "x"}}),
            one(eligible={"price": {"<": -1}}),
            one(eligible={"a": {"b": {"c": 1}}}),
            one(id="a b"),
            one(ids=["a", "b"]),
            select({"contexts": [CONTEXT] * 2, "ids": ["a", "a"]}),
            select({"contexts": [CONTEXT], "id": "a"}),
            one(colour="red"),
            one(baseline=ARM_3),
            select([]),
            select(None, raw=b""),
            select(None, raw=b"{"),
            select(None, raw=b'{"k": NaN}'),
            select(None, raw=b"\xff\xfe"),
            select({"context": CONTEXT}, host="evil.example"),
            select({"context": CONTEXT}, trouble="log"),
            select({"context": CONTEXT}, trouble="fault"),
        ],
    ),
    "rewards": Scene(
        first(),
        [
            one(id="visit-1", k=2),
            reward({"decision": "visit-1", "value": 1}),
            reward({"decision": "visit-1", "value": 1}),
            reward({"decision": "visit-1", "value": 0}),
            reward({"decision": "visit-1", "value": 0, "arm": "nothing"}),
            reward({"decision": "nobody", "value": 1}),
            reward(
                {"rewards": [{"decision": "visit-1", "value": 1}, {"decision": "b", "value": 0}]}
            ),
            reward({}),
            reward({"decision": "visit-1"}),
            reward({"decision": "visit-1", "value": 0.5}),
            reward({"decision": "visit-1", "value": True}),
            reward({"decision": "visit-1", "value": None}),
            reward({"rewards": [{"decision": "visit-1", "value": 2}]}),
            reward({"rewards": []}),
            reward({"decision": "a", "value": 1, "rewards": [{"decision": "a", "value": 1}]}),
            reward({"decision": "visit-1", "value": 1, "colour": "red"}),
            reward(None, raw=b"[1,"),
            reward({"decision": "visit-1", "value": 1}, trouble="log"),
        ],
    ),
    "late rewards": Scene(
        first(reward__wait_seconds=1e-6),
        [one(id="visit-1"), reward({"decision": "visit-1", "value": 1})],
    ),
    "real rewards that add up": Scene(
        first(reward__kind="real", reward__combine="sum"),
        [
            one(id="visit-1"),
            reward({"decision": "visit-1", "value": 0.5, "part": "click"}),
            reward({"decision": "visit-1", "value": 1.5, "part": "sale"}),
            reward({"decision": "visit-1", "value": 1.5, "part": "sale"}),
            reward({"decision": "visit-1", "value": 2.5, "part": "sale"}),
        ],
    ),
    "arms": Scene(
        first(),
        [
            put(NEW_ARM),
            put(NEW_ARM),
            put({**NEW_ARM, "features": [5, 5, 5]}, {**NEW_ARM, "id": 7}),
            one(id="visit-1", eligible={"colour": "green"}, k=2),
            delete("new", "nobody"),
            delete("nobody"),
            one(eligible=["new"]),
            put({**NEW_ARM, "features": [0.1]}),
            put({"id": "a", "features": [0.1, 0.2, 0.3]}),
            put({**NEW_ARM, "columns": {"price": "x", "colour": "red"}}),
            put({**NEW_ARM, "id": ""}),
            put(NEW_ARM, NEW_ARM),
            put(),
            put({"id": "a"}),
            delete(),
            delete(*(f"arm-{row}" for row in range(12)), 7),
            Ask("PUT", "/v1/arms", raw=b"nothing"),
            Ask("DELETE", "/v1/arms", raw=b"nothing"),
            Ask("DELETE", "/v1/arms", {"arms": ["arm-1"]}),
            get("/v1/status"),
        ],
    ),
    "what it is": Scene(
        first(),
        [
            get("/live"),
            get("/ready"),
            get("/v1/status"),
            get("/metrics"),
            get("/openapi.json"),
            get("/"),
            get("/console/"),
            get("/console/console.css"),
            get("/console/console.js"),
            get("/console/drawing.js"),
            get("/console/shadow.js"),
            get("/v1/console"),
            get("/v1/console?minutes=60"),
            get("/v1/console?minutes=soon"),
            get("/v1/status", host="evil.example"),
            get("/v1/selekt"),
            get("/console"),
            get("/v1/select"),
            get("/v1/reward"),
            get("/v1/arms"),
            Ask("POST", "/v1/status"),
            Ask("POST", "/live"),
            Ask("DELETE", "/v1/select"),
            Ask("HEAD", "/ready"),
            Ask("OPTIONS", "/metrics"),
        ],
    ),
    "keys": Scene(
        first(),
        [
            get("/live"),
            get("/ready"),
            get("/openapi.json"),
            get("/v1/status"),
            get("/v1/status", key=""),
            get("/v1/status", key="nonsense"),
            get("/v1/status", key=STRANGER),
            get("/v1/status", key="select"),
            get("/metrics", key="reward"),
            get("/v1/console", key="select"),
            get("/ready", key="admin"),
            select({"context": CONTEXT, "id": "visit-1"}),
            select({"context": CONTEXT, "id": "visit-1"}, key="reward"),
            select({"context": CONTEXT, "id": "visit-1"}, key="select"),
            select({"context": CONTEXT, "id": "visit-1"}, key="admin", host="evil.example"),
            reward({"decision": "visit-1", "value": 1}),
            reward({"decision": "visit-1", "value": 1}, key="select"),
            reward({"decision": "visit-1", "value": 1}, key="reward"),
            Ask("PUT", "/v1/arms", {"arms": [NEW_ARM]}, key="select"),
            Ask("PUT", "/v1/arms", {"arms": [NEW_ARM]}, key="admin"),
            Ask("DELETE", "/v1/arms", {"ids": ["new"]}),
            Ask("DELETE", "/v1/arms", {"ids": ["new"]}, key="admin"),
        ],
        keys={"select": ["select"], "reward": ["reward"], "admin": ["admin"]},
    ),
    "no snapshot": Scene(
        empty,
        [
            get("/live"),
            get("/ready"),
            get("/v1/status"),
            one(),
            delete("a"),
            put({"id": "a", "features": [1.0, 2.0]}),
            put({"id": "b", "features": [1.0]}),
            reward({"decision": "visit-1", "value": 1}),
        ],
    ),
    "small bodies": Scene(
        first(server__max_body_bytes=100),
        [select(None, raw=b" " * 101), reward(None, raw=b" " * 500), one(id="visit-1")],
    ),
    "no room": Scene(
        first(server__max_waiting=1), [select({"contexts": [CONTEXT] * 10, "k": 1}, times=2)]
    ),
    "no console": Scene(
        first(server__console=False), [get("/"), get("/console/"), get("/v1/console"), get("/live")]
    ),
    "named features": Scene(
        first(context__features=0, context__names=("x", "y", "z")),
        [
            select({"context": {"z": 3.0, "x": 1.0, "y": 2.0}, "id": "visit-1"}),
            select({"context": {"x": 1.0, "y": 2.0}}),
            select({"context": {"x": 1.0, "y": 2.0, "z": 3.0, "a": 1.0}}),
            select({"context": {"x": 1.0, "y": 2.0, "z": "3"}}),
        ],
    ),
    "a baseline": Scene(
        first(shadow__baseline="request"),
        [
            one(id="visit-1", baseline=ARM_3),
            one(id="visit-1", baseline=ARM_3),
            one(id="visit-1", baseline={"arm": "arm-1"}),
            one(id="visit-2", baseline={"arm": "nobody"}),
            one(id="visit-2", baseline={"arm": "arm-1", "propensity": 0}),
            one(id="visit-2", baseline=ARM_3, eligible=["arm-1"]),
            one(id="visit-2"),
            select({"contexts": [CONTEXT] * 2, "ids": ["a", "b"], "baselines": [ARM_3] * 2}),
            select({"contexts": [CONTEXT] * 2, "baselines": [ARM_3]}),
            get("/v1/status"),
            get("/v1/console"),
            get("/metrics"),
        ],
    ),
    "after learning": Scene(
        trained,
        [
            get("/ready"),
            get("/v1/status"),
            *(one(id=f"visit-{number}") for number in range(4)),
            one(id="visit-4", k=5),
            one(id="visit-5", propensity=True),
            one(id="visit-6", explore=False),
            one(id="visit-7", eligible={"price": {"<": 5}, "colour": "red"}, k=2),
            one(id="visit-8", eligible=["arm-0"]),
            select({"contexts": [CONTEXT] * 9, "ids": [f"many-{number}" for number in range(9)]}),
            reward({"decision": "visit-0", "value": -0.5}),
            put(NEW_ARM),
            delete("new"),
            get("/v1/console"),
            get("/metrics"),
            get("/v1/decisions/visit-0/explanation"),
            get("/v1/arms/arm-0/explanation"),
        ],
    ),
}


# -- recording


def answers() -> dict[str, Any]:
    """Ask everything; give what is kept of the answers, by scene."""
    with tempfile.TemporaryDirectory() as name:
        begun = Path(name) / "begun"
        begin(begun)
        found: dict[str, Any] = {
            scene: answers_of(scene, Path(name) / scene, begun) for scene in SCENES
        }
    return {**found, "on the wire": on_the_wire()}


def on_the_wire() -> list[str]:
    """Give the refusals that are sent before a request is read, as they are sent."""
    said = ((OVERLOADED, False), (OVERLOADED, True), (NO_HTTP, True))
    return [on_wire(one, is_last=is_last).decode() for one, is_last in said]


def answers_of(name: str, folder: Path, begun: Path) -> list[Answer]:
    """Play one scene in a new folder; `begun` holds the first version of a service."""
    scene = SCENES[name]
    config = scene.make(folder, begun)
    keys = {
        kind: create_key(folder / KEYS_FILE, name=kind, scopes=scopes)[0]
        for kind, scopes in scene.keys.items()
    }

    async def story(ask: Caller) -> list[Answer]:
        found = []
        for asked in scene.asks:
            with _broken(asked.trouble):
                sent = [_send(ask, asked, keys) for _ in range(asked.times)]
                replies = await asyncio.gather(*sent)
            found += [_kept(asked, reply, folder) for reply in replies]
        return found

    return run(config, story)


async def _send(ask: Caller, asked: Ask, keys: dict[str, str]) -> Reply:
    key = None if asked.key is None else keys.get(asked.key, asked.key)
    return await ask(asked.method, asked.path, asked.told, raw=asked.raw, key=key, host=asked.host)


@contextmanager
def _broken(trouble: str) -> Iterator[None]:
    """Break the log, or the service itself, for a while."""
    full = LogError("The event log needs room: the disk is full. Make room.")
    if trouble == "log":
        with patch.object(SqliteLog, "append", side_effect=full):
            yield
    elif trouble == "fault":
        with patch.object(Service, "select", side_effect=ZeroDivisionError):
            yield
    else:
        yield


def _kept(asked: Ask, reply: Reply, folder: Path) -> Answer:
    headers = {name: told for name, told in reply.headers.items() if name != "content-length"}
    return {
        "asked": _named(asked),
        "status": reply.status,
        "headers": dict(sorted(headers.items())),
        "body": _body_of(asked.path, reply, folder),
    }


def _named(asked: Ask) -> str:
    told = "" if asked.told is None else json.dumps(asked.told)
    sent = told if asked.raw is None else repr(asked.raw)
    named = {"key": asked.key, "broken": asked.trouble or None}
    more = [f"({name}: {value})" for name, value in named.items() if value is not None]
    if asked.host != Ask("", "").host:
        more.append(f"(host: {asked.host})")
    shown = sent if len(sent) < 120 else f"{sent[:100]}… of {len(sent)}"
    return " ".join([asked.method, asked.path, *more, shown]).strip()


def _body_of(path: str, reply: Reply, folder: Path) -> Any:
    """Give what is kept of a body: all, but of long or varying ones only what they are made of."""
    body, is_fine = reply.body, reply.status == 200
    if path == "/metrics" and is_fine:
        names = re.findall(r"^# TYPE (\S+) (\S+)$", body.decode(), flags=re.MULTILINE)
        return {"metrics": sorted(f"{name} {kind}" for name, kind in names)}
    if path.startswith("/console/") and is_fine:
        return "<page>"
    if path == "/openapi.json":
        told = json.dumps(body, sort_keys=True).replace(__version__, "<version>")
        routes = [f"{method} {one}" for one, some in body["paths"].items() for method in some]
        return {"routes": sorted(routes), "sha256": hashlib.sha256(told.encode()).hexdigest()}
    if path.startswith("/v1/console") and is_fine:
        return {key: sorted(held) if isinstance(held, dict) else "…" for key, held in body.items()}
    if isinstance(body, bytes):
        return body.decode()
    return _placed(body, folder)


def _placed(value: Any, folder: Path, name: str = "") -> Any:
    """Put placeholders in the place of what varies."""
    if name in _VARIES:
        return f"<{name}>"
    if isinstance(value, dict):
        told = {key: _placed(held, folder, key) for key, held in value.items()}
        if _MADE_ID.match(str(told.get("decision"))):  # of which the arms are drawn
            told |= {"decision": "<id>", "arms": [f"<arm {n}>" for n in range(len(told["arms"]))]}
        return told
    if isinstance(value, list):
        return [_placed(held, folder) for held in value]
    if isinstance(value, str):
        text = _SECRET.sub("<key>", value.replace(str(folder), "<folder>"))
        return text.replace(__version__, "<version>")
    return value
