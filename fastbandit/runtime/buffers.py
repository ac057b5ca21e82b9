"""Buffers: a thread's own arrays for one request and its answer."""

from __future__ import annotations

import threading

import numpy as np


class Buffers(threading.local):
    """A thread's own arrays for one request and its answer."""

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
