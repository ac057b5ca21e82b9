"""The catalogue that a frozen bandit decides from, replaced while threads read it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from fastbandit.runtime.frozen_catalogue import FrozenCatalogue

_WAITING = 1024
_ONE_IN = 100
"""When so many arms, and such a share of all, are not in partitions, they are put there."""
_Answer = TypeVar("_Answer")


class LiveCatalogue:
    """The catalogue as it is `now`. Changes come one after the other; readers never wait."""

    def __init__(self, catalogue: FrozenCatalogue) -> None:
        self.now = catalogue
        self._lock = threading.Lock()
        self._indexing: threading.Thread | None = None

    def change(
        self,
        to_next: Callable[[FrozenCatalogue], tuple[FrozenCatalogue, _Answer]],
        *,
        is_trial: bool = False,
    ) -> _Answer:
        """Put the next catalogue in place of this one; a trial only raises what that raises."""
        with self._lock:
            changed, answer = to_next(self.now)
            self.now = self.now if is_trial else changed
        if len(self.now.more) > max(_WAITING, len(self.now.arms.order) // _ONE_IN):
            self.index(wait=False)
        return answer

    def index(self, *, wait: bool) -> None:
        """Put all arms into partitions anew, in the background unless the caller waits."""
        with self._lock:
            if self._indexing is None or not self._indexing.is_alive():
                self._indexing = threading.Thread(target=self._index, daemon=True)
                self._indexing.start()
            thread = self._indexing
        if wait:
            thread.join()
            if len(self.now.more):  # added while the partitions were made
                self.index(wait=True)

    def _index(self) -> None:
        before = self.now
        arms = before.in_partitions()
        with self._lock:
            self.now = self.now.moved_into(arms, before)
