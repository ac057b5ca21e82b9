"""What the service counts and times, and how Prometheus reads it: one owner, no files."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from prometheus_client.core import Metric

WINDOW_SECONDS = 10.0
_WINDOWS = 360  # of which so many are retained
_SHOWN = 6  # and so many make up the times shown first
_BOUNDS = tuple(
    scale * step for scale in (1e-4, 1e-3, 1e-2, 1e-1, 1.0) for step in (1.0, 1.5, 2.0, 3.0, 5.0)
)
"""Seconds; between two of them a quantile is read off as if times lay evenly."""


class Histogram:
    """A histogram of seconds.

    That of prometheus_client has no quantile, adds a series `_created`, and counts more slowly.
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def quantile(self, share: float) -> float | None:
        """Return the time below which a share of them lies, None where there are none."""
        rank = share * sum(self.counts)
        if rank == 0:
            return None
        below = 0
        for n, count in enumerate(self.counts):
            if count and below + count >= rank:
                low = _BOUNDS[n - 1] if n else 0.0
                high = _BOUNDS[min(n, len(_BOUNDS) - 1)]
                return low + (high - low) * (rank - below) / count
            below += count
        return _BOUNDS[-1]


class Window(msgspec.Struct, frozen=True):
    """How long selects took in some seconds: the start in milliseconds since 1970, and times."""

    at: int
    selects: int
    p50_s: float
    p99_s: float


class Metrics:
    """Counts since the start of the process; what the log holds is counted there."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()  # by route and status
        self.rewards: Counter[str] = Counter()  # by what became of them
        self.compared: Counter[tuple[str, bool]] = Counter()  # by who decided, and if both agreed
        self.decisions = self.degraded = self.rejected = 0
        self.swaps = self.failed_swaps = self.learner_starts = 0
        self.spool_conflicts = self.deltas = self.ignored_deltas = 0
        self.select_times, self.reward_times = Histogram(), Histogram()
        self.windows: deque[Window] = deque(maxlen=_WINDOWS)
        self._recent, self._since = Histogram(), time.time()

    def selected(self, seconds: float) -> None:
        """Count a select that was answered after so long."""
        self.select_times.add(seconds)
        self._recent.add(seconds)

    def close_window(self) -> None:
        """Begin another window if this one has lasted long enough."""
        now = time.time()
        if now - self._since < WINDOW_SECONDS:
            return
        p50, p99 = self._recent.quantile(0.5), self._recent.quantile(0.99)
        if p50 is not None and p99 is not None:
            count = sum(self._recent.counts)
            self.windows.append(Window(int(1000 * self._since), count, p50, p99))
        self._recent, self._since = Histogram(), now

    def quantiles(self) -> dict[str, float | int | None]:
        """Return what a person looks at first; the times are those of the last windows."""
        recent = [*self.windows][-_SHOWN:]
        selects = sum(window.selects for window in recent)
        p50 = sum(window.selects * window.p50_s for window in recent) / selects if selects else None
        return {
            "select_p50_s": p50,
            "select_p99_s": max((window.p99_s for window in recent), default=None),
            "selects": sum(self.select_times.counts),
            "rejected": self.rejected,
            "errors": sum(n for (_, status), n in self.answers.items() if status >= 500),
        }


def render(metrics: Metrics, gauges: dict[str, float]) -> bytes:
    """Write everything as Prometheus reads it; gauges are named without the prefix."""
    from prometheus_client import CollectorRegistry, generate_latest

    class _Once:
        def collect(self) -> Iterable[Metric]:
            return _families(metrics, gauges)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once())
    text: bytes = generate_latest(registry)
    return text


def _families(metrics: Metrics, gauges: dict[str, float]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    answers = {(route, str(status)): count for (route, status), count in metrics.answers.items()}
    yield _counter("answers", "Requests answered, by route and status.", answers, "route", "status")
    became = {(status,): count for status, count in metrics.rewards.items()}
    yield _counter("rewards", "Rewards that were logged, by what became of them.", became, "status")
    yield from _shadow(metrics.compared)
    for name, said, value in (
        ("decisions", "Decisions that were logged and answered.", metrics.decisions),
        ("degraded", "Decisions from less than the model that should serve.", metrics.degraded),
        ("rejected", "Requests rejected because too many were waiting.", metrics.rejected),
        ("swaps", "Snapshots that were published to the decider.", metrics.swaps),
        ("failed_swaps", "Snapshots that could not be loaded.", metrics.failed_swaps),
        ("learner_starts", "Starts of the learner process.", metrics.learner_starts),
        ("spool_conflicts", "Spooled ones that the log has otherwise.", metrics.spool_conflicts),
        ("deltas", "Deltas that were applied.", metrics.deltas),
        ("ignored_deltas", "Deltas that were damaged or foreign.", metrics.ignored_deltas),
    ):
        if value or "deltas" not in name:  # those once there are any
            yield _counter(name, said, {(): value})
    yield _histogram("select", metrics.select_times)
    yield _histogram("reward", metrics.reward_times)
    for name, number in sorted(gauges.items()):
        yield GaugeMetricFamily(f"fastbandit_{name}", name.replace("_", " "), value=number)


def _counter(name: str, said: str, counts: Mapping[Any, float], *labels: str) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(f"fastbandit_{name}", said, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family


def _shadow(compared: Counter[tuple[str, bool]]) -> Iterator[Metric]:
    """Count what shadow mode compared; nothing where it is off."""
    if not compared:
        return
    deciders = {who for who, _ in compared}
    both = {(who,): compared[who, False] + compared[who, True] for who in deciders}
    same = {(who,): compared[who, True] for who in deciders}
    said = "Decisions with an arm of bandit and baseline."
    yield _counter("shadow_decisions", said, both, "decided_by")
    yield _counter("shadow_matches", "Those in which both named the same arm.", same, "decided_by")


def _histogram(name: str, times: Histogram) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    bounds = [*map(repr, _BOUNDS), "+Inf"]
    return HistogramMetricFamily(
        f"fastbandit_{name}_seconds",
        f"Seconds from a {name} request to its answer.",
        buckets=list(zip(bounds, accumulate(times.counts), strict=True)),
        sum_value=times.total,
    )
