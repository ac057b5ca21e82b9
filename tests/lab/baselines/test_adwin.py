"""ADWIN keeps what belongs together: it forgets after a step, and not without one."""

import numpy as np
import pytest

from fastbandit.errors import SettingError
from lab.baselines.adwin import Adwin


def streamed(numbers: np.ndarray, *, delta: float = 0.01) -> tuple[Adwin, list[int]]:
    """Return a window after a stream, and where in it older numbers were forgotten."""
    window = Adwin(delta=delta)
    return window, [place for place, number in enumerate(numbers) if window.add(float(number))]


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_found_soon_and_what_came_before_is_forgotten(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([rng.random(600) < 0.2, rng.random(400) < 0.8])

    window, found = streamed(numbers)

    assert 600 <= found[-1] < 800 or any(600 <= place < 700 for place in found)
    assert len(window) <= 450
    assert window.mean == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("constant", [0.0, 0.3, 1.0])
def test_a_constant_is_never_forgotten(constant: float) -> None:
    window, found = streamed(np.full(3000, constant))

    assert found == []
    assert len(window) == 3000
    assert window.mean == pytest.approx(constant)


def test_rewards_that_do_not_change_are_seldom_forgotten() -> None:
    rng = np.random.default_rng(0)

    alarms = [len(streamed(rng.random(1000) < 0.5, delta=0.002)[1]) for _ in range(20)]

    assert sum(count > 0 for count in alarms) <= 3


def test_the_window_is_held_in_few_buckets_and_loses_no_number() -> None:
    rng = np.random.default_rng(1)
    numbers = rng.random(2000) < 0.5

    window, _ = streamed(numbers, delta=1e-9)

    assert len(window) == 2000
    assert window.mean == pytest.approx(numbers.mean())
    assert sum(map(len, window._levels)) <= 5 * (1 + np.log2(2000))


def test_a_smaller_delta_finds_no_more_changes() -> None:
    rng = np.random.default_rng(2)
    numbers = np.concatenate([rng.random(300) < level for level in (0.3, 0.6, 0.3, 0.6)])

    found = [len(streamed(numbers, delta=delta)[1]) for delta in (0.5, 1e-3, 1e-30)]

    assert found[0] >= found[1] >= found[2]


def test_a_delta_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="delta"):
        Adwin(delta=0.0)
