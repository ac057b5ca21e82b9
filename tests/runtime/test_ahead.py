"""The first decision of an installation is compiled by two processes; later ones find the code."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import typeof

from fastbandit import Bandit
from fastbandit.runtime import ahead, kernel
from fastbandit.runtime.ahead import decide, parts_of
from fastbandit.runtime.frozen_catalogue import EVERYTHING, EligibleRows


class Part(SimpleNamespace):
    """Stands for a policy or arms, which a workspace holds weakly."""


TABLE = SimpleNamespace(rows=None)
ARMS = SimpleNamespace(kind=np.zeros(0, dtype="int8"))
NOTHING: tuple[Any, ...] = (
    Part(table=TABLE),
    Part(table=TABLE, arms=ARMS),
    EligibleRows(EVERYTHING, 0, np.zeros(0, np.int32)),
    (None, None),
    (None, None, None),
)


class Kernel:
    """Stands for the compiled code of decisions."""

    def __init__(self) -> None:
        self.overloads: dict[str, int] = {}
        self.calls = 0

    def __call__(self, *_: Any) -> None:
        self.calls += 1
        self.overloads["some types"] = 1


class Helper:
    """Stands for the process that compiles beside."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def kill(self) -> None:
        self.done.append("kill")

    def wait(self) -> None:
        self.done.append("wait")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Helper]]:
    """Two cores and no code yet: the helpers that were started, and for which vectors."""
    found: list[tuple[str, Helper]] = []

    def start(vectors: str) -> Helper:
        found.append((vectors, Helper()))
        return found[-1][1]

    monkeypatch.setattr(kernel, "decide", Kernel())
    monkeypatch.setattr(kernel, "lay_out", lambda *_: (None, None))
    monkeypatch.setattr(ahead, "is_stored", lambda: False)
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    monkeypatch.setattr(ahead, "start_helper", start)
    return found


def test_a_helper_compiles_beside_the_first_decision_alone(
    started: list[tuple[str, Helper]],
) -> None:
    decide(*NOTHING)
    decide(*NOTHING)

    assert [vectors for vectors, _ in started] == ["int8"]
    assert started[0][1].done == ["kill", "wait"]
    assert kernel.decide.calls == 2  # type: ignore[attr-defined]


def test_code_that_was_kept_needs_no_helper(
    started: list[tuple[str, Helper]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "is_stored", lambda: True)
    decide(*NOTHING)

    assert started == []


def test_one_core_compiles_alone(
    started: list[tuple[str, Helper]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: 1)
    decide(*NOTHING)

    assert started == []


def test_a_helper_that_cannot_start_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", fail)

    assert ahead.start_helper("float32") is None


@pytest.mark.parametrize("vectors", ["float32", "int16", "int8"])
def test_each_part_has_a_type_for_each_parameter(vectors: str) -> None:
    for function, types in parts_of(vectors):
        assert function.py_func.__code__.co_argcount == len(types)


def test_parts_are_compiled_for_the_arrays_of_a_bandit() -> None:
    frozen = Bandit(arms=np.eye(3), context=2).freeze()
    model, catalogue, _ = frozen.parts
    types = {function.py_func.__name__: types for function, types in parts_of("float32")}
    given = (*catalogue.table.arrays[:8], 3, catalogue.positions)

    told = types["land"][0].types[: len(given)]

    # A table says nothing of arrays that may not be written to: compiled code writes to none.
    assert told == tuple(typeof(np.array(one) if np.ndim(one) else one) for one in given)
    assert types["_climb_all"][2:4] == tuple(typeof(one.copy()) for one in model.arrays[:2])
