"""Continua: functions on a box, of which the maximum is known.

sines      0.5 (sin 13x · sin 27x + 1) on [0, 1], the function of the FastBandit paper
branin     minus Branin's function, 2-d, moved and scaled to rewards from 0 to 1
hartmann6  minus Hartmann's function, 6-d, over its maximum: rewards from 0 to 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.features.kinds import Dense, to_array
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, decision_seeds, normals
from fastbandit.types import Features
from lab.experiments.environment import FAR, Floats


@dataclass(frozen=True)
class Landscape:
    """A function of points (n, d) of a box, and where it is highest."""

    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    rewards: Callable[[Floats], Floats]
    summit: Callable[[], Floats]


class Continuum:
    """One function for all rounds: every context is the number 1, every point an arm.

    The noise of a round depends on the seed and the number of the round alone.
    """

    def __init__(self, function: str = "sines", *, noise: float = 0.1, seed: int = 0) -> None:
        _check_settings(function, noise=noise)
        from fastbandit import Box

        self._landscape = _LANDSCAPES[function]
        self.name, self.noise, self.seed = function, noise, seed
        self.context: Features = Dense(1)
        self.arms = Box(self._landscape.lowest, self._landscape.highest)
        self.embed_ids = False
        self.reward: RewardKind = "real"
        self._summit = self._landscape.summit()
        self._noise_seed = int(decision_seeds(seed, FAR + 2, 1)[0])

    @property
    def size(self) -> None:
        """A continuum has no number of arms."""

    @property
    def rounds(self) -> None:
        """There is no end of rounds."""

    def contexts(self, first: int, count: int) -> NDArray[np.float32]:
        """Return the same context `count` times: (count, 1)."""
        return np.ones((count, 1), dtype=np.float32)

    def expected(self, first: int, chosen: Any) -> Floats:
        """Return the expected rewards of points (n, d), the same in every round."""
        return self._landscape.rewards(self._read(chosen))

    def observed(self, first: int, chosen: Any) -> Floats:
        """Return the rewards of rounds `first` and on, with their noise."""
        means = self.expected(first, chosen)
        seeds = decision_seeds(self._noise_seed, first, len(means))
        return means + self.noise * normals(seeds, 1, Stream.TRAINING)[:, 0].astype(np.float64)

    def ceiling(self, first: int, count: int) -> Floats:
        """Return the maximum of the function for each round: (n,)."""
        return np.full(count, float(self.expected(first, self._summit[None])[0]))

    def best_arm(self, rounds: int) -> Floats:
        """Return the point where the function is highest: (d,)."""
        return self._summit.copy()

    def _read(self, chosen: Any) -> Floats:
        points = np.asarray(to_array(chosen, what="points"), dtype=np.float64)
        low, high = np.asarray(self._landscape.lowest), np.asarray(self._landscape.highest)
        if points.ndim != 2 or points.shape[1] != len(low):
            raise ShapeError(
                f"The points of {self.name} need shape (n, {len(low)}): got {points.shape}. Give "
                f"one row for each."
            )
        slack = 1e-5 * (high - low)
        is_inside = (points >= low - slack) & (points <= high + slack)
        if not is_inside.all():
            raise InputError(
                f"The points of {self.name} need to lie between {low.tolist()} and "
                f"{high.tolist()}: got {points[~is_inside.all(axis=1)][0].tolist()}. Choose "
                f"points of the box."
            )
        return np.clip(points, low, high)


def _sines(points: Floats) -> Floats:
    x = points[:, 0]
    return np.asarray(0.5 * (np.sin(13.0 * x) * np.sin(27.0 * x) + 1.0))


def _sines_summit() -> Floats:
    """Look at a fine grid, then ever closer around its best point."""
    low, high = 0.0, 1.0
    for _ in range(12):
        grid = np.linspace(low, high, 10_001)
        best = float(grid[_sines(grid[:, None]).argmax()])
        step = (high - low) / 10_000
        low, high = max(0.0, best - step), min(1.0, best + step)
        if step < 1e-9:  # closer, and rounding decides
            break
    return np.array([best])


_BRANIN_LOWEST = 10.0 / (8.0 * np.pi)  # 0.397887, at three points
_BRANIN_HIGHEST = 308.12909601160663  # at the corner (-5, 0)


def _branin(points: Floats) -> Floats:
    x, y = points[:, 0], points[:, 1]
    valley = y - 5.1 / (4.0 * np.pi**2) * x**2 + 5.0 / np.pi * x - 6.0
    height = valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0
    return np.asarray((_BRANIN_HIGHEST - height) / (_BRANIN_HIGHEST - _BRANIN_LOWEST))


_HARTMANN_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_SLOPES = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_HARTMANN_CENTRES = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)
_HARTMANN_SUMMIT = (0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053)
_HARTMANN_HIGHEST = 3.322368011415515


def _hartmann6(points: Floats) -> Floats:
    away = points[:, None, :] - _HARTMANN_CENTRES  # (n, 4, 6)
    hills = np.exp(-(np.square(away) * _HARTMANN_SLOPES).sum(axis=2))
    return np.asarray(hills @ _HARTMANN_HEIGHTS / _HARTMANN_HIGHEST)


_LANDSCAPES = {
    "sines": Landscape((0.0,), (1.0,), _sines, _sines_summit),
    "branin": Landscape((-5.0, 0.0), (10.0, 15.0), _branin, lambda: np.array([np.pi, 2.275])),
    "hartmann6": Landscape((0.0,) * 6, (1.0,) * 6, _hartmann6, lambda: np.array(_HARTMANN_SUMMIT)),
}
FUNCTIONS = tuple(_LANDSCAPES)


def _check_settings(function: str, *, noise: float) -> None:
    if function not in _LANDSCAPES:
        raise SettingError(
            f"A continuum needs one of the functions {', '.join(FUNCTIONS)}: got {function!r}. "
            f"Choose one of these."
        )
    if not 0.0 <= noise < np.inf:
        raise SettingError(
            f"The noise needs to be a standard deviation of at least 0: got {noise}. Use 0 for "
            f"rewards without noise."
        )
