"""A Ray cluster of several nodes on this machine, whose workers and nodes can be killed.

A node is a raylet with one core and the processes that it started, in place of a machine. The
head has no core: what a job does is done on the nodes.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fastbandit.packages import needed

_STORE_BYTES = 300 * 2**20
_OF_RAY = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
_WORKER = "ray::"
_STARTS = 5


class RayNodes:
    """The nodes of a cluster; those that die are replaced on demand."""

    def __init__(self, cluster: Any, count: int) -> None:
        self._cluster = cluster
        self._nodes = [self._added() for _ in range(count)]

    @property
    def address(self) -> str:
        """Where the cluster answers."""
        return str(self._cluster.address)

    @property
    def count(self) -> int:
        """The number of nodes that are up."""
        return len(self._nodes)

    def kill_worker(self, choice: float) -> bool:
        """Kill one of the workers that do something, by a number from 0 to 1; return if any did."""
        busy = [pid for node in self._nodes for pid in _busy(_raylet(node))]
        if not busy:
            return False
        _kill(busy[int(choice * len(busy))])
        return True

    def kill_node(self, choice: float) -> bool:
        """Kill a node with all that runs on it; return whether a worker on it was busy."""
        node = self._nodes.pop(int(choice * len(self._nodes)))
        raylet = _raylet(node)
        was_busy, processes = bool(_busy(raylet)), [raylet, *_children(raylet)]
        for process in processes:
            _kill(process)
        self._cluster.remove_node(node, allow_graceful=False)
        return was_busy

    def add_node(self) -> None:
        """Add a node in place of one that died."""
        self._nodes.append(self._added())

    def _added(self) -> Any:
        return _patiently(
            lambda: self._cluster.add_node(num_cpus=1, object_store_memory=_STORE_BYTES)
        )


@contextmanager
def ray_nodes(count: int) -> Iterator[RayNodes]:
    """Start a cluster of so many nodes; in the end all of it is gone."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    needed("ray", what="This campaign", extra="cluster")
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
    try:
        yield RayNodes(cluster, count)
    finally:
        cluster.shutdown()


def _patiently(start: Callable[[], Any]) -> Any:
    """Start something of Ray, which gives up after 30 seconds: on a busy machine, again."""
    for _ in range(_STARTS - 1):
        with suppress(Exception):  # Ray raises plain ones
            return start()
    return start()


def _raylet(node: Any) -> int:
    (raylet,) = node.all_processes["raylet"]
    return int(raylet.process.pid)


def _busy(raylet: int) -> list[int]:
    """List workers of a node that do something, or were started to."""
    names = {process: _name(process) for process in _children(raylet)}
    return [
        process
        for process, name in names.items()
        if name.startswith(_WORKER) and not name.startswith(_OF_RAY)
    ]


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task").glob("*/children")
    found: list[int] = []
    for path in listed:
        with suppress(OSError):  # it ended just now
            found += map(int, path.read_text().split())
    return sorted(found)


def _name(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    return ""


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
