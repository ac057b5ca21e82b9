"""RayEngine: workers that are actors of a Ray cluster, or of a Ray started here for them."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from fastbandit.cluster.engine import News, Work, WorkerDiedError, do, spread
from fastbandit.cores import cores
from fastbandit.errors import SettingError
from fastbandit.packages import needed


class RayEngine:
    """Does jobs in actors of one core each; a Ray that runs already is used, and left running.

    Without an address, and without one that runs here, a Ray of so many cores is started.
    """

    def __init__(self, *, address: str | None = None, workers: int | None = None) -> None:
        self._ray = needed("ray", what="The engine ray", extra="cluster")
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._start(address, workers)
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        self._workers = min(workers or cpus, cpus)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(_Actor)

    @property
    def workers(self) -> int:
        """As many as were wanted, but at most one for each core of the cluster."""
        return self._workers

    def run(self, work: Work, jobs: Sequence[Any]) -> Generator[News, None, None]:
        """Start jobs in order, and yield the last news of each.

        What `work` holds is put into Ray's object store once, and shared by the workers of a
        machine.
        """
        return spread(self, self._ray.put(work), jobs, workers=self.workers)

    def close(self) -> None:
        if self._is_ours:
            self._ray.shutdown()

    def start(self, work: Any) -> _Worker:
        actor = self._actor.remote(work)
        return _Worker(self._ray, actor, actor.ready.remote())

    def listen(self, pool: Sequence[_Worker]) -> list[_Worker]:
        known = {worker.answer: worker for worker in pool if worker.answer is not None}
        ready, _ = self._ray.wait(list(known), num_returns=1)
        return [known[answer] for answer in ready]

    def stop(self, pool: Sequence[_Worker]) -> None:
        for worker in pool:
            self._ray.kill(worker.actor)

    def _start(self, address: str | None, workers: int | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        settings: dict[str, Any] = {"address": address}
        if address is None and "RAY_ADDRESS" not in os.environ:
            settings = {"address": "local", "num_cpus": workers or cores()}
            settings["include_dashboard"] = False
        try:
            self._ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
        except Exception as error:  # Ray raises plain ones
            raise SettingError(
                f"The engine ray needs a cluster that answers: {address or 'a new one'} did not "
                f"({' '.join(str(error).split())[:200]}). Start one with `ray start --head`, and "
                f"name its address."
            ) from error


class _Actor:
    """What runs on the cluster: it keeps its copy of the work from job to job."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def ready(self) -> None:
        return None

    def do(self, number: int, job: Any) -> News:
        return do(self.work, number, job)


@dataclass
class _Worker:
    ray: Any
    actor: Any
    answer: Any
    job: int | None = None
    is_ready: bool = False

    def give(self, number: int, job: Any) -> None:
        self.job = number
        self.answer = self.actor.do.remote(number, job)

    def hear(self) -> News | None:
        try:
            news: News | None = self.ray.get(self.answer)
        except self.ray.exceptions.RayActorError as error:
            if error.actor_init_failed:
                raise SettingError(
                    f"The engine ray needs workers that can start: one could not "
                    f"({' '.join(str(error).split())[:300]}). Install the same fastbandit on all "
                    f"machines of the cluster."
                ) from error
            raise WorkerDiedError("Its actor died") from error
        except self.ray.exceptions.ObjectLostError as error:  # with the node that held it
            raise WorkerDiedError("Its answer was lost") from error
        self.is_ready, self.job, self.answer = True, None, None
        return news
