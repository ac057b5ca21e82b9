"""The steps of compiled searches."""

from __future__ import annotations

import math

import pytest

from fastbandit import Exhaustive, GeneratorSearch, GradientAscent
from fastbandit.errors import SettingError
from fastbandit.search.steps import CompiledSteps, compiled_steps, walk_steps


def test_an_exhaustive_search_is_a_scan() -> None:
    assert compiled_steps(Exhaustive(chunk=5)) == CompiledSteps(kind="scan")


def test_an_ascent_takes_its_steps_from_its_settings() -> None:
    steps = compiled_steps(GradientAscent(starts=6, steps=3, hops=2, beam=5, partitions=4))

    assert (steps.kind, steps.starts, steps.steps) == ("ascent", 6, 3)
    assert (steps.hops, steps.beam, steps.partitions) == (2, 5, 4)
    assert steps.enough == math.inf


@pytest.mark.parametrize(("lookups", "expected"), [(None, 6), (2, 2), (9, 6)])
def test_no_more_points_are_looked_up_than_there_are(lookups: int | None, expected: int) -> None:
    assert walk_steps(GradientAscent(lookups=lookups), 6).lookups == expected


def test_a_search_by_nearest_neighbours_has_no_compiled_steps() -> None:
    with pytest.raises(SettingError, match=r"got neighbours=3\. Use partitions="):
        walk_steps(GeneratorSearch(neighbours=3), 16)


def test_a_search_without_compiled_steps_is_named() -> None:
    class Own:
        """A search from outside that has no compiled form."""

        def best(self) -> None: ...

    with pytest.raises(SettingError, match="Own has no method compiled"):
        compiled_steps(Own())  # type: ignore[arg-type]
