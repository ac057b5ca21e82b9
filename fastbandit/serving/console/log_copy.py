"""The copy of a shared log that the console reads: brought up to date little by little."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from pathlib import Path

from fastbandit.errors import LogError
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.local_copy import COPY, local_copy

_COPYING_S, _WAITING_S, _ANSWER_S = 4.0, 1.0, 3.0  # so an answer does not take ten seconds
_REST_S = 2.0


class LogCopy:
    """Follows the log at a URL with a copy in a data folder."""

    def __init__(
        self, url: str, folder: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url, self._folder, self._clock = url, folder, clock
        self._note: str | None = None
        self._next = -inf
        self.file = folder / COPY / LOG_FILE

    def go_on(self) -> str | None:
        """Copy for some seconds, unless that was done just now; return what the copy lacks."""
        if self._clock() >= self._next:
            self._note = None
            self._copy()
            self._next = self._clock() + _REST_S
        return self._note

    def _copy(self) -> None:
        try:
            local_copy(
                self._url,
                self._folder,
                seconds=_COPYING_S,
                wait_seconds=_WAITING_S,
                fresh_seconds=inf,
                timeout_seconds=_ANSWER_S,
                warn=self._note_that,
            )
        except LogError as error:
            if not self.file.exists():
                raise
            self._note_that(f"The copy of the shared log stays as it is: {error}")

    def _note_that(self, note: str) -> None:
        self._note = note
