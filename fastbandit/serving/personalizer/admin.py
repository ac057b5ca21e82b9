"""What is done at the routes of Personalizer that administrators use."""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs

import msgspec

from fastbandit.errors import DataError
from fastbandit.runtime.explanation import BASE
from fastbandit.serving.explaining import Known, explain_decision
from fastbandit.serving.handlers import Answer, Route, Table, read_body
from fastbandit.serving.personalizer import configuration, evaluations
from fastbandit.serving.personalizer.errors import not_carried_over
from fastbandit.serving.personalizer.properties import archive_of, log_properties, properties_of
from fastbandit.serving.personalizer.schemas import (
    NEVER,
    ContainerStatus,
    Evaluation,
    EvaluationContract,
    PolicyContract,
    ServiceConfiguration,
)
from fastbandit.serving.problems import Rejection
from fastbandit.serving.promotion import write_promotion
from fastbandit.serving.service import Service
from fastbandit.storage.events import Who
from fastbandit.storage.snapshot_version import Snapshot
from fastbandit.storage.standing_requests import DELETION_FILE, RESET_FILE, ask

_ENCODE = msgspec.json.Encoder().encode
_BY_COMMAND = "Versions are rolled back with `fastbandit rollback`, and made by the learner."
_NO_POLICY = "An evaluation makes no learning settings.", "PUT learningMode to choose who decides."
_NOT_READ = "A log that several services share is not read for a request."
_COPY = "Copy it with `fastbandit copy-log`, and use `fastbandit evaluate`."
_BY_DAYS = "Set log.retain_days; `fastbandit forget` removes what is stored of a subject."
_NO_SDK_LOGS = "Events of local inference are not taken.", "Send rank and reward."


class AdminRoutes:
    """Configuration, policy, model, log and evaluations, by operation and method."""

    def __init__(self, service: Service, stored: configuration.Stored) -> None:
        self.service, self._stored = service, stored
        self._folder = Path(service.config.server.data_dir)
        self._files = evaluations.EvaluationFiles(self._folder)
        self._read_configuration = msgspec.json.Decoder(ServiceConfiguration).decode
        self._read_policy = msgspec.json.Decoder(PolicyContract).decode
        self._read_evaluation = msgspec.json.Decoder(EvaluationContract).decode
        service.polled.append(self.follow)

    def table(self) -> Table:
        """Return the routes: operation, method, the scope it needs, and what answers."""
        return {
            "/configurations/service": {
                "GET": ("admin", self.configuration),
                "PUT": ("admin", self.configure),
            },
            "/configurations/policy": {
                "GET": ("admin", self.policy),
                "PUT": ("admin", self.change_policy),
                "DELETE": ("admin", self.policy),
            },
            "/configurations/applyFromEvaluation": {"POST": _refused(*_NO_POLICY)},
            "/model": {
                "GET": ("admin", self.model),
                "PUT": _refused("A model of Personalizer cannot be read here.", _BY_COMMAND),
                "DELETE": ("admin", self.reset_model),
            },
            "/model/properties": {"GET": ("admin", self.model_properties)},
            "/logs": {"DELETE": ("admin", self.delete_logs)},
            "/logs/properties": {"GET": ("admin", self.log_properties)},
            "/logs/interactions": {"POST": _refused(*_NO_SDK_LOGS)},
            "/logs/observations": {"POST": _refused(*_NO_SDK_LOGS)},
            "/evaluations": {
                "GET": ("admin", self.list_evaluations),
                "POST": ("admin", self.evaluate),
            },
            "/evaluations/{id}": {
                "GET": ("admin", self.evaluation),
                "DELETE": ("admin", self.remove_evaluation),
            },
            "/featureImportances": {"GET": ("admin", self.feature_importances)},
            "/status": {"GET": (None, self.status)},
        }

    # -- configuration

    async def configuration(self, query: bytes, key: str) -> Answer:
        self.follow(is_now=True)
        return 200, _ENCODE(self._shown())

    def _shown(self) -> ServiceConfiguration:
        stored = None
        with suppress(DataError):  # one that cannot be read is not followed either
            stored = configuration.read_stored(self._folder)
        edited = (stored and stored.last_configuration_edit_date) or NEVER
        return configuration.shown(self.service.config, decides=self._decides(), edited=edited)

    def _decides(self) -> Who:
        """Return who decides, also where another worker changed that."""
        shadow = self.service.decider.shadow
        if shadow is None:
            return "bandit"
        shadow.follow()
        return shadow.decides

    async def configure(self, body: bytes, key: str) -> Answer:
        said = await read_body(self._read_configuration, body, self.service.large.do)
        self.follow(is_now=True)
        is_shared, decides, shown = (
            bool(self.service.config.log.url),
            self._decides(),
            self._shown(),
        )
        asked = configuration.filled(said, shown)
        configuration.check_carried_over(asked, decides=decides, is_shared=is_shared)
        configuration.check_changed(asked, shown)
        configuration.applied(self.service.config, asked)  # or it is rejected
        edited = shown.last_configuration_edit_date
        if msgspec.structs.replace(asked, last_configuration_edit_date=edited) == shown:
            return 200, _ENCODE(shown)
        await asyncio.to_thread(configuration.store, self._folder, asked)
        wanted = configuration.MODES.get(asked.learning_mode or "", decides)
        if wanted != decides:
            write_promotion(self._folder, wanted, version=self.service.version)
        self.follow(is_now=True)
        return 200, _ENCODE(self._shown())

    def follow(self, *, is_now: bool = False) -> None:
        """Decide by what clients set, also through another worker."""
        service = self.service
        config = self._stored.newer(service.config, is_now=is_now)
        if config is None:
            return
        is_learner = config.learn != service.config.learn
        service.config = config
        service.decider.set_terms(config.reward, config.select)
        if is_learner:
            service.learner.restart(config)

    async def policy(self, query: bytes, key: str) -> Answer:
        return 200, _ENCODE(self._policy())

    def _policy(self) -> PolicyContract:
        select = self.service.config.select
        parts = {name: getattr(select, name) for name in ("exploration", "search", "posterior")}
        arguments = " ".join(f"--{name} {value}" for name, value in parts.items())
        return PolicyContract("fastbandit", f"{arguments} --epsilon {select.epsilon:g}")

    async def change_policy(self, body: bytes, key: str) -> Answer:
        asked, own = await read_body(self._read_policy, body, self.service.large.do), self._policy()
        if asked.arguments.split() != own.arguments.split():
            raise not_carried_over(
                "Learning settings of Vowpal Wabbit do not fit this service, whose policy is "
                f"{own.arguments!r}. Nothing was changed.",
                fix="Set select.exploration, search and posterior, and begin a new data folder.",
            )
        return 200, _ENCODE(own)

    # -- model

    def _snapshots(self) -> tuple[Snapshot, Snapshot]:
        """Return the version in service, and the oldest that is here."""
        store = self.service.follower.store
        current, every = store.current(), store.list()
        if current is None or not every:
            raise Rejection(404, "no model", "There is no model yet.", fix="Wait for the first.")
        return current, every[0]

    async def model(self, query: bytes, key: str) -> Answer:
        if parse_qs(query.decode("latin-1")).get("signed", [""])[0].lower() == "true":
            raise not_carried_over(
                "A model is not signed as Personalizer did.",
                fix="Leave out signed; snapshots.signing_key_file signs versions.",
            )
        return 200, await asyncio.to_thread(lambda: archive_of(self._snapshots()[0]))

    async def model_properties(self, query: bytes, key: str) -> Answer:
        return 200, _ENCODE(await asyncio.to_thread(lambda: properties_of(*self._snapshots())))

    async def reset_model(self, query: bytes, key: str) -> Answer:
        self._check_own_log("Services that share a log share its versions.", _BY_COMMAND)
        await asyncio.to_thread(ask, self._folder / RESET_FILE, seq=self.service.reader.last)
        return 204, b""

    # -- log

    async def log_properties(self, query: bytes, key: str) -> Answer:
        self._check_own_log()
        return 200, _ENCODE(await asyncio.to_thread(log_properties, self._folder))

    async def delete_logs(self, query: bytes, key: str) -> Answer:
        self._check_own_log("A log that services share is nobody's to delete.", _BY_DAYS)
        await asyncio.to_thread(ask, self._folder / DELETION_FILE, seq=self.service.reader.last)
        return 204, b""

    def _check_own_log(self, said: str = _NOT_READ, fix: str = _COPY) -> None:
        if self.service.config.log.url:
            raise not_carried_over(said, fix=fix)

    # -- evaluations

    async def evaluate(self, body: bytes, key: str) -> Answer:
        sent = await read_body(self._read_evaluation, body, self.service.large.do)
        asked = evaluations.in_utc(sent)
        self._check_own_log()
        if asked.policies or asked.enable_offline_experimentation:
            raise not_carried_over(
                "Learning settings of Vowpal Wabbit are not judged, nor better ones looked for.",
                fix="Send no policies, and enableOfflineExperimentation false.",
            )
        found = await asyncio.to_thread(self._judged, asked)
        return 201, _ENCODE(found), found.id

    def _judged(self, asked: EvaluationContract) -> Evaluation:
        most = self.service.config.personalizer.max_decisions
        judged = evaluations.judged(self._folder, asked, most)
        importance = [[name, f"{share:.4g}"] for name, share in self._importance(judged.latest)]
        id = secrets.token_hex(16)
        found = evaluations.evaluation_of(asked, judged, id=id, importance=importance)
        self._files.write(found)
        return found

    def _importance(self, decisions: list[str]) -> list[tuple[str, float]]:
        """Return the mean size of what each feature adds to a score, largest first."""
        sums: defaultdict[str, float] = defaultdict(float)
        serving, config = self.service.decider.serving, self.service.config
        known = Known(config.context.names, config.arms.title, self.service.follower.features_of)
        found = [*map(self.service.decision, decisions)]
        some = [] if serving is None else [(serving, made) for made in found if made is not None]
        for serving, made in some:
            with suppress(Rejection):  # an arm that is gone cannot be explained
                added = explain_decision(serving, made, known=known).contributions
                for name, value in added.items():
                    sums[name] += abs(value) / len(some)
        sums.pop(BASE, None)
        return sorted(sums.items(), key=lambda one: -one[1])

    async def list_evaluations(self, query: bytes, key: str) -> Answer:
        return 200, _ENCODE(await asyncio.to_thread(self._files.every))

    async def evaluation(self, query: bytes, key: str) -> Answer:
        return 200, _ENCODE(await asyncio.to_thread(self._files.get, _id_of(query)))

    async def remove_evaluation(self, query: bytes, key: str) -> Answer:
        await asyncio.to_thread(self._files.remove, _id_of(query))
        return 204, b""

    async def feature_importances(self, query: bytes, key: str) -> Answer:
        self._check_own_log()
        latest = await asyncio.to_thread(evaluations.latest_decisions, self._folder)
        found = await asyncio.to_thread(self._importance, latest)
        return 200, _ENCODE([{"feature": name, "importance": share} for name, share in found])

    # -- health

    async def status(self, query: bytes, key: str) -> Answer:
        reasons = self.service.reasons()
        said = reasons[0].detail if reasons else "The service decides."
        state = "Invalid" if reasons else "Valid"
        return 200, _ENCODE(ContainerStatus("fastbandit", state, said))


def _id_of(query: bytes) -> str:
    return parse_qs(query.partition(b"&")[0].decode("latin-1"))["id"][0]


def _refused(said: str, fix: str) -> Route:
    async def answer(body: bytes, key: str) -> Answer:
        raise not_carried_over(said, fix=fix)

    return "admin", answer
