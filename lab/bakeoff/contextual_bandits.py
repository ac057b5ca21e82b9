"""contextualbandits as a policy: a classifier or a regression for each arm, and how it explores.

Logistic regressions (scikit-learn's defaults) are fitted anew to all rewards at each update, with
the library's default priors. Linear regressions are the library's own, and learn each reward once;
those of a bootstrap are fitted anew, because in a stream they chose no better than at random here.
AdaptiveGreedy and EpsilonGreedy on linear ones have the settings of the library's notebook on
Bibtex, the others its defaults. A linear regression keeps the square of its columns for each arm
and sample, so on many words or ids it may need more memory than there is: that is refused.

On words there is one more of each logistic explorer, which is shown them as they are, as in that
notebook: the penalty of scikit-learn's default is strong for contexts of length 1.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from fastbandit.errors import SettingError
from lab.bakeoff.history import History, Rows
from lab.experiments.environment import Environment

_MOST_BYTES = 4 * 2**30
_SAMPLES = 10  # of a bootstrap, the library's default
_BOOTSTRAPS = ("BootstrappedUCB", "BootstrappedTS")

EXPLORERS = (*_BOOTSTRAPS, "AdaptiveGreedy", "SoftmaxExplorer", "EpsilonGreedy")


class ContextualBandits:
    """An explorer of contextualbandits; arms are known by their rows, their features unseen."""

    def __init__(
        self,
        environment: Environment,
        *,
        explorer: str,
        is_linear: bool,
        seed: int,
        has_plain_words: bool = False,
    ) -> None:
        self._arms = environment.size or 0
        self._explorer = explorer
        self._is_linear = is_linear
        self._seed = seed
        self._history = History(environment.context, has_plain_words)
        self.model: Any = None

    @property
    def _is_streaming(self) -> bool:
        return self._is_linear and self._explorer not in _BOOTSTRAPS

    def select(self, contexts: Any, /) -> Rows:
        """Return the arms that the explorer predicts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = self.model.predict(_floats(self._history.show(contexts)))
        return np.asarray(chosen, dtype=np.int64).reshape(-1)

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Fit to all rewards so far, or, where each is learned once, to those that are new."""
        self._history.add(contexts, arms, rewards)
        if self._is_streaming:
            learned = (self._history.show(contexts), np.asarray(arms), np.asarray(rewards))
        else:
            learned = (self._history.vectors(), self._history.rows, self._history.rewards)
        vectors = _floats(learned[0])
        if self.model is None:
            self.model = self._made(vectors.shape[1])
        learn = self.model.partial_fit if self._is_streaming else self.model.fit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit that stops early is still a fit
            learn(vectors, learned[1], learned[2])

    def _made(self, columns: int) -> Any:
        settings: dict[str, Any] = {"nchoices": self._arms, "random_state": self._seed + 1}
        settings["njobs_arms" if self._explorer in _BOOTSTRAPS else "njobs"] = 1
        if self._is_linear:
            self._check_memory(columns)
            settings |= _linear_settings(self._explorer, self._arms)
        base = _linear(self._explorer) if self._is_linear else _logistic()
        return getattr(import_module("contextualbandits.online"), self._explorer)(base, **settings)

    def _check_memory(self, columns: int) -> None:
        samples = _SAMPLES if self._explorer in _BOOTSTRAPS else 1
        needed = 4 * samples * self._arms * (columns + 1) ** 2
        if needed > _MOST_BYTES:
            raise SettingError(
                f"{self._explorer} on linear regressions needs at most {_MOST_BYTES / 2**30:.0f} "
                f"GiB: {self._arms:,} arms, {columns:,} columns and {samples} samples make "
                f"{needed / 2**30:.1f} GiB. Use logistic regressions."
            )


def _linear_settings(explorer: str, arms: int) -> dict[str, Any]:
    if explorer == "AdaptiveGreedy":
        return {
            "beta_prior": ((3.0 / arms, 4.0), 2),
            "active_choice": "weighted",
            "decay_type": "percentile",
            "decay": 0.9997,
            "batch_train": True,
        }
    if explorer == "EpsilonGreedy":
        return {"smoothing": (1, 2), "beta_prior": None, "decay": None, "batch_train": True}
    return {} if explorer in _BOOTSTRAPS else {"batch_train": True}


def _linear(explorer: str) -> Any:
    ridge = 10.0 if explorer in ("AdaptiveGreedy", "EpsilonGreedy") else 1.0
    return import_module("contextualbandits.linreg").LinearRegression(
        lambda_=ridge, fit_intercept=True, method="sm"
    )


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def _floats(vectors: Any) -> Any:
    """Return vectors as the library takes them: SciPy's matrix or a whole array of float64."""
    if hasattr(vectors, "tocsr"):
        from scipy.sparse import csr_matrix

        return csr_matrix(vectors, dtype=np.float64)
    return np.ascontiguousarray(vectors, dtype=np.float64)
