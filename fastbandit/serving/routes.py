"""What is done at each route: parse, ask the service, encode the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET, UnsetType

from fastbandit.errors import FastbanditError, LogError, ValueOfColumnError
from fastbandit.serving import problems, schemas
from fastbandit.serving.arm_columns import add_columns, check_columns, with_titles
from fastbandit.serving.console import STATIC
from fastbandit.serving.decider import Serving, not_ready
from fastbandit.serving.explaining import Known, explain_arm, explain_decision, unknown_decision
from fastbandit.serving.keys import Scope
from fastbandit.serving.metrics import render
from fastbandit.serving.openapi import openapi
from fastbandit.serving.overload import Capacity, overloaded
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.serving.promotion import promote_command
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.service import ArmsOutcome, Service
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame

Answer = tuple[int, bytes]
Route = tuple[Scope | None, Callable[[bytes], Awaitable[Answer]]]
"""The scope that a key needs, and what answers a body, or the query of a GET."""
_ENCODE = msgspec.json.Encoder().encode
_STATUS = {"counted": 200, "duplicate": 200, "late": 202, "conflicting": 409}  # else 404


class Routes:
    """What a service answers, by path and method."""

    def __init__(self, service: Service, capacity: Capacity) -> None:
        self.service, self.capacity = service, capacity
        self._is_binary = service.config.reward.kind == "binary"
        self._read_select = msgspec.json.Decoder(schemas.SelectRequest).decode
        self._read_reward = msgspec.json.Decoder(schemas.RewardRequest).decode
        self._read_put = msgspec.json.Decoder(schemas.UpsertArmsRequest).decode
        self._read_delete = msgspec.json.Decoder(schemas.DiscardArmsRequest).decode

    def table(self) -> dict[str, dict[str, Route]]:
        """Return every route: path, method, the scope it needs, and what answers."""
        found: dict[str, dict[str, Route]] = {
            "/v1/select": {"POST": ("select", self.select)},
            "/v1/reward": {"POST": ("reward", self.reward)},
            "/v1/arms": {
                "PUT": ("admin", self.upsert_arms),
                "DELETE": ("admin", self.discard_arms),
            },
            "/v1/decisions/{id}/explanation": {"GET": ("admin", self.explanation)},
            "/v1/arms/{id}/explanation": {"GET": ("admin", self.arm_explanation)},
            "/v1/status": {"GET": ("admin", self.status)},
            "/live": {"GET": (None, _always(200, b'{"status":"live"}'))},
            "/ready": {"GET": (None, self.ready)},
            "/metrics": {"GET": ("admin", self.metrics)},
            "/openapi.json": {"GET": (None, self.openapi)},
        }
        if self.service.config.server.console:
            found["/v1/console"] = {"GET": ("admin", self.console)}
            found |= {
                path: {"GET": (None, _always(200, page))} for path, (page, _) in STATIC.items()
            }
            found["/"] = {"GET": (None, _always(307, b""))}  # to the console
        return found

    # -- select and reward

    async def select(self, body: bytes) -> Answer:
        request = _read(self._read_select, body)
        contexts, capacity = request.contexts, self.capacity
        rows = 1 if isinstance(contexts, UnsetType) else len(contexts)
        if capacity.rows and capacity.rows + rows > capacity.most_rows:
            raise self._too_many()
        serving = self._serving()
        if request.columns:
            check_columns(serving.bandit, request.columns)
        capacity.rows += rows
        try:
            made = await self.service.select(request)
        finally:
            capacity.rows -= rows
        is_shadow = self.service.decider.shadow is not None
        answers = [_answer_of(one, request, is_shadow) for one in made]
        if request.columns:
            await asyncio.to_thread(add_columns, answers, serving.bandit, request.columns)
        if request.contexts is UNSET:
            return 200, _ENCODE(answers[0])
        return 200, _ENCODE(schemas.SelectAnswers(answers))

    async def reward(self, body: bytes) -> Answer:
        request = _read(self._read_reward, body)
        if self.service.writer.waiting >= 2 * self.capacity.most_rows:
            raise self._too_many()
        given = _rewards_of(request)
        for n, one in enumerate(given):
            self._check_reward(one, "value" if request.rewards is UNSET else f"rewards[{n}].value")
        came = [RewardCame(one.decision, one.value, one.arm, one.part) for one in given]
        outcomes = await self.service.reward(came)
        both = zip(given, outcomes, strict=True)
        answers = [schemas.RewardAnswer(one.decision, became.status) for one, became in both]  # type: ignore[arg-type]
        if request.rewards is not UNSET:
            return 200, _ENCODE(schemas.RewardAnswers(answers))
        return _STATUS.get(answers[0].status, 404), _ENCODE(answers[0])

    def _check_reward(self, one: schemas.Reward, field: str) -> None:
        if self._is_binary and one.value not in (0, 1):
            raise wrong_field(
                "This service takes binary rewards: 0 or 1.",
                fix='Send 0 or 1, or set reward.kind = "real".',
                field=field,
                value=one.value,
            )

    def _too_many(self) -> Rejection:
        self.service.metrics.rejected += 1
        return overloaded()

    # -- arms

    async def upsert_arms(self, body: bytes) -> Answer:
        request = _read(self._read_put, body)
        ids = [arm.id for arm in request.arms]
        if len(set(ids)) != len(ids):
            twice = next(id for n, id in enumerate(ids) if id in ids[:n])
            raise wrong_field(
                "Each arm needs an id of its own within a request.",
                fix="Drop or rename one of the two.",
                field="arms",
                value=twice,
            )
        change = ArmsChanged(
            upserted=[Arm(arm.id, arm.features, arm.columns) for arm in request.arms]
        )
        changed = await self._change(change, "arms", ids[:3])
        answer = schemas.UpsertArmsAnswer(*changed.counts, changed.arms, changed.catalogue)
        return 200, _ENCODE(answer)

    async def discard_arms(self, body: bytes) -> Answer:
        request = _read(self._read_delete, body)
        ids = list(dict.fromkeys(request.ids))
        changed = await self._change(ArmsChanged(discarded=ids), "ids", ids[:3])
        removed = len(ids) - len(changed.unknown)
        answer = schemas.DiscardArmsAnswer(
            removed, changed.unknown, changed.arms, changed.catalogue
        )
        return 200, _ENCODE(answer)

    async def _change(self, change: ArmsChanged, field: str, value: Any) -> ArmsOutcome:
        try:
            return await self.service.change_arms(change)
        except LogError:
            raise
        except ValueOfColumnError as error:
            row = error.row or 0
            features: Any = change.upserted[row].features
            came = features.get(error.column)
            at = f"arms[{row}].features.{error.column}"
            raise problems.rejection_of_error(error, field=at, value=came) from error
        except FastbanditError as error:
            raise problems.rejection_of_error(error, field=field, value=value) from error

    # -- why

    async def explanation(self, query: bytes) -> Answer:
        asked = parse_qs(query.decode("latin-1"))
        id, arm = asked["id"][0], asked.get("arm", [None])[0]
        made = await asyncio.to_thread(self.service.decision, id)
        if made is None:
            raise unknown_decision(id)
        explain = partial(explain_decision, self._serving(), made, arm=arm, known=self._known())
        return 200, _ENCODE(await asyncio.to_thread(explain))

    async def arm_explanation(self, query: bytes) -> Answer:
        arm = parse_qs(query.decode("latin-1"))["id"][0]
        explain = partial(explain_arm, self._serving(), arm, known=self._known())
        return 200, _ENCODE(await asyncio.to_thread(explain))

    def _known(self) -> Known:
        config = self.service.config
        return Known(config.context.names, config.arms.title, self.service.follower.features_of)

    def _serving(self) -> Serving:
        serving = self.service.decider.serving
        if serving is None:
            raise not_ready(self.service.reasons())
        return serving

    # -- what it is now

    async def openapi(self, query: bytes) -> Answer:
        decider = self.service.decider
        arms = None if decider.serving is None else arm_schema_of(decider.serving.bandit)
        return 200, _ENCODE(openapi(decider.schema, arms))

    async def status(self, query: bytes) -> Answer:
        return 200, _ENCODE(self.service.status())

    async def ready(self, query: bytes) -> Answer:
        reasons = self.service.reasons()
        outages = self.service.outages()
        found = schemas.Readiness(
            "not ready" if reasons else "ready",
            reasons + outages,
            rewards="not ready" if outages else "ready",
        )
        return (503 if reasons else 200), _ENCODE(found)

    async def metrics(self, query: bytes) -> Answer:
        status = self.service.status()
        gauges = {
            "ready": float(status.ready),
            "version": float(-1 if status.version is None else status.version),
            "arms": float(status.arms),
            "events": float(status.events),
            "waiting_for_log": float(self.service.writer.waiting),
            "problems": float(len(status.problems)),
            "refused_in_a_row": float(status.refused_in_a_row),
            "learner_lag_seconds": float(status.learner.get("lag_seconds") or 0.0),
        }
        delta = self.service.follower.delta
        if delta is not None:
            gauges |= {"delta": float(delta.number), "delta_events": float(delta.seq)}
        if status.baseline:
            gauges["baseline_decides"] = float(status.decides == "baseline")
        spooled = self.service.spooled
        gauges["log_unavailable"] = float(spooled is not None and spooled.unavailable is not None)
        gauges["spooled"] = float(0 if spooled is None else spooled.waiting)
        if spooled is not None:
            self.service.metrics.spool_conflicts = spooled.conflicts
        return 200, render(self.service.metrics, gauges)

    async def console(self, query: bytes) -> Answer:
        asked = parse_qs(query.decode("latin-1")).get("minutes", ["all"])[0]
        if asked != "all" and not (asked.isascii() and asked.isdigit() and len(asked) < 9):
            raise wrong_field(
                "The range needs to be a number of minutes, or all.",
                fix="Ask for /v1/console?minutes=60.",
                field="minutes",
                value=asked,
            )
        minutes = None if asked == "all" else max(1, int(asked))
        status, metrics = self.service.status(), self.service.metrics
        serving: dict[str, Any] = {
            **status.serving,
            "arms": status.arms,
            "problems": status.problems,
            "latency": [*metrics.windows],
        }
        if status.baseline:
            command = promote_command(self.service.config, status.decides)
            shadow = {"baseline": status.baseline, "decides": status.decides, "command": command}
            serving["shadow"] = shadow
        found = await self.service.figures.ask(minutes, msgspec.to_builtins(serving))
        decides, title = self.service.decider.serving, self.service.config.arms.title
        if decides is not None:
            found = await asyncio.to_thread(with_titles, found, decides.bandit, title)
        return 200, found


def _always(status: int, body: bytes) -> Callable[[bytes], Awaitable[Answer]]:
    """Return what answers with the same each time."""

    async def answer(query: bytes) -> Answer:
        return status, body

    return answer


def _read(decode: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise problems.rejection_of_body(error, body) from error


def _answer_of(
    made: DecisionMade, request: schemas.SelectRequest, is_shadow: bool
) -> schemas.SelectAnswer:
    both = (request.eligible, made.eligible)  # as sent, and as decided: also in a retry
    sizes = [len(one) for one in both if isinstance(one, list)]
    return schemas.SelectAnswer(
        made.id,
        made.arms,
        made.scores,
        made.version,
        made.catalogue,
        made.degraded,
        made.propensities,
        decided_by=made.decided_by if is_shadow else UNSET,
        other=made.other if is_shadow else UNSET,
        dropped=sizes[0] - sizes[1] if len(sizes) == 2 and sizes[0] > sizes[1] else UNSET,
    )


def _rewards_of(request: schemas.RewardRequest) -> list[schemas.Reward]:
    if not isinstance(request.rewards, UnsetType):
        if request.decision is UNSET and request.value is UNSET:
            return request.rewards
    elif not isinstance(request.decision, UnsetType) and not isinstance(request.value, UnsetType):
        return [schemas.Reward(request.decision, request.value, request.arm, request.part)]
    raise wrong_field(
        "A request needs either decision and value, or a list of rewards.",
        fix='Send {"decision": …, "value": …}, or {"rewards": [{…}, …]}.',
        field="rewards",
    )
