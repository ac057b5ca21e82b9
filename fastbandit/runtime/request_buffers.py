"""A thread's own arrays for one request to a frozen bandit, and for its answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastbandit.errors import ShapeError
from fastbandit.features.kinds import shown
from fastbandit.runtime.codec import Codec
from fastbandit.types import Inputs


class RequestBuffers(threading.local):
    """Arrays that compiled code reads one request from, and writes its answer to."""

    def __init__(self, columns: int) -> None:
        self.contexts = np.empty((1, columns), dtype=np.float32)
        self.seeds = np.empty(1, dtype=np.uint64)
        self.rows = np.empty((1, 1), dtype=np.int32)
        self.scores = np.empty((1, 1), dtype=np.float32)
        self.costs = np.empty((1, 3), dtype=np.int64)
        self.request, self.answer = (
            (self.contexts, self.seeds),
            (self.rows, self.scores, self.costs),
        )
        self.is_clipped = False

    def write(self, codec: Codec, context: Any) -> None:
        """Write a context, embedded where compiled code does not do that."""
        if not codec.context.is_compiled:
            one = codec.read_one(context)
            if not codec.version:
                return  # nothing is scored before the first update
            context = codec.context.embed(one)[0]
            self.is_clipped = bool(codec.context.is_clipped(one)[0])
        elif type(context) is dict and codec.schema is not None:  # the quickest way
            self.contexts[0] = codec.schema.encode_one(context)
            return
        elif type(context) is not np.ndarray and isinstance(context, (Inputs, Mapping)):
            dense = codec.read_one(context).dense
            assert dense is not None
            context = dense[0]
        try:
            self.contexts[0] = context
            shape = context.shape if type(context) is np.ndarray else np.shape(context)
            is_one = shape == self.contexts.shape[1:]
        except (TypeError, ValueError):
            is_one = False
        if not is_one:
            raise ShapeError(
                f"A context needs {self.contexts.shape[1]} numbers in a row: got "
                f"{shown(context)}. Give many contexts to select()."
            )
