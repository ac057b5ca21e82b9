"""A bandit as an estimator of scikit-learn: it clones, and takes part in pipelines and searches."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.errors import InputError, MissingExtraError, SettingError, ShapeError
from fastbandit.features.schema import Schema
from fastbandit.features.tables import is_named

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError(
        "BanditClassifier needs scikit-learn, which is not installed. Run: "
        "pip install 'fastbandit[adapters]'"
    ) from error


class BanditClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns which arm is best for a row of features, from arms that were tried and rewards.

    `fit(X, arms, rewards)` learns from what came of one arm for each row. Without rewards the
    arms are labels: each is worth 1 and all others 0, so the estimator is a classifier.
    `predict` gives the arms of highest expected reward; to explore, ask `bandit_.select(X)`.
    A frame is read by the names of its columns, through the schema (`schema_`) that the first
    one had: texts, dates and gaps included.
    Save a fitted one with `bandit_.save(folder)`: that outlives a change of version.
    """

    def __init__(
        self,
        *,
        reward: str = "binary",
        exploration: str = "ts",
        search: str = "exhaustive",
        posterior: str = "auto",
        preset: str = "default",
        random_state: int = 0,
    ) -> None:
        self.reward = reward
        self.exploration = exploration
        self.search = search
        self.posterior = posterior
        self.preset = preset
        self.random_state = random_state

    def fit(self, X: Any, y: Any, rewards: Any = None) -> Self:  # noqa: N803
        """Learn anew from rows, the arms `y` tried for them, and the rewards that came."""
        rows, arms = self._read(X, y, is_first=True)
        self._start(rows, np.unique(arms))
        return self._learn(rows, arms, rewards)

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        rewards: Any = None,
        *,
        classes: Any = None,
    ) -> Self:
        """Learn from more rows; `classes` are all arms there will be, needed only once."""
        is_first = not hasattr(self, "bandit_")
        rows, arms = self._read(X, y, is_first=is_first)
        if is_first:
            self._start(rows, np.unique(arms if classes is None else classes))
        return self._learn(rows, arms, rewards)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the arm of highest expected reward for each row."""
        check_is_fitted(self, "bandit_")
        rows = validate_data(self, self._numbers(X), reset=False, dtype=np.float32)
        return self.classes_[self.bandit_.select(rows, explore=False).rows[:, 0]]

    def _start(self, rows: Any, classes: Any) -> None:
        self.classes_ = classes
        self.bandit_ = Bandit(
            ids=list(range(len(classes))),
            context=rows.shape[1] if self.schema_ is None else self.schema_,
            reward=self.reward,  # type: ignore[arg-type]
            exploration=self.exploration,
            search=self.search,
            posterior=self.posterior,
            preset=self.preset,
            seed=self.random_state,
            progress=False,
        )

    def _read(self, X: Any, y: Any, *, is_first: bool) -> tuple[Any, Any]:  # noqa: N803
        if is_first:
            self.schema_ = Schema.infer(X) if is_named(X) else None
        numbers = self._numbers(X)
        rows, arms = validate_data(self, numbers, y, reset=is_first, dtype=np.float32)
        check_classification_targets(arms)
        return rows, arms

    def _numbers(self, X: Any) -> Any:  # noqa: N803
        """Return named rows as numbers, others as they are."""
        if self.schema_ is None:
            return X
        if is_named(X):
            return self.schema_.encode(X, what="rows")
        raise InputError(
            f"An estimator that was fitted by name needs {', '.join(self.schema_.names)}: got a "
            f"{type(X).__name__} without names. Give a frame."
        )

    def _learn(self, rows: Any, arms: Any, rewards: Any) -> Self:
        classes = np.searchsorted(self.classes_, arms).clip(max=len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[classes] != arms)
        if len(unknown):
            raise SettingError(
                f"An arm needs to be one of the classes {self.classes_.tolist()}: got "
                f"{arms[unknown[0]]!r}. List all of them in the first fit."
            )
        if rewards is None:
            rows, classes, rewards = self._labelled(rows, classes)
        elif len(rewards) != len(rows):
            raise ShapeError(
                f"Each row needs one reward: got {len(rows)} rows and {len(rewards)} rewards. "
                f"Drop the rows that have none."
            )
        self.bandit_.update(contexts=rows, arms=classes, rewards=rewards)
        return self

    def _labelled(self, rows: Any, classes: Any) -> tuple[Any, Any, Any]:
        """Turn labels into what came of every arm: 1 for the right one, else 0."""
        count = len(self.classes_)
        arms = np.tile(np.arange(count), len(rows))
        rewards = (arms == np.repeat(classes, count)).astype(np.float32)
        return np.repeat(rows, count, axis=0), arms, rewards
