"""A thread's own arrays for one request to a frozen bandit, and for its answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from weakref import ref

import numpy as np

from fastbandit.errors import ShapeError
from fastbandit.features.kinds import shown
from fastbandit.runtime import kernel
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.parts import FrozenModel
from fastbandit.runtime.tables import Rows
from fastbandit.types import Inputs


class Workspace:
    """Room for the numbers of decisions, laid out anew for another policy, other arms or a mask.

    It keeps neither policy nor arms alive, as a thread may never decide again.
    """

    def __init__(self) -> None:
        self._made_for: tuple[Any, Any, bool] = (lambda: None, lambda: None, False)

    def table_for(self, model: FrozenModel, catalogue: FrozenCatalogue, *asked: Any) -> Rows:
        """Return what `kernel.decide` decides with; the mask, contexts and rows say how many."""
        (policy, arms, was_masked), is_masked = self._made_for, len(asked[0]) > 0
        if policy() is not model or arms() is not catalogue or was_masked is not is_masked:
            tables = (model.table.rows, catalogue.table.rows, catalogue.arms.kind)
            self._table, self._memory = kernel.lay_out(*tables, *asked)
            self._made_for = ref(model), ref(catalogue), is_masked
        return self._table


class RequestBuffers:
    """Arrays that compiled code reads one request from, and writes its answer to."""

    def __init__(self, columns: int) -> None:
        self.contexts = np.empty((1, columns), dtype=np.float32)
        self.context = self.contexts[0]
        self.seeds = np.empty(1, dtype=np.uint64)
        self.rows = np.empty((1, 1), dtype=np.int32)
        self.scores = np.empty((1, 1), dtype=np.float32)
        self.costs = np.empty((1, 3), dtype=np.int64)
        self.request = self.contexts, self.seeds
        self.answer = self.rows, self.scores, self.costs
        self.workspace = Workspace()
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
            self.context[...] = codec.schema.encode_one(context)
            return
        elif type(context) is not np.ndarray and isinstance(context, (Inputs, Mapping)):
            dense = codec.read_one(context).dense
            assert dense is not None
            context = dense[0]
        try:
            self.context[...] = context
            shape = context.shape if type(context) is np.ndarray else np.shape(context)
            is_one = shape == self.context.shape
        except (TypeError, ValueError):
            is_one = False
        if not is_one:
            raise ShapeError(
                f"A context needs {len(self.context)} numbers in a row: got "
                f"{shown(context)}. Give many contexts to select()."
            )


class OwnBuffers(threading.local):
    """The buffers of a thread: found once for a request, as each look at what is its own costs."""

    def __init__(self, columns: int) -> None:
        self.mine = RequestBuffers(columns)
