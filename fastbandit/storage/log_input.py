"""Checks of events: what a log takes, it returns exactly as it came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf, isfinite
from typing import Any

from msgspec import json

from fastbandit.errors import InputError, NotFiniteError
from fastbandit.storage.events import ArmId, ArmsChanged, DecisionMade, Event, RewardCame

_LARGEST = 2**63 - 1


def check_events(events: Iterable[Event]) -> None:
    """Raise unless all numbers are finite, and whole ones have at most 64 bits.

    JSON cannot hold numbers that are not finite: they would be read back as null.
    """
    for event in events:
        if isinstance(event, DecisionMade) and _is_ordinary(event):
            continue
        for numbers in _numbers_of(event):
            if not all(map(isfinite, numbers)):
                raise NotFiniteError(
                    f"An event needs finite numbers: got {list(numbers)}. Leave out what is not "
                    f"known."
                )
        for whole in _whole_numbers_of(event):
            if not -_LARGEST - 1 <= whole <= _LARGEST:
                raise InputError(
                    f"An event needs whole numbers of at most 64 bits: got {whole}. Use a text "
                    f"as the id of such an arm."
                )


def text_of(value: Any) -> str:
    return bytes_of(value).decode()


def bytes_of(value: Any) -> bytes:
    try:
        return json.encode(value)
    except UnicodeEncodeError as error:
        raise InputError(
            f"An event needs text that is Unicode: got {error.object[:80]!r} ({error.reason}). "
            f"Leave such characters out."
        ) from error
    except TypeError as error:
        raise InputError(
            f"An event needs values that JSON can hold: got others ({error}). Use texts, "
            f"numbers, lists and dicts."
        ) from error


def _is_ordinary(made: DecisionMade) -> bool:
    """Check quickly that nothing is wrong with a decision, as with nearly all of them."""
    context = made.context
    total = sum(context) if isinstance(context, list) else 0.0 if are_finite(context) else inf
    total += sum(made.scores) + sum(made.propensities or ())
    numbers = (made.seed, made.version, made.catalogue, made.wait)
    whole = [id for id in _ids_of(made) if not isinstance(id, str)]
    is_small = max(*numbers, *whole) <= _LARGEST and min(*numbers, *whole) >= -_LARGEST
    return is_small and isfinite(total + made.default_reward + made.epsilon)


def are_finite(value: Any) -> bool:
    """Return whether all numbers within a value that JSON holds are finite."""
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(are_finite, value.values()))
    return not isinstance(value, list) or all(map(are_finite, value))


def _numbers_in(value: Any) -> list[float]:
    """Return the numbers of a list, or those within an object that are not finite."""
    if isinstance(value, list):
        return value
    return [] if are_finite(value) else [inf]


def _ids_of(made: DecisionMade) -> list[ArmId]:
    return made.arms if made.other is None else [*made.arms, made.other]


def _numbers_of(event: Event) -> Iterator[Sequence[float]]:
    if isinstance(event, DecisionMade):
        yield _numbers_in(event.context)
        yield event.scores
        yield event.propensities or ()
        yield (event.default_reward, event.epsilon)
    elif isinstance(event, RewardCame):
        yield (event.value,)
    elif isinstance(event, ArmsChanged):
        yield from (_numbers_in(arm.features) for arm in event.upserted)


def _whole_numbers_of(event: Event) -> Iterator[int]:
    ids: list[ArmId] = []
    if isinstance(event, DecisionMade):
        yield from (event.seed, event.version, event.catalogue, event.wait)
        ids = _ids_of(event)
    elif isinstance(event, RewardCame) and event.arm is not None:
        ids = [event.arm]
    elif isinstance(event, ArmsChanged):
        ids = [*(arm.id for arm in event.upserted), *event.discarded]
    yield from (id for id in ids if isinstance(id, int))
