"""A thread's own arrays for one request."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from little_frozen import CONTEXTS, frozen_bandit

from fastbandit.errors import ShapeError
from fastbandit.runtime.request_buffers import RequestBuffers
from fastbandit.types import Inputs

CODEC = frozen_bandit(arms=np.eye(4, dtype=np.float32), posterior="dropout").parts[2]


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
    buffers, found = RequestBuffers(4), []
    thread = threading.Thread(target=lambda: found.append(buffers.contexts))
    thread.start()
    thread.join()

    assert found[0] is not buffers.contexts
