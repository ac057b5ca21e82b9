"""Arms that come with a request: read, checked, and set in place of the catalogue for it alone."""

from __future__ import annotations

from collections.abc import Sequence

from fastbandit.errors import FastbanditError, ValueOfColumnError
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.offered_arms import Offer, unchanged
from fastbandit.serving.problems import rejection_of_error, wrong_field
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.schemas import MOST_OFFERED, OfferedArm, SelectRequest
from fastbandit.storage.arm_changes import by_name, features_of
from fastbandit.storage.events import Arm


def check_only_arms(request: SelectRequest) -> None:
    """Reject a request that says in two ways what it may choose, or brings too much."""
    if request.eligible is not None:
        raise wrong_field(
            "A request needs either arms of its own, or eligible ones of the catalogue: got both.",
            fix="List the arms in arms, without features where the catalogue has them.",
            field="eligible",
            value=request.eligible,
        )
    many = request.contexts if isinstance(request.contexts, list) else [None]
    if request.arms is not None and len(request.arms) * len(many) > 10 * MOST_OFFERED:
        raise wrong_field(
            f"A request may log at most {10 * MOST_OFFERED:,} arms: {len(many)} contexts with "
            f"{len(request.arms)} arms each are more.",
            fix="Ask for fewer contexts at a time, or PUT the arms to /v1/arms.",
            field="arms",
            value=len(request.arms),
        )


def offered_to(bandit: FrozenBandit, arms: Sequence[OfferedArm]) -> tuple[FrozenBandit, list[Arm]]:
    """Return a bandit of these arms alone, and those that the log needs to hold."""
    ids = [arm.id for arm in arms]
    if len(set(ids)) < len(ids):
        twice = next(n for n, id in enumerate(ids) if id in ids[:n])
        raise wrong_field(
            "Each arm of a request needs an id of its own.",
            fix="Send each arm once.",
            field=f"arms[{twice}].id",
            value=ids[twice],
        )
    given = [arm for arm in arms if arm.features is not None or arm.id not in bandit]
    offered = [Arm(arm.id, [] if arm.features is None else arm.features) for arm in given]
    featured = [arm for arm in offered if arm.features]
    try:
        if featured:
            by_name(featured, arm_schema_of(bandit), wanted=())
            features_of(featured)
        few = offering(bandit, [Arm(arm.id, arm.features or []) for arm in arms])
        same = unchanged(bandit.parts[1], few.parts[1], [arm.id for arm in featured])
        return few, [arm for arm in offered if arm.id not in same]
    except ValueOfColumnError as error:
        arm = featured[error.row or 0]
        at = f"arms[{ids.index(arm.id)}].features.{error.column}"
        value = arm.features.get(error.column) if isinstance(arm.features, dict) else None
        raise rejection_of_error(error, field=at, value=value) from error
    except FastbanditError as error:
        raise rejection_of_error(error, field="arms", value=ids[:3]) from error


def offering(bandit: FrozenBandit, arms: Sequence[Arm]) -> FrozenBandit:
    """Return a bandit of these arms alone; without features they are those of the catalogue."""
    return bandit.offering([Offer(arm.id, arm.features or None) for arm in arms])
