"""HTTP in front of a service: raw ASGI, one table of routes; parse, ask the service, reply.

The limits stand here: the bytes of a body, who may ask, and how many may wait.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET, UnsetType

from fastbandit import __version__
from fastbandit.errors import DataError, FastbanditError, LogError
from fastbandit.events import Arm, ArmsChanged, DecisionMade, Outcome, RewardCame
from fastbandit.serving.console import CONTENT_SECURITY_POLICY, STATIC
from fastbandit.serving.decider import not_ready
from fastbandit.serving.keys import KeyFault, KeyRing
from fastbandit.serving.keys import Scope as Right
from fastbandit.serving.measures import render
from fastbandit.serving.openapi import openapi
from fastbandit.serving.problems import (
    Refusal,
    refusal_of_body,
    refusal_of_error,
    wrong_field,
)
from fastbandit.serving.refusing import Room, overloaded
from fastbandit.serving.schemas import (
    DeleteArmsAnswer,
    DeleteArmsRequest,
    PutArmsAnswer,
    PutArmsRequest,
    Readiness,
    Reward,
    RewardAnswer,
    RewardAnswers,
    RewardRequest,
    SelectAnswer,
    SelectAnswers,
    SelectRequest,
)
from fastbandit.serving.service import Changed, Service
from fastbandit.serving.status import status_of

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Answer = tuple[int, bytes]
Route = tuple[Right | None, Callable[[bytes], Awaitable[Answer]]]

_LOGGER = logging.getLogger("fastbandit.serving")
_ENCODE = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")
_PROBLEM = (b"content-type", b"application/problem+json")
_SAFE = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_PAGE = (
    *_SAFE,
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
)
_HEADERS = {"/metrics": (_METRICS, *_SAFE)} | {
    path: ((b"content-type", kind.encode()), *_PAGE) for path, (_, kind) in STATIC.items()
}
"""What is sent with answers that are not JSON."""
_KEYS_SECONDS = 1.0  # a key that was revoked is refused after so long
_LOOPBACK = frozenset({"", "localhost", "127.0.0.1", "::1"})
_STATUS = {"counted": 200, "duplicate": 200, "late": 202, "conflicting": 409}  # else 404


class App:
    """The routes of a service, as an ASGI application."""

    def __init__(self, service: Service, keys: KeyRing) -> None:
        self.service, self.keys = service, keys
        self._keys_read = time.monotonic()
        self._most_bytes = service.config.server.max_body_bytes
        self.room = Room(service.config.server.max_waiting)
        self._is_binary = service.config.reward.kind == "binary"
        self._read_select = msgspec.json.Decoder(SelectRequest).decode
        self._read_reward = msgspec.json.Decoder(RewardRequest).decode
        self._read_put = msgspec.json.Decoder(PutArmsRequest).decode
        self._read_delete = msgspec.json.Decoder(DeleteArmsRequest).decode
        post, put, delete = "POST", "PUT", "DELETE"
        self._routes: dict[str, dict[str, Route]] = {
            "/v1/select": {post: ("select", self._select)},
            "/v1/reward": {post: ("reward", self._reward)},
            "/v1/arms": {put: ("admin", self._put_arms), delete: ("admin", self._delete_arms)},
            "/v1/status": {"GET": ("admin", self._status)},
            "/live": {"GET": (None, self._live)},
            "/ready": {"GET": (None, self._ready)},
            "/metrics": {"GET": ("admin", self._metrics)},
            "/openapi.json": {"GET": (None, self._openapi)},
        }
        if service.config.server.console:
            self._routes["/v1/console"] = {"GET": ("admin", self._console)}
            self._routes |= {path: {"GET": (None, _page(path))} for path in STATIC}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live_through(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        began, path = time.perf_counter(), scope["path"]
        headers: tuple[tuple[bytes, bytes], ...] = (_JSON, *_SAFE)
        try:
            needed, handle = self._route(scope)
            if needed:
                self._admit(scope, needed)
            status, body = await handle(await self._body(scope, receive))
            headers = _HEADERS.get(path, headers)
        except Refusal as refusal:
            status, body = refusal.status, _ENCODE(refusal.problem)
            headers = (_PROBLEM, *_SAFE, *refusal.headers)
        except LogError as error:
            status, body = 503, _ENCODE(_not_written(error).problem)
            headers = (_PROBLEM, *_SAFE, (b"retry-after", b"1"))
        except Exception:
            _LOGGER.exception("a request failed", extra={"path": path})
            status, body = 500, _ENCODE(_OUR_FAULT.problem)
            headers = (_PROBLEM, *_SAFE)
        size = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, size]})
        await send({"type": "http.response.body", "body": body})
        self._count(path, status, time.perf_counter() - began)

    def _count(self, path: str, status: int, seconds: float) -> None:
        measures = self.service.measures
        measures.answers[(path if path in self._routes else "other", status)] += 1
        if path == "/v1/select" and status == 200:
            measures.selected(seconds)
        elif path == "/v1/reward":
            measures.reward_times.add(seconds)

    # -- who may ask what

    def _route(self, scope: Scope) -> Route:
        methods = self._routes.get(scope["path"])
        if methods is None:
            raise Refusal(
                404,
                "no such route",
                "Nothing is served under this path.",
                fix=f"Use one of {', '.join(self._routes)}.",
                field="path",
                value=scope["path"],
            )
        found = methods.get(scope["method"])
        if found is None:
            raise Refusal(
                405,
                "wrong method",
                f"This path takes {', '.join(methods)}.",
                fix=f"Send {next(iter(methods))}.",
                field="method",
                value=scope["method"],
                headers=((b"allow", ", ".join(methods).encode()),),
            )
        return found

    def _admit(self, scope: Scope, needed: Right) -> None:
        """Refuse who has no key for this; without any keys there is nothing to refuse."""
        self._read_keys()
        if self.keys.is_open:
            _check_host(_header(scope, b"host"))
            return
        kind, _, key = _header(scope, b"authorization").partition(" ")
        fault = self.keys.check(key if kind.lower() == "bearer" else None, needed).fault
        if fault is None:
            return
        is_foreign = fault is not KeyFault.LACKS_SCOPE
        said = "the key lacks it" if not is_foreign else f"the key is {fault.value}"
        raise Refusal(
            401 if is_foreign else 403,
            "no key" if is_foreign else "no right",
            f"This route needs a key with the scope {needed!r}: {said}.",
            fix="Send the header Authorization: Bearer fb_…; `fastbandit keys create` makes one.",
            field="authorization",
            headers=((b"www-authenticate", b"Bearer"),) if is_foreign else (),
        )

    def _read_keys(self) -> None:
        """Read the keys anew if their file changed; a damaged one changes nothing."""
        now = time.monotonic()
        if now - self._keys_read > _KEYS_SECONDS:
            self._keys_read = now
            try:
                self.keys = self.keys.reload()
                self.service.keys_trouble = None
            except DataError as error:
                self.service.keys_trouble = " ".join(str(error).split())

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, but never more than the limit."""
        if scope["method"] == "GET":
            return scope["query_string"]
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body") and len(body) <= self._most_bytes:
            message = await receive()
            body += message.get("body", b"")
        if len(body) > self._most_bytes:
            raise Refusal(
                413,
                "too large",
                f"A body may have at most {self._most_bytes} bytes.",
                fix="Send fewer at a time, or raise server.max_body_bytes.",
                field="body",
                headers=((b"connection", b"close"),),
            )
        return body

    # -- select and reward

    async def _select(self, body: bytes) -> Answer:
        request = _read(self._read_select, body)
        contexts, room = request.contexts, self.room
        rows = 1 if isinstance(contexts, UnsetType) else len(contexts)
        if room.rows and room.rows + rows > room.most_rows:
            raise self._too_many()
        if self.service.decider.serving is None:
            raise not_ready(self.service.reasons())
        room.rows += rows
        try:
            made = await self.service.select(request)
        finally:
            room.rows -= rows
        answers = [_answer_of(one) for one in made]
        for one in made:
            _check_same(request, one, len(made))
        if request.contexts is UNSET:
            return 200, _ENCODE(answers[0])
        return 200, _ENCODE(SelectAnswers(answers))

    async def _reward(self, body: bytes) -> Answer:
        request = _read(self._read_reward, body)
        if self.service.writer.waiting >= 2 * self.room.most_rows:
            raise self._too_many()
        given = _rewards_of(request)
        for place, one in enumerate(given):
            self._check_reward(one, place if request.rewards is not UNSET else None)
        came = [RewardCame(one.decision, one.value, one.arm, one.part) for one in given]
        outcomes = await self.service.reward(came)
        answers = [_told(one, outcome) for one, outcome in zip(given, outcomes, strict=True)]
        if request.rewards is not UNSET:
            return 200, _ENCODE(RewardAnswers(answers))
        return _STATUS.get(answers[0].status, 404), _ENCODE(answers[0])

    def _check_reward(self, one: Reward, place: int | None) -> None:
        if self._is_binary and one.value not in (0, 1):
            raise wrong_field(
                "This service takes binary rewards: 0 or 1.",
                fix='Send 0 or 1, or set reward.kind = "real".',
                field="value" if place is None else f"rewards[{place}].value",
                value=one.value,
            )

    def _too_many(self) -> Refusal:
        self.service.measures.refused += 1
        return overloaded()

    # -- arms

    async def _put_arms(self, body: bytes) -> Answer:
        request = _read(self._read_put, body)
        ids = [arm.id for arm in request.arms]
        if len(set(ids)) != len(ids):
            twice = next(id for place, id in enumerate(ids) if id in ids[:place])
            raise wrong_field(
                "Each arm needs an id of its own within a request.",
                fix="Drop or rename one of the two.",
                field="arms",
                value=twice,
            )
        change = ArmsChanged(put=[Arm(arm.id, arm.features, arm.columns) for arm in request.arms])
        changed = await self._change(change, "arms", ids[:3])
        put = changed.counts
        answer = PutArmsAnswer(
            put.added, put.changed, put.unchanged, changed.arms, changed.catalogue
        )
        return 200, _ENCODE(answer)

    async def _delete_arms(self, body: bytes) -> Answer:
        request = _read(self._read_delete, body)
        ids = list(dict.fromkeys(request.ids))
        changed = await self._change(ArmsChanged(taken=ids), "ids", ids[:3])
        removed = len(ids) - len(changed.unknown)
        answer = DeleteArmsAnswer(removed, changed.unknown, changed.arms, changed.catalogue)
        return 200, _ENCODE(answer)

    async def _change(self, change: ArmsChanged, field: str, value: Any) -> Changed:
        try:
            return await self.service.change_arms(change)
        except LogError:
            raise
        except FastbanditError as error:
            raise refusal_of_error(error, field=field, value=value) from error

    # -- what it is now

    async def _status(self, query: bytes) -> Answer:
        return 200, _ENCODE(status_of(self.service))

    async def _live(self, query: bytes) -> Answer:
        return 200, b'{"status":"live"}'

    async def _ready(self, query: bytes) -> Answer:
        reasons = self.service.reasons()
        if reasons:
            return 503, _ENCODE(Readiness("not ready", reasons))
        return 200, _ENCODE(Readiness("ready", []))

    async def _metrics(self, query: bytes) -> Answer:
        status = status_of(self.service)
        gauges = {
            "ready": float(status.ready),
            "version": float(-1 if status.version is None else status.version),
            "arms": float(status.arms),
            "events": float(status.events),
            "waiting_for_log": float(self.service.writer.waiting),
            "ailments": float(len(status.ailments)),
        }
        return 200, render(self.service.measures, gauges)

    async def _console(self, query: bytes) -> Answer:
        asked = parse_qs(query.decode("latin-1")).get("minutes", ["all"])[0]
        if asked != "all" and not (asked.isascii() and asked.isdigit() and len(asked) < 9):
            raise wrong_field(
                "The range needs to be a number of minutes, or all.",
                fix="Ask for /v1/console?minutes=60.",
                field="minutes",
                value=asked,
            )
        minutes = None if asked == "all" else max(1, int(asked))
        status, measures = status_of(self.service), self.service.measures
        told = {"arms": status.arms, "latency": [*measures.windows], **status.serving}
        return 200, await self.service.figures.ask(minutes, msgspec.to_builtins(told))

    async def _openapi(self, query: bytes) -> Answer:
        return 200, _ENCODE(openapi())

    # -- its life

    async def _live_through(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.service.start()
                except FastbanditError as error:
                    text = " ".join(str(error).split())
                    await send({"type": "lifespan.startup.failed", "message": text})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _page(path: str) -> Callable[[bytes], Awaitable[Answer]]:
    """Give a handler that serves a file of the console."""

    async def serve(query: bytes) -> Answer:
        return 200, STATIC[path][0]

    return serve


def _header(scope: Scope, name: bytes) -> str:
    return next((v for key, v in scope["headers"] if key == name), b"").decode("latin-1")


def _check_host(host: str) -> None:
    """Refuse a page of some other site that a browser on this machine was led here by."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name.strip("[]") not in _LOOPBACK:
        raise Refusal(
            403,
            "foreign host",
            "A service without keys answers requests to this machine's own names only.",
            fix="Ask for localhost or 127.0.0.1, or make keys: `fastbandit keys create`.",
            field="host",
            value=host,
        )


_OUR_FAULT = Refusal(
    500,
    "internal error",
    "The service failed at this request; its log says where.",
    fix=f"Report it with that log; this is fastbandit {__version__}.",
)


def _not_written(error: LogError) -> Refusal:
    return Refusal(
        503,
        "not written",
        f"Nothing was acknowledged: {' '.join(str(error).split())}",
        fix="Send it again, with the same id, when /ready says ready.",
    )


def _read(decode: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise refusal_of_body(error, body) from error


def _answer_of(made: DecisionMade) -> SelectAnswer:
    return SelectAnswer(
        made.id,
        made.arms,
        made.scores,
        made.version,
        made.catalogue,
        made.degraded,
        made.propensities,
    )


def _check_same(request: SelectRequest, made: DecisionMade, count: int) -> None:
    """Refuse an id that stands for the decision of another request."""
    if made.seq == 0 or (request.id is None and request.ids is None):
        return  # made just now
    is_same = made.eligible == request.eligible and made.explored == request.explore
    if is_same and len(made.arms) <= request.k and _has_context(request, made):
        return
    raise Refusal(
        409,
        "id taken",
        "This id stands for the decision of another request.",
        fix="Send an id of its own with each request; a retry sends the same request again.",
        field="id",
        value=made.id,
    )


def _has_context(request: SelectRequest, made: DecisionMade) -> bool:
    if not isinstance(request.context, UnsetType):
        contexts = [request.context]
    else:
        contexts = [] if isinstance(request.contexts, UnsetType) else request.contexts
    return any(isinstance(one, dict) or list(one) == made.context for one in contexts)


def _rewards_of(request: RewardRequest) -> list[Reward]:
    if not isinstance(request.rewards, UnsetType):
        if request.decision is UNSET and request.value is UNSET:
            return request.rewards
    elif not isinstance(request.decision, UnsetType) and not isinstance(request.value, UnsetType):
        return [Reward(request.decision, request.value, request.arm, request.part)]
    raise wrong_field(
        "A request needs either decision and value, or a list of rewards.",
        fix='Send {"decision": …, "value": …}, or {"rewards": [{…}, …]}.',
        field="rewards",
    )


def _told(one: Reward, outcome: Outcome) -> RewardAnswer:
    return RewardAnswer(one.decision, outcome.status)  # type: ignore[arg-type]
