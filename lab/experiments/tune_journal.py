"""Trials stored in a file, so that an interrupted tuning goes on to the same end."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fastbandit.errors import MissingExtraError, SettingError
from lab.experiments.recipe import Recipe

_STARTUP = 5  # trials at random before TPE begins


class Journal:
    """Optuna's studies by what was asked, in a file or in memory."""

    def __init__(self, path: Path | None, asked: list[Any]) -> None:
        self._optuna = _import_optuna()
        self._asked = asked
        self._storage: Any = None
        if path is not None:
            self._storage = self._open(path)

    def _open(self, path: Path) -> Any:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        try:
            return JournalStorage(JournalFileBackend(str(path)))
        except (OSError, ValueError, KeyError) as error:
            raise SettingError(
                f"A journal needs to be a file that tuning wrote, in a folder that exists: got "
                f"{path} ({error}). Give another --journal."
            ) from error

    def study(self, what: str, recipe: Recipe) -> Any:
        """Return the study of one question; another question has another study."""
        text = json.dumps([what, self._asked, plain(recipe)], sort_keys=True)
        return self._optuna.create_study(
            storage=self._storage,
            study_name=f"{what} {hashlib.sha256(text.encode()).hexdigest()[:16]}",
            direction="maximize",
            load_if_exists=True,
        )


def _import_optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "Tuning needs optuna, which is not installed. Run: pip install -e '.[lab]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def drop_unfinished(study: Any) -> None:
    """Let go of trials that an interruption left behind: they would sway the next draws."""
    from optuna.trial import TrialState

    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)


def sampler_of(seed: int, stage: int, number: int) -> Any:
    """Return the sampler of one trial: its draws depend on seed, stage and number alone."""
    from optuna.samplers import TPESampler

    mixed = hashlib.sha256(f"{seed} {stage} {number}".encode()).digest()
    return TPESampler(seed=int.from_bytes(mixed[:4], "little"), n_startup_trials=_STARTUP)


def done_trials(study: Any) -> list[Any]:
    """Return the trials of a study that were measured; interrupted ones do not count."""
    from optuna.trial import TrialState

    return list(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def plain(recipe: Recipe) -> list[Any]:
    """Return a recipe as JSON values."""
    return [recipe.base, dict(recipe.sections)]
