"""Arms that come with a request: read, checked, and set in place of the catalogue for it alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fastbandit.arms.offers import PLACEHOLDER, with_id
from fastbandit.errors import FastbanditError, ValueOfColumnError
from fastbandit.features.kinds import Ids
from fastbandit.features.schema import Schema
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.offered_arms import Known, KnownOffers, Offer, known_offers, unchanged
from fastbandit.serving.problems import rejection_of_error, wrong_field
from fastbandit.serving.schemas import MOST_OFFERED, OfferedArm, SelectRequest
from fastbandit.storage.arm_changes import by_name, features_of
from fastbandit.storage.events import Arm

_ENCODE = msgspec.json.Encoder().encode


class KeyedArm(OfferedArm):
    """An arm with the bytes that it came as, and what is known of it if it came before.

    Its features are text, too, as long as they need not be read.
    """

    key: bytes = b""
    known: Known | None = None


def known_arm(key: bytes, known: Known) -> KeyedArm:
    """Return an arm that came before, as it is logged, by the bytes that it came as."""
    entry: Arm = known.entry
    return KeyedArm(entry.id, entry.features, key, known)


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


def check_has_arms(bandit: FrozenBandit) -> None:
    """Reject a request without arms where there is no catalogue to choose from."""
    if PLACEHOLDER in bandit:
        raise wrong_field(
            "A request needs arms of its own: this service has no catalogue.",
            fix="Send arms, each with an id and features, or PUT some to /v1/arms.",
            field="arms",
        )


def offered_to(
    bandit: FrozenBandit, arms: Sequence[OfferedArm], schema: Schema | None
) -> tuple[FrozenBandit, list[Arm]]:
    """Return a bandit of these arms alone, and those that the log needs to hold.

    The schema says what the features of arms mean, and which of them are secret.
    """
    ids = [arm.id for arm in arms]
    if len(set(ids)) < len(ids):
        twice = next(n for n, id in enumerate(ids) if id in ids[:n])
        raise wrong_field(
            "Each arm of a request needs an id of its own.",
            fix="Send each arm once.",
            field=f"arms[{twice}].id",
            value=ids[twice],
        )
    _, whole, codec = bandit.parts
    are_open = schema is not None and schema.others is not None
    came = [arm.known if isinstance(arm, KeyedArm) else None for arm in arms]
    known = [None if one is None or one.among is not codec.offers else one for one in came]
    new = [arm for arm, one in zip(arms, known, strict=True) if one is None]
    fresh = [_offer_of(_read(arm, bandit if are_open else None)) for arm in new]
    is_plain = schema is not None and all(one.key for one in fresh) and _are_others(bandit, ids)
    if not is_plain:
        arms = [_read(arm, bandit if are_open else None) for arm in arms]
        fresh = [_offer_of(arm) for arm in arms]
    featured = [one for one in fresh if one.features and one.key not in codec.offers]
    try:
        if is_plain:  # those that are named are checked where they are encoded
            rest = iter(known_offers(whole, codec, fresh) if fresh else ())
            found = [next(rest) if one is None else one for one in known]
            return bandit.offering(KnownOffers(ids, found)), [one.entry for one in found]
        if featured and (schema is None or not all(one.key for one in featured)):
            listed = [Arm(one.id, one.features) for one in featured]
            by_name(listed, schema, wanted=())
            features_of(listed)
        few = bandit.offering(fresh)
        given = [arm for arm in arms if arm.features is not None or arm.id not in bandit]
        same = unchanged(whole, few.parts[1], [arm.id for arm in given if arm.features])
        logged = [arm for arm in given if arm.id not in same]
        return few, [Arm(arm.id, [] if arm.features is None else arm.features) for arm in logged]
    except ValueOfColumnError as error:
        arm = featured[error.row or 0]
        at = f"arms[{ids.index(arm.id)}].features"
        if not (schema and schema.others and error.column == schema.others.name):
            at = f"{at}.{error.column}"
        value = arm.features.get(error.column) if isinstance(arm.features, dict) else None
        raise rejection_of_error(error, field=at, value=value) from error
    except FastbanditError as error:
        raise rejection_of_error(error, field="arms", value=ids[:3]) from error


def _are_others(bandit: FrozenBandit, ids: list[Any]) -> bool:
    """Return whether arms are told by their features, and none has the id of the catalogue's."""
    _, whole, codec = bandit.parts
    if isinstance(codec.arm.kind, Ids):
        return False
    rows = whole.ids.find(ids)
    return bool(rows.max() < 0 or not whole.rows.live[rows[rows >= 0]].any())


def _read(arm: OfferedArm, bandit: FrozenBandit | None) -> OfferedArm:
    """Return an arm with its features read; with its id among them where any names are taken.

    A bandit is given where they are. One that comes without features and is known has none.
    """
    key, features = getattr(arm, "key", b""), arm.features
    if bandit is None and not isinstance(features, msgspec.Raw):
        return arm
    if isinstance(features, msgspec.Raw):
        features = msgspec.json.decode(features)
    if bandit is not None and not isinstance(features, list):
        is_known = features is None and arm.id in bandit
        features = None if is_known else with_id(arm.id, features)
    return KeyedArm(arm.id, features, key)


def _offer_of(arm: OfferedArm) -> Offer:
    """Return an arm as it is scored, and remembered where its features have names."""
    if type(arm.features) is not dict or not arm.features:
        return Offer(arm.id, arm.features or None)
    key = getattr(arm, "key", b"") or b"select" + _ENCODE((arm.id, arm.features))  # as no JSON
    entry: Any = msgspec.Raw(_ENCODE(arm.features))  # as the log has them
    return Offer(arm.id, arm.features, key, Arm(arm.id, entry))


def offering(bandit: FrozenBandit, arms: Sequence[Arm]) -> FrozenBandit:
    """Return a bandit of these arms alone; without features they are those of the catalogue."""
    return bandit.offering([Offer(arm.id, arm.features or None) for arm in arms])
