"""What is done at each route: parse, ask the service, encode the answer."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET, UnsetType

from fastbandit.errors import FastbanditError, LogError, ValueOfColumnError
from fastbandit.serving import problems, schemas
from fastbandit.serving.arm_columns import add_columns, check_columns, with_titles
from fastbandit.serving.capacity import Capacity
from fastbandit.serving.console import STATIC
from fastbandit.serving.console.learned_names import learned_names
from fastbandit.serving.decider import Serving, not_ready
from fastbandit.serving.explaining import Known, explain_arm, explain_decision, unknown_decision
from fastbandit.serving.handlers import Answer, Handler, Table, always, read_body
from fastbandit.serving.json_names import check_names
from fastbandit.serving.learner_process import BEHIND
from fastbandit.serving.metrics import render
from fastbandit.serving.openapi import openapi
from fastbandit.serving.personalizer.routes import PersonalizerRoutes
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.serving.promotion import promote_command
from fastbandit.serving.quotas import Quotas
from fastbandit.serving.rejections import overloaded
from fastbandit.serving.request_limits import check_rewards, check_size, is_long, rows_of
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.service import Service
from fastbandit.storage.arm_changes import ArmsOutcome
from fastbandit.storage.deferral import revealed
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Outcome, RewardCame

_MANY_REWARDS = 100  # more are read, and put together, in a thread
_ENCODE = msgspec.json.Encoder().encode
_STATUS = {"counted": 200, "duplicate": 200, "late": 202, "conflicting": 409}  # else 404


class Routes:
    """What a service answers, by path and method."""

    def __init__(self, service: Service, capacity: Capacity, quotas: Quotas) -> None:
        self.service, self.capacity, self.quotas = service, capacity, quotas
        self._do = service.large.do
        self._is_binary = service.config.reward.kind == "binary"
        self._weighs = bool(service.config.reward.weights)
        self._read_select = msgspec.json.Decoder(schemas.SelectRequest).decode
        self._read_reward = msgspec.json.Decoder(schemas.RewardRequest).decode
        self._read_put = msgspec.json.Decoder(schemas.UpsertArmsRequest).decode
        self._read_delete = msgspec.json.Decoder(schemas.DiscardArmsRequest).decode
        check_names(b'{"a": 1, "b": 2}')  # compiled before anyone waits for it

    def table(self) -> Table:
        """Return every route: path, method, the scope it needs, and what answers."""
        found: Table = {
            "/v1/select": {"POST": ("select", self._without_secrets(self.select))},
            "/v1/reward": {"POST": ("reward", self.reward)},
            "/v1/arms": {
                "PUT": ("admin", self._without_secrets(self.upsert_arms)),
                "DELETE": ("admin", self.discard_arms),
            },
            "/v1/decisions/{id}/explanation": {"GET": ("admin", self.explanation)},
            "/v1/arms/{id}/explanation": {"GET": ("admin", self.arm_explanation)},
            "/v1/status": {"GET": ("admin", self.status)},
            "/live": {"GET": (None, always(200, b'{"status":"live"}'))},
            "/ready": {"GET": (None, self.ready)},
            "/metrics": {"GET": ("admin", self.metrics)},
            "/openapi.json": {"GET": (None, self.openapi)},
        }
        if self.service.config.server.console:
            found["/v1/console"] = {"GET": ("admin", self.console)}
            found |= {
                path: {"GET": (None, always(200, page))} for path, (page, _) in STATIC.items()
            }
            found["/"] = {"GET": (None, always(307, b""))}  # to the console
        if self.service.config.personalizer.enabled:
            own = PersonalizerRoutes(self.service, self.capacity, self.quotas).table()
            for path, methods in own.items():
                hidden = {m: (scope, self._without_secrets(h)) for m, (scope, h) in methods.items()}
                found[path] = hidden
        return found

    def _without_secrets(self, handler: Handler) -> Handler:
        """Return what answers as the handler does, and repeats no secret value."""
        if not self.service.decider.secrets.names:
            return handler

        async def answer(body: bytes, key: str) -> Answer:
            with self.service.decider.secrets.hidden():
                return await handler(body, key)

        return answer

    # -- select and reward

    async def select(self, body: bytes, key: str) -> Answer:
        request = await read_body(self._read_select, body, self._do)
        interactions = check_size(request, self.service.config.limits, len(body))
        rows, capacity = rows_of(request), self.capacity
        if capacity.has_no_room(rows):
            raise self._too_many()
        serving = self._serving()
        if request.columns:
            check_columns(serving.bandit, request.columns)
        self.quotas.take(key, "interactions", interactions)
        with capacity.taken(rows):
            made = await self.service.select(request)
        answer = partial(self._selected, request, made, serving)
        return 200, await self._do(answer) if is_long(request) else answer()

    def _selected(
        self, request: schemas.SelectRequest, made: list[DecisionMade], serving: Serving
    ) -> bytes:
        """Write what was decided."""
        is_shadow = self.service.decider.shadow is not None
        answers = [_answer_of(one, request, is_shadow) for one in made]
        if request.columns:
            add_columns(answers, serving.bandit, request.columns)
        return _ENCODE(answers[0] if request.contexts is UNSET else schemas.SelectAnswers(answers))

    async def reward(self, body: bytes, key: str) -> Answer:
        request = await read_body(self._read_reward, body, self._do)
        if self.service.writer.waiting >= 2 * self.capacity.most_rows:
            raise self._too_many()
        given = _rewards_of(request, weighs=self._weighs)
        check_rewards(len(given), self.service.config.limits)
        self.quotas.take(key, "interactions", len(given))
        is_list = request.rewards is not UNSET or request.outcomes is not UNSET
        is_many = len(given) > _MANY_REWARDS
        read = partial(self._came, given, is_list=is_list)
        outcomes = await self.service.reward(await self._do(read) if is_many else read())
        if not is_list:
            status = outcomes[0].status
            return _STATUS.get(status, 404), _ENCODE(_taken(given[0], outcomes[0]))
        answer = partial(_all_taken, given, outcomes)
        return 200, await self._do(answer) if is_many else answer()

    def _came(self, given: list[schemas.Reward], *, is_list: bool) -> list[RewardCame]:
        """Return rewards as events, or reject one that this service does not take."""
        odd = (n for n, one in enumerate(given) if self._is_binary and one.value not in (0, 1))
        for n in odd:
            raise wrong_field(
                "This service takes binary rewards: 0 or 1.",
                fix='Send 0 or 1, or set reward.kind = "real".',
                field=f"rewards[{n}].value" if is_list else "value",
                value=given[n].value,
            )
        return [RewardCame(one.decision, one.value, one.arm, one.part) for one in given]

    def _too_many(self) -> Rejection:
        self.service.metrics.rejected += 1
        return overloaded()

    # -- arms

    async def upsert_arms(self, body: bytes, key: str) -> Answer:
        request = await read_body(self._read_put, body, self._do)
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

    async def discard_arms(self, body: bytes, key: str) -> Answer:
        request = await read_body(self._read_delete, body, self._do)
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

    async def explanation(self, query: bytes, key: str) -> Answer:
        asked = parse_qs(query.decode("latin-1"))
        id, arm = asked["id"][0], asked.get("arm", [None])[0]
        made = await asyncio.to_thread(self.service.decision, id)
        if made is None or revealed(made) is not made:  # one that is deferred is none yet
            raise unknown_decision(id)
        explain = partial(explain_decision, self._serving(), made, arm=arm, known=self._known())
        return 200, _ENCODE(await asyncio.to_thread(explain))

    async def arm_explanation(self, query: bytes, key: str) -> Answer:
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

    async def openapi(self, query: bytes, key: str) -> Answer:
        decider = self.service.decider
        arms = None if decider.serving is None else arm_schema_of(decider.serving.bandit)
        return 200, _ENCODE(openapi(decider.schema, decider.secrets.arms(arms)))

    async def status(self, query: bytes, key: str) -> Answer:
        return 200, _ENCODE(self.service.status(await self.service.totals()))

    async def ready(self, query: bytes, key: str) -> Answer:
        reasons = self.service.reasons()
        outages, link = self.service.outages(), self.service.link
        found = schemas.Readiness(
            "not ready" if reasons else "ready",
            [*reasons, *outages, *(link.problems() if link else ())],
            rewards="not ready" if outages else "ready",
        )
        return (503 if reasons else 200), _ENCODE(found)

    async def metrics(self, query: bytes, key: str) -> Answer:
        metrics = await self.service.totals()
        status = self.service.status(metrics)
        gauges = {
            "ready": float(status.ready),
            "version": float(-1 if status.version is None else status.version),
            "arms": float(status.arms),
            "events": float(status.events),
            "waiting_for_log": float(self.service.writer.waiting),
            "problems": float(len(status.problems)),
            "refused_in_a_row": float(status.refused_in_a_row),
            "learner_lag_seconds": float(status.learner.get("lag_seconds") or 0.0),
            "learner_behind": float(any(one.name == BEHIND for one in status.problems)),
        }
        delta = self.service.follower.delta
        if delta is not None:
            gauges |= {"delta": float(delta.number), "delta_events": float(delta.seq)}
        if status.baseline:
            gauges["baseline_decides"] = float(status.decides == "baseline")
        spooled = self.service.spooled
        gauges |= self.service.log_watch.gauges()
        gauges["log_unavailable"] = float(spooled is not None and spooled.unavailable is not None)
        gauges["spooled"] = float(0 if spooled is None else spooled.waiting)
        if spooled is not None:
            metrics.spool_conflicts = spooled.conflicts
        if self.service.link is not None:
            gauges |= self.service.link.gauges()
        return 200, render(metrics, gauges)

    async def console(self, query: bytes, key: str) -> Answer:
        asked = parse_qs(query.decode("latin-1")).get("minutes", ["all"])[0]
        if asked != "all" and not (asked.isascii() and asked.isdigit() and len(asked) < 9):
            raise wrong_field(
                "The range needs to be a number of minutes, or all.",
                fix="Ask for /v1/console?minutes=60.",
                field="minutes",
                value=asked,
            )
        minutes = None if asked == "all" else max(1, int(asked))
        metrics = await self.service.totals()
        status = self.service.status(metrics)
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
        decides, title = self.service.decider.serving, self.service.config.arms.title
        secrets = self.service.decider.secrets
        if decides is not None and (names := learned_names(decides.bandit, secrets)):
            serving["names"] = names
        found = await self.service.figures.ask(minutes, msgspec.to_builtins(serving))
        if decides is not None:
            found = await asyncio.to_thread(with_titles, found, decides.bandit, title)
        return 200, found


def _taken(one: schemas.Reward, became: Outcome) -> schemas.RewardAnswer:
    return schemas.RewardAnswer(one.decision, became.status)  # type: ignore[arg-type]


def _all_taken(given: list[schemas.Reward], outcomes: list[Outcome]) -> bytes:
    return _ENCODE(schemas.RewardAnswers(list(map(_taken, given, outcomes))))


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


def _rewards_of(request: schemas.RewardRequest, *, weighs: bool) -> list[schemas.Reward]:
    if not isinstance(request.outcomes, UnsetType):
        return _outcomes_of(request, request.outcomes, weighs=weighs)
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


def _outcomes_of(
    request: schemas.RewardRequest, outcomes: dict[str, float], *, weighs: bool
) -> list[schemas.Reward]:
    """Return each outcome as the reward of its part."""
    others = (request.value, request.rewards, request.part or UNSET)
    is_alone = all(isinstance(other, UnsetType) for other in others) and all(outcomes)
    if not weighs or not is_alone or isinstance(request.decision, UnsetType):
        raise wrong_field(
            "Outcomes need a decision, names, no other reward, and a service that weighs them.",
            fix='Send {"decision": …, "outcomes": {"quality": …}}, and set reward.weights.',
            field="outcomes",
            value=outcomes,
        )
    named = (request.decision, request.arm)
    return [schemas.Reward(named[0], value, named[1], part) for part, value in outcomes.items()]
