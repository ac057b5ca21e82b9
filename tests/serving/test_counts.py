"""What workers count adds up to what one process would have counted."""

from __future__ import annotations

import msgspec

from fastbandit.serving.counts import add_counts, counts_of, joined_windows
from fastbandit.serving.metrics import Metrics, Window, render


def _some(times: int) -> Metrics:
    metrics = Metrics()
    for number in range(times):
        metrics.selected(0.001 * (number + 1))
        metrics.reward_times.add(0.01)
        metrics.answers["/v1/select", 200] += 1
        metrics.rewards["counted"] += 1
        metrics.compared["bandit", number % 2 == 0] += 1
        metrics.decisions += 1
        metrics.swaps += 1
    return metrics


def test_counts_of_workers_add_up() -> None:
    total = Metrics()
    for times in (2, 3):
        add_counts(total, msgspec.json.decode(msgspec.json.encode(counts_of(_some(times)))))

    one = Metrics()
    for times in (2, 3):
        add_counts(one, counts_of(_some(times)))
    assert render(total, {}) == render(one, {})
    assert (total.decisions, total.answers["/v1/select", 200], total.rewards["counted"]) == (5,) * 3
    assert sum(total.select_times.counts) == 5
    assert total.compared == {("bandit", True): 3, ("bandit", False): 2}


def test_windows_of_the_same_seconds_are_one() -> None:
    found = joined_windows(
        [Window(20_000, 4, 2.0, 5.0), Window(1_000, 1, 1.0, 3.0), Window(9_000, 3, 2.0, 2.5)]
    )

    assert found == [Window(1_000, 4, 1.75, 3.0), Window(20_000, 4, 2.0, 5.0)]
