"""Figures from a process of their own: reading a long log takes no time from deciding.

The child reads questions as lines of JSON and answers each with one line; it ends when the
service does, because its input ends then.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from fastbandit.errors import FastbanditError, LogError
from fastbandit.serving.console.figures import Figures
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.local_copy import COPY, local_copy

_LONGEST_LINE = 64 * 2**20
_SECONDS = 20.0
_COPYING_S, _WAITING_S, _ANSWER_S = 4.0, 1.0, 3.0  # so an answer does not take ten seconds
_REST_S = 2.0
_LOG_URL = "FASTBANDIT_LOG_URL"  # other users can read the arguments of a process


class Question(msgspec.Struct):
    """The range to show in minutes (None: all), and what the service says of itself."""

    minutes: int | None
    serving: dict[str, Any]


class FiguresProcess:
    """Asks a child process for figures, one question at a time; starts it when first asked.

    With the URL of a shared log they are of the copy of that, which the child brings up to date.
    """

    def __init__(self, folder: Path, *, log_url: str = "") -> None:
        self._folder, self._log_url = folder, log_url
        self._child: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()

    async def ask(self, minutes: int | None, serving: dict[str, Any]) -> bytes:
        """Return figures as JSON, or raise why there are none."""
        question = msgspec.json.encode(Question(minutes, serving)) + b"\n"
        async with self._asking:
            if self._child is None or self._child.returncode is not None:
                self._child = await self._start()
            try:
                line = await asyncio.wait_for(self._answer(self._child, question), _SECONDS)
            except (TimeoutError, OSError, ValueError):
                line = b""
            if not line.startswith(b"+"):
                await self._end(self._child)
                self._child = None
        if line.startswith(b"+"):
            return line[1:]
        said = line[1:].decode().strip() or "the process that reads the log gave no answer"
        raise LogError(f"The console needs a log that can be read: {said}. Try again.")

    async def stop(self) -> None:
        if self._child is not None:
            await self._end(self._child)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            str(self._folder),
            env={**os.environ, _LOG_URL: self._log_url},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
        )

    @staticmethod
    async def _answer(child: asyncio.subprocess.Process, question: bytes) -> bytes:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(question)
        await child.stdin.drain()
        return await child.stdout.readline()

    @staticmethod
    async def _end(child: asyncio.subprocess.Process) -> None:
        if child.returncode is None:
            child.kill()
        await child.wait()


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
        if self._clock() < self._next:
            return self._note
        notes: list[str] = []
        try:
            local_copy(
                self._url,
                self._folder,
                seconds=_COPYING_S,
                wait_seconds=_WAITING_S,
                fresh_seconds=inf,
                timeout_seconds=_ANSWER_S,
                warn=notes.append,
            )
        except LogError as error:
            if not self.file.exists():
                raise
            notes.append(f"The copy of the shared log stays as it is: {error}")
        self._note = notes[-1] if notes else None
        self._next = self._clock() + _REST_S
        return self._note


def main() -> None:
    """Answer questions about the data folder in the first argument until they end."""
    folder, url = Path(sys.argv[1]), os.environ.get(_LOG_URL, "")
    copy = LogCopy(url, folder) if url else None
    log = folder / LOG_FILE if copy is None else copy.file
    figures = Figures(log, folder / "snapshots", folder, is_shared=bool(url))
    for line in sys.stdin.buffer:
        question = msgspec.json.decode(line, type=Question)
        try:
            note = None if copy is None else copy.go_on()
            found = figures.figures(question.minutes, serving=question.serving, note=note)
            answer = b"+" + msgspec.json.encode(found)
        except FastbanditError as error:
            answer = b"-" + " ".join(str(error).split()).encode()
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
