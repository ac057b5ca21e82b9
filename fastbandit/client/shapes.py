"""What the client sends and what it gets: the fields that it knows, of those the service has.

Answers may have more fields than these, so that a newer service can be talked to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

from msgspec import Struct, json

from fastbandit.errors import InputError, RewardError
from fastbandit.storage.events import ArmId

Context: TypeAlias = Sequence[float] | Mapping[str, Any] | Any
"""Numbers in their order (an array will do), or values by their names, of any kind that JSON has.

Dates are sent as ISO text.
"""
Eligible: TypeAlias = Sequence[ArmId] | Mapping[str, Any]
Offered: TypeAlias = Mapping[str, Any]
"""An arm that comes with a request: its `id`, and its `features` as a context has them."""

FALLBACK = "fallback:"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Baseline(Struct, frozen=True, omit_defaults=True):
    """The arm that your own policy takes, and how likely it was to take it, if that is known."""

    arm: ArmId
    propensity: float | None = None


class Selected(Struct, frozen=True):
    """The arms chosen for one context, best first; `decision` is the id to reward.

    `scores` are in units of reward. `version` counts the updates of the model, `catalogue` is
    the number of the last change of the arms. `degraded` says that the service had less than
    the model that should serve; `is_fallback` that no answer came in time, so that the
    fallback was taken: the service knows nothing of such a decision. In shadow mode
    `decided_by` says whose arm it is, and `other` what the other one would have taken.
    `dropped` counts eligible ids that are not in the catalogue. `columns` are those asked for, by
    name, of each arm; None for an arm that is gone.
    """

    decision: str
    arms: list[ArmId]
    scores: list[float]
    version: int = 0
    catalogue: int = 0
    degraded: bool = False
    propensities: list[float] | None = None
    is_fallback: bool = False
    decided_by: str = "bandit"
    other: ArmId | None = None
    dropped: int = 0
    columns: list[dict[str, Any] | None] = []

    @property
    def arm(self) -> ArmId:
        """The best of the arms."""
        return self.arms[0]


class SelectRequest(Struct, omit_defaults=True):
    """Which arms for a context? What is as the service would take it anyway is not sent.

    It has an id of its own where none is given, so that a retry is safe.
    """

    context: Context
    id: str | None = None
    baseline: Baseline | ArmId | None = None
    k: int = 1
    eligible: Eligible | None = None
    explore: bool = True
    propensity: bool = False
    strict: bool = False
    arms: Sequence[Offered] | None = None
    columns: list[str] = []
    subject: str | None = None

    def __post_init__(self) -> None:
        self.id = uuid4().hex if self.id is None else check_id(self.id)
        self.baseline = None if self.baseline is None else to_baseline(self.baseline)


class SelectManyRequest(Struct, omit_defaults=True):
    """Which arms for each of some contexts? Otherwise as SelectRequest."""

    contexts: Sequence[Context]
    ids: Sequence[str] | None = None
    baselines: Sequence[Baseline | ArmId] | None = None
    k: int = 1
    eligible: Eligible | None = None
    explore: bool = True
    propensity: bool = False
    strict: bool = False
    arms: Sequence[Offered] | None = None
    columns: list[str] = []
    subject: str | None = None

    def __post_init__(self) -> None:
        if self.ids is not None and len(self.ids) != len(self.contexts):
            raise InputError(
                f"Each context needs one id: got {len(self.ids)} ids for {len(self.contexts)} "
                f"contexts. Leave them to the client, or give one for each."
            )
        own = (uuid4().hex for _ in self.contexts)
        self.ids = [*own] if self.ids is None else [*map(check_id, self.ids)]
        self.baselines = None if self.baselines is None else [*map(to_baseline, self.baselines)]


class SelectedMany(Struct):
    """One answer for each context, in their order."""

    decisions: list[Selected]


class Reward(Struct, frozen=True, omit_defaults=True):
    """What came of a decision: of its first arm, unless another is named.

    Where rewards add up, those that are meant to differ in `part`.
    """

    decision: str
    value: float
    arm: ArmId | None = None
    part: str = ""


class RewardAnswer(Struct):
    """What became of a reward."""

    decision: str
    status: str


class RewardAnswers(Struct):
    """One answer for each reward, in their order."""

    rewards: list[RewardAnswer]


class ArmUpsert(Struct, frozen=True, omit_defaults=True):
    """An arm to choose from now on, in place of any of the same id.

    Its features are numbers in their order, or values by their names; none for an id alone.
    """

    id: ArmId
    features: Sequence[float] | Mapping[str, Any] | Any = ()
    columns: Mapping[str, str | float | bool | None] | None = None


class UpsertArmsAnswer(Struct):
    """How many arms are new, were changed, and were there just so."""

    added: int
    changed: int
    unchanged: int
    arms: int
    catalogue: int


class DiscardArmsAnswer(Struct):
    """How many arms were removed; those that were not there are listed."""

    removed: int
    unknown: list[ArmId]
    arms: int
    catalogue: int


def encode(value: Any) -> bytes:
    """Write a request as JSON; arrays are lists of their numbers, dates ISO text."""
    return json.encode(value, enc_hook=_as_list)


def _as_list(value: Any) -> Any:
    if type(value).__name__ in ("NaTType", "NAType"):  # pandas' gaps
        return None
    if hasattr(value, "isoformat"):  # a date of pandas
        return value.isoformat()
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":  # dates of NumPy
        return None if value.ndim == 0 and value != value else value.astype(str).tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise InputError(
        f"A request needs numbers, texts, lists and objects: got {value!r} of type "
        f"{type(value).__name__}. Turn it into a list."
    )


def to_baseline(given: Baseline | ArmId) -> Baseline:
    """Return what is known of the baseline; an arm alone says nothing of its propensity."""
    baseline = given if isinstance(given, Baseline) else Baseline(given)
    propensity = baseline.propensity
    if propensity is not None and not 0.0 < propensity <= 1.0:
        raise InputError(
            f"A propensity needs to be above 0 and at most 1: got {propensity!r} for the arm "
            f"{baseline.arm!r}. Leave it out where it is not known."
        )
    return baseline


def check_id(id: str) -> str:
    """Return an id that a caller chose, if a decision may have it."""
    if not isinstance(id, str) or not _ID.fullmatch(id) or id.startswith(FALLBACK):
        raise InputError(
            f"The id of a decision needs 1 to 128 letters, digits and . _ : - and may not "
            f"begin with {FALLBACK!r}: got {id!r}. Choose another, or leave it to the client."
        )
    return id


def check_reward(reward: Reward) -> Reward:
    """Return a reward, if the service may take it: what is spooled must not be rejected later."""
    if not _ID.fullmatch(reward.decision):
        raise InputError(
            f"A reward needs the id of a decision, such as select() gives: got "
            f"{reward.decision!r}. Give that id, or what select() gave."
        )
    if not math.isfinite(reward.value):
        raise RewardError(
            f"A reward needs to be a finite number: got {reward.value!r} for the decision "
            f"{reward.decision!r}. Leave it out, or say what it was worth."
        )
    return reward
