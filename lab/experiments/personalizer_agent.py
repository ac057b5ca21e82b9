"""An agent that asks a service through the client of Azure AI Personalizer, unmodified.

The service declares nothing: contexts and actions have any names. Its learner makes a version after
each batch, and the next rank waits until that serves, so that rounds can be compared with those of
a bandit in this process.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastbandit.adapters.action_logs import context_of, features_of
from fastbandit.demo.synthetic import Synthetic
from fastbandit.learning.learner import Learner
from lab.faults.stage import Caller, Stage, wait_for, write_stage

_PATIENCE = 120.0  # seconds until a service starts, or has a version
_SETTINGS: dict[str, Any] = {
    "context.features": 0,
    "context.any_names": True,
    "arms.file": "",
    "arms.any_names": True,
    "reward.kind": "binary",
    "reward.wait_seconds": 3600.0,
    "select.preset": "default",
    "learn.growth": 0.0,
    "learn.seconds": 1e6,
    "learn.min_quality": 0.9,
    "personalizer.enabled": True,
    "server.console": False,
}


class ThroughClient:
    """Ranks the actions of each line and rewards the one that was taken, by the vendor's client."""

    def __init__(self, *, batch: int, seed: int) -> None:
        self._batch, self._rounds, self._event = batch, 0, ""
        self._folder = TemporaryDirectory()
        own = {"learn.fresh": batch, "select.seed": seed}
        home, nothing = Path(self._folder.name), Synthetic("h3", 2, 2)  # whose arms are not used
        self._stage: Stage = write_stage(home, nothing, {**_SETTINGS, **own})
        self._learner = Learner(self._stage.config)
        self._learner.step()  # version 0
        self._service = self._stage.start("--no-learner")
        self._service.wait_until(True, seconds=_PATIENCE)
        self._models = import_module("azure.cognitiveservices.personalizer.models")
        credentials = import_module("msrest.authentication").CognitiveServicesCredentials("none")
        kind = import_module("azure.cognitiveservices.personalizer").PersonalizerClient
        self._client = kind(f"http://127.0.0.1:{self._stage.port}", credentials)

    def take(self, line: dict[str, Any]) -> int:
        actions = line["c"]["_multi"]
        context = {name: one for name, one in line["c"].items() if name != "_multi"}
        offered = [
            self._models.RankableAction(id=one["_tag"], features=[features_of(one)])
            for one in actions
        ]
        request = self._models.RankRequest(
            actions=offered, context_features=[context_of(context)], event_id=f"e{self._rounds}"
        )
        ranked = self._client.rank(request)
        self._event = ranked.event_id
        return [one["_tag"] for one in actions].index(ranked.reward_action_id)

    def learn(self, line: dict[str, Any], position: int, reward: float) -> None:
        self._client.events.reward(self._event, reward)
        self._rounds += 1
        if self._rounds % self._batch == 0:
            self._update()

    def _update(self) -> None:
        """Let the learner make what is due, and wait until that serves."""
        while self._learner.step().did != "waited":
            pass
        wait_for(self._is_current, seconds=_PATIENCE, what="the newest version in service")

    def _is_current(self) -> bool:
        caller, current = Caller(self._stage.port), self._stage.store.current()
        said = caller.ask("/v1/status")
        caller.close()
        return (
            said is not None and current is not None and said.content["version"] == current.version
        )

    def close(self) -> None:
        """End the service, and remove what it stored."""
        self._service.end()
        self._folder.cleanup()
