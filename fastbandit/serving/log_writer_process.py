"""The process that writes the log of a service with several workers: one writer, one thread.

Workers send frames of events over sockets that the service hands to both sides. Whatever has
come while one group was synced is the next: one append, one sync, an answer to each frame.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from fastbandit.errors import FastbanditError
from fastbandit.serving.frames import (
    CHANGED,
    FAILED,
    STEPPED,
    CameArms,
    Frames,
    frame,
    frame_of_outcomes,
)
from fastbandit.serving.writer import FEW
from fastbandit.storage.column_marks import SecretNames
from fastbandit.storage.events import ArmsChanged, Event
from fastbandit.storage.log_clock import ClockSteps, LogClock
from fastbandit.storage.sqlite_log import SqliteLog

_MOST_BYTES = 2**18  # read from a worker at a time
_STUCK_SECONDS = 5.0  # a worker that takes no answer for so long is given up
_BUSY = 16
_GATHERING_SECONDS = 0.002
"""After a group of so many events the next gathers for so long, as in `Writer`."""


@dataclass(eq=False)
class _Worker:
    """A worker's socket, and what came over it: what is no whole frame yet, and all arms."""

    socket: socket.socket
    frames: Frames = field(default_factory=Frames)
    arms: CameArms = field(default_factory=CameArms)


class _Sent(NamedTuple):
    """Events of one frame, and who waits for them."""

    worker: _Worker
    number: int
    events: list[Event]


class LogWriterProcess:
    """Appends what workers send to a log, until the service at the other end of `parent` ends."""

    def __init__(self, log: SqliteLog, parent: socket.socket) -> None:
        self._log, self._parent, self._steps = log, parent, 0
        self._ready = selectors.DefaultSelector()
        self._ready.register(parent, selectors.EVENT_READ)

    def run(self) -> None:
        """Write groups of events; a socket that comes from the parent is of one more worker."""
        size, large = 0, deque[_Sent]()
        while True:
            found = self._ready.select(0 if large else None)
            if size >= _BUSY and not large:
                time.sleep(_GATHERING_SECONDS)
                found = self._ready.select(0)
            group: list[_Sent] = []
            for key, _ in found:
                if key.data is not None:
                    group += self._received(key.data)
                elif not self._take_worker():
                    return
            small = [one for one in group if len(one.events) <= FEW]
            large += (one for one in group if len(one.events) > FEW)
            size = self._append(small) if small else 0
            if large:  # one at a time: small ones may have come meanwhile
                self._append([large.popleft()])

    def close(self) -> None:
        """Let go of the sockets and of the log."""
        for key in list(self._ready.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._ready.close()
        self._log.close()

    def _take_worker(self) -> bool:
        """Take a socket from the parent; return whether the parent is still there."""
        try:
            said, sockets, _, _ = socket.recv_fds(self._parent, 16, 4)
        except ConnectionError:
            return False
        for number in sockets:
            worker = _Worker(socket.socket(fileno=number))
            worker.socket.settimeout(_STUCK_SECONDS)
            self._ready.register(worker.socket, selectors.EVENT_READ, worker)
            self._send(worker, frame(0, CHANGED, b"%d" % self._log.last))
            if self._steps:
                self._send(worker, self._stepped())
        return bool(said)

    def _received(self, worker: _Worker) -> list[_Sent]:
        try:
            data = worker.socket.recv(_MOST_BYTES)
        except OSError:
            data = b""
        if not data:
            self._give_up(worker)
        whole = worker.frames.feed(data)
        read = worker.arms.events_in
        return [_Sent(worker, number, read(kind, body)) for number, kind, body in whole]

    def _append(self, group: list[_Sent]) -> int:
        """Write a group, and answer who waits for it; return its size."""
        events = [event for one in group for event in one.events]
        answers: dict[_Worker, list[bytes]] = {}
        try:
            outcomes = self._log.append(events)
        except FastbanditError as error:
            said = " ".join(str(error).split()).encode()
            for one in group:
                answers.setdefault(one.worker, []).append(frame(one.number, FAILED, said))
        else:
            first = 0
            for one in group:
                last = first + len(one.events)
                answer = frame_of_outcomes(one.number, outcomes[first:last])
                answers.setdefault(one.worker, []).append(answer)
                first = last
            if any(isinstance(event, ArmsChanged) for event in events):
                changed = frame(0, CHANGED, b"%d" % self._log.last)
                for worker in self._workers():
                    answers.setdefault(worker, []).insert(0, changed)
        if (steps := self._seen().steps) != self._steps:
            self._steps = steps
            for worker in self._workers():
                answers.setdefault(worker, []).append(self._stepped())
        for worker, frames in answers.items():
            self._send(worker, b"".join(frames))
        return len(events)

    def _seen(self) -> ClockSteps:
        clock = getattr(self._log, "clock", None)
        return clock.seen if isinstance(clock, LogClock) else ClockSteps()

    def _stepped(self) -> bytes:
        """Return a frame that says what was seen of the clock of this machine."""
        return frame(0, STEPPED, msgspec.json.encode(self._seen()))

    def _workers(self) -> list[_Worker]:
        return [key.data for key in self._ready.get_map().values() if key.data is not None]

    def _send(self, worker: _Worker, data: bytes) -> None:
        try:
            worker.socket.sendall(data)
        except OSError:
            self._give_up(worker)

    def _give_up(self, worker: _Worker) -> None:
        """Let go of a worker that ended, or takes no answers: it asks for another socket."""
        if worker.socket.fileno() >= 0:
            self._ready.unregister(worker.socket)
            worker.socket.close()


def main() -> None:
    """Write a log.

    The parent's socket is inherited under a number; the path comes second, secret columns third.
    """
    for ending in (signal.SIGINT, signal.SIGTERM):  # it ends when the service does, not before
        signal.signal(ending, signal.SIG_IGN)
    parent = socket.socket(fileno=int(sys.argv[1]))
    try:
        log = SqliteLog(Path(sys.argv[2]), secret=SecretNames.read(map(json.loads, sys.argv[3:])))
    except FastbanditError as error:
        parent.sendall(b"-" + " ".join(str(error).split()).encode())
        sys.exit(2)
    process = LogWriterProcess(log, parent)
    parent.sendall(b"+")
    process.run()
    process.close()


if __name__ == "__main__":
    main()
