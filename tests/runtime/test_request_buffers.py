"""A thread's own arrays for one request."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
import pytest
from fakes import vectors_of
from little_frozen import CONTEXTS, frozen_bandit

from fastbandit.errors import ShapeError
from fastbandit.runtime import kernel
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.frozen_catalogue import EligibleRows
from fastbandit.runtime.request_buffers import OwnBuffers, RequestBuffers, Workspace
from fastbandit.runtime.tables import _arrays_at
from fastbandit.types import Inputs

ARMS = np.eye(4, dtype=np.float32)
CODEC = frozen_bandit(arms=ARMS, posterior="dropout").parts[2]


def test_a_context_is_written_as_it_is_where_compiled_code_embeds_it() -> None:
    buffers = RequestBuffers(4)
    buffers.write(CODEC, CONTEXTS[0].tolist())

    assert buffers.contexts[0].tolist() == CONTEXTS[0].tolist()


def test_inputs_are_written_by_their_first_row() -> None:
    buffers = RequestBuffers(4)
    buffers.write(CODEC, Inputs(dense=CONTEXTS[1:2]))

    assert buffers.contexts[0].tolist() == CONTEXTS[1].tolist()


def test_a_context_of_another_size_is_rejected() -> None:
    with pytest.raises(ShapeError, match="needs 4 numbers"):
        RequestBuffers(4).write(CODEC, [1.0])


def test_threads_do_not_share_them() -> None:
    buffers, found = OwnBuffers(4), []
    thread = threading.Thread(target=lambda: found.append(buffers.mine))
    thread.start()
    thread.join()

    assert found[0] is not buffers.mine


# -- workspaces


def table_of(space: Workspace, frozen: FrozenBandit, eligible: EligibleRows | None = None) -> Any:
    model, catalogue, _ = frozen.parts
    buffers = RequestBuffers(4)
    some = catalogue.all_eligible if eligible is None else eligible
    return space.table_for(model, catalogue, some.mask, buffers.contexts, buffers.rows)


def test_a_workspace_is_laid_out_once_for_one_policy_and_its_arms() -> None:
    space, frozen = Workspace(), frozen_bandit(arms=ARMS, posterior="dropout")

    assert table_of(space, frozen) is table_of(space, frozen)


@pytest.mark.parametrize("changed", ["policy", "arms", "mask"])
def test_a_workspace_is_laid_out_anew_for_others(changed: str) -> None:
    space, frozen, eligible = Workspace(), frozen_bandit(arms=ARMS, posterior="dropout"), None
    before = table_of(space, frozen)
    if changed == "policy":
        frozen._model = replace(frozen._model)
    elif changed == "arms":
        frozen.discard_arms([2])
    else:
        eligible = EligibleRows(np.ones(4, np.bool_), 4, np.zeros(0, np.int32))

    assert table_of(space, frozen, eligible) is not before


def test_a_workspace_begins_where_a_line_of_memory_does() -> None:
    table = table_of(Workspace(), frozen_bandit(arms=ARMS, posterior="dropout"))

    assert not (table[-30:, 0] % 64).any()


def test_a_workspace_keeps_no_arms_alive() -> None:
    space, frozen = Workspace(), frozen_bandit(arms=ARMS, posterior="dropout")
    table_of(space, frozen)
    arms = ref(frozen.parts[1])
    frozen.discard_arms([2])
    gc.collect()

    assert arms() is None


def test_requests_of_all_kinds_are_answered_alike_one_after_the_other() -> None:
    arms = vectors_of(3000, 4, seed=1)
    frozen = frozen_bandit(arms=arms, posterior="dropout")
    mask, few = np.arange(3000) % 2 == 0, [3, 5, 8]
    kinds: list[dict[str, Any]] = [{}, {"eligible": mask}, {"eligible": few}, {"explore": False}]
    for number, kind in enumerate(kinds * 3):
        seeds = np.array([number], np.uint64)
        one = frozen.select_one(CONTEXTS[number % 3], seed=number, **kind)

        expected = frozen.select(CONTEXTS[number % 3][None], seeds=seeds, **kind)
        assert one.row == expected.rows[0, 0]
        assert one.evaluations == expected.evaluations[0]


def test_what_an_earlier_request_left_to_the_generator_changes_nothing() -> None:
    frozen = frozen_bandit(arms=vectors_of(3000, 3, seed=1), posterior="dropout")
    expected = frozen.select_one(CONTEXTS[1], seed=2)
    table = frozen._buffers.mine.workspace._table
    told, count = kernel._ROOM, kernel._ROOM_ROWS
    room = kernel.Room(*_arrays_at(table[-count - 1 :], told, np.zeros(0, np.float32))[:15])
    room.signals[:] = np.nan

    assert frozen.select_one(CONTEXTS[1], seed=2) == expected


def test_more_partitions_than_there_are_need_no_more_room_than_all_of_them() -> None:
    frozen = frozen_bandit(arms=vectors_of(3000, 3, seed=1), posterior="dropout")
    model, catalogue, codec = frozen.parts
    answers = []
    for partitions in (1_000, 2**31 - 1):
        counts = model.counts.copy()
        counts[kernel.PARTITIONS] = partitions
        other = FrozenBandit(replace(model, counts=counts), catalogue, codec)
        answers.append(other.select_one(CONTEXTS[1], seed=2))

    assert answers[0] == answers[1]
