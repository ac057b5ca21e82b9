"""What the service counts and times, and how Prometheus reads it: one owner, no files."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

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
        """Count one."""
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
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    answers = CounterMetricFamily(
        "fastbandit_answers", "Requests answered, by route and status.", labels=["route", "status"]
    )
    for (route, status), count in sorted(metrics.answers.items()):
        answers.add_metric([route, str(status)], count)
    yield answers
    rewards = CounterMetricFamily(
        "fastbandit_rewards", "Rewards that were logged, by what became of them.", labels=["status"]
    )
    for became, count in sorted(metrics.rewards.items()):
        rewards.add_metric([became], count)
    yield rewards
    yield from _shadow(metrics.compared)
    for name, said, value in (
        ("decisions", "Decisions that were logged and answered.", metrics.decisions),
        ("degraded", "Decisions from less than the model that should serve.", metrics.degraded),
        ("rejected", "Requests rejected because too many were waiting.", metrics.rejected),
        ("swaps", "Snapshots that were published to the decider.", metrics.swaps),
        ("failed_swaps", "Snapshots that could not be loaded.", metrics.failed_swaps),
        ("learner_starts", "Starts of the learner process.", metrics.learner_starts),
        (
            "spool_conflicts",
            "Spooled ones that the log holds with other arms.",
            metrics.spool_conflicts,
        ),
    ):
        yield CounterMetricFamily(f"fastbandit_{name}", said, value=value)
    for name, said, value in (
        ("deltas", "Deltas that were applied.", metrics.deltas),
        ("ignored_deltas", "Deltas that were damaged or foreign.", metrics.ignored_deltas),
    ):
        if value:  # once there are any
            yield CounterMetricFamily(f"fastbandit_{name}", said, value=value)
    for name, times in (("select", metrics.select_times), ("reward", metrics.reward_times)):
        yield _histogram(name, times)
    for name, number in sorted(gauges.items()):
        yield GaugeMetricFamily(f"fastbandit_{name}", name.replace("_", " "), value=number)


def _shadow(compared: Counter[tuple[str, bool]]) -> Iterator[Metric]:
    """Count what shadow mode compared; nothing where it is off."""
    from prometheus_client.core import CounterMetricFamily

    for name, said, counted in (
        ("shadow_decisions", "Decisions with an arm of bandit and baseline.", (False, True)),
        ("shadow_matches", "Those in which both named the same arm.", (True,)),
    ):
        family = CounterMetricFamily(f"fastbandit_{name}", said, labels=["decided_by"])
        for who in sorted({who for who, _ in compared}):
            family.add_metric([who], sum(compared[who, is_match] for is_match in counted))
        if compared:
            yield family


def _histogram(name: str, times: Histogram) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    buckets, below = [], 0
    for bound, count in zip((*_BOUNDS, float("inf")), times.counts, strict=True):
        below += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), below))
    return HistogramMetricFamily(
        f"fastbandit_{name}_seconds",
        f"Seconds from a {name} request to its answer.",
        buckets=buckets,
        sum_value=times.total,
    )
