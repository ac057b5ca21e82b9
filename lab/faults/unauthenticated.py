"""Bytes from who has no key: long headers, large bodies, answers that nobody reads, thousands of
slow connections.

Meanwhile who has a key asks over a connection of its own, and over new ones: nobody may wait for
long, and the service may not hold much more memory.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.serving.keys import KEYS_FILE, create_key
from lab.faults.ending import end_with_report
from lab.faults.garbage import exchange, read_answers, status_of
from lab.faults.load import Load, requests_of
from lab.faults.stage import HOST, Running, set_stage, wait_for

STALL_MS, GROWTH_BYTES, UNREAD, SLOW = 50.0, 64 * 2**20, 400, 10_000
_DIM, _ARMS = 8, 1_000
_PAUSE_SECONDS = 0.002
_NEW_EVERY = 10  # probes over a connection of its own
_LITTLE = 4096
"""Bytes that the kernel holds for who reads no answers. More would hide that a connection ended:
who reads nothing notices that only where something is left to send."""
_PIECE = b"y" * 2**16
_HEAD = b"POST /v1/select HTTP/1.1\r\nhost: 127.0.0.1\r\n"
_PAGE = b"GET /console/console.js HTTP/1.1\r\n\r\n"
_ANSWERED = _PAGE + _HEAD + b"content-length: 0\r\n\r\n"
_SETTINGS = {"limits.body_seconds": 10.0}  # a third of what is usual: to see how unread ones end
_UNTIL_ENDED = {"slow": (12, 1.0), "unread": (900, 0.1)}  # looks, and seconds between them


class Sent(msgspec.Struct, frozen=True):
    """What was thrown at a service: how many connections, how many of them it ended, how much."""

    connections: int
    ended: int
    bytes: int


@dataclass(frozen=True)
class Attack:
    """One kind of bytes, and what others noticed of it; times are in milliseconds."""

    name: str
    connections: int
    ended: int
    bytes: int
    asked: int
    failed: int
    p99_ms: float
    longest_ms: float
    grown_bytes: int


@dataclass(frozen=True)
class UnauthenticatedReport:
    """What a service with keys bears from who has none; the first of all is no attack."""

    attacks: tuple[Attack, ...]

    @property
    def is_bearable(self) -> bool:
        """Whether all bars are met."""
        return all(
            one.longest_ms <= STALL_MS and one.grown_bytes <= GROWTH_BYTES and one.failed == 0
            for one in self.attacks[1:]
        )


def unauthenticated(
    *,
    headers: int = 20,
    bodies: int = 150,
    unread: int = UNREAD,
    slow: int = SLOW,
    progress: Progress = silent,
) -> UnauthenticatedReport:
    """Send so many connections of each kind to a service, and ask it meanwhile."""
    with tempfile.TemporaryDirectory() as home:
        stage = set_stage(Path(home), Synthetic("h3", _DIM, _ARMS), _SETTINGS)
        key, _ = create_key(stage.data / KEYS_FILE, name="probe", scopes=["admin"])
        service = stage.start("--no-learner")
        try:
            asked = requests_of(Load(stage.port, 0, features=_DIM, key=key))
            wait_for(lambda: _is_answered(stage.port, asked[0]), seconds=60, what="an answer")
            found = []
            plans = [("nothing", 0), ("headers", headers), ("bodies", bodies)]
            plans += [("unread", unread), ("slow", slow)]
            for number, (name, count) in enumerate(plans):
                found.append(_attacked(service, name, count, asked))
                progress(number + 1, len(plans), name)
        finally:
            service.end()
    return UnauthenticatedReport(tuple(found))


def _is_answered(port: int, request: bytes) -> bool:
    with suppress(OSError):
        return status_of(exchange(port, [request])) == 200
    return False


def _attacked(service: Running, name: str, count: int, asked: list[bytes]) -> Attack:
    """Ask a service while something is thrown at it."""
    port, before = service.stage.port, service.memory()["rss"]
    command = [sys.executable, "-m", "lab.faults.unauthenticated", name, str(port), str(count)]
    thrower = subprocess.Popen(command, stdout=subprocess.PIPE)
    most, times, failed = before, list[float](), 0
    try:
        with closing(_connected(port)) as own:
            while thrower.poll() is None:
                is_new = len(times) % _NEW_EVERY == 0
                began = time.perf_counter()
                one = _connected(port) if is_new else own
                failed += not _is_good(one, asked[len(times) % len(asked)])
                times.append(time.perf_counter() - began)
                if is_new:
                    one.close()
                    most = max(most, service.memory()["rss"])
                time.sleep(_PAUSE_SECONDS)
        sent = msgspec.json.decode(thrower.communicate()[0], type=Sent)
    finally:
        thrower.kill()
        thrower.wait()
    took = np.array(times) * 1e3
    return Attack(
        name,
        sent.connections,
        sent.ended,
        sent.bytes,
        asked=len(times),
        failed=failed,
        p99_ms=float(np.percentile(took, 99)),
        longest_ms=float(took.max()),
        grown_bytes=most - before,
    )


def _connected(port: int) -> socket.socket:
    one = socket.create_connection((HOST, port), timeout=10.0)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def _is_good(one: socket.socket, request: bytes) -> bool:
    try:
        one.sendall(request)
        return status_of(read_answers(one, 1)) == 200
    except OSError:
        return False


# -- what is thrown, by a process of its own


class _Thrown(asyncio.Protocol):
    """A connection that sends what it has, and looks at no answer, or does not even take it."""

    def __init__(self, name: str) -> None:
        self.pieces = _pieces(name)
        self.sent, self.is_open, self.is_paused = 0, True, False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.resume_writing()

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        while not self.is_paused and (piece := next(self.pieces, b"")):
            self.sent += len(piece)
            self.transport.write(piece)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False


def _pieces(name: str) -> Iterator[bytes]:
    if name == "slow":
        yield _HEAD
        return
    if name == "unread":
        yield from (_ANSWERED * 100 for _ in range(100))
        return
    length = 64 if name == "headers" else 4
    yield _HEAD + (
        b"x: " if name == "headers" else b"content-length: %d\r\n\r\n" % (length * 2**20)
    )
    for _ in range(16 * length):
        yield _PIECE


async def _throw(name: str, port: int, count: int) -> Sent:
    loop, thrown = asyncio.get_running_loop(), list[_Thrown]()
    if name == "nothing":
        await asyncio.sleep(3.0)
    for _ in range(count):
        with suppress(OSError):
            own = socket.socket()
            if name == "unread":
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LITTLE)
                own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LITTLE)
            own.setblocking(False)
            await loop.sock_connect(own, (HOST, port))
            transport, one = await loop.create_connection(lambda: _Thrown(name), sock=own)
            if name == "unread":
                transport.pause_reading()  # not earlier: uvloop would read on all the same
            thrown.append(one)
    looks, seconds = _UNTIL_ENDED.get(name, (40, 0.1))
    for _ in range(looks):  # a byte at each where they are slow, until all are ended
        if not any(one.is_open for one in thrown):
            break
        for one in thrown:
            if name in ("slow", "unread") and one.is_open and not one.transport.is_closing():
                one.transport.write(b"x")
        await asyncio.sleep(seconds)
    ended = sum(not one.is_open for one in thrown)
    return Sent(len(thrown), ended, sum(one.sent for one in thrown))


# -- the command


@click.command("unauthenticated")
@click.option("--headers", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--bodies", type=click.IntRange(min=1), default=150, show_default=True)
@click.option("--unread", type=click.IntRange(min=1), default=UNREAD, show_default=True)
@click.option("--slow", type=click.IntRange(min=1), default=SLOW, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unauthenticated_command(*, as_json: bool, **counts: int) -> None:
    """Throw bytes at a service without a key: headers, bodies, unread answers, slow connections.

    Ends with 1 if an answer to others takes over 50 ms or fails, or memory grows by over 64 MiB.
    """
    with progress_bar("Unauthenticated") as progress:
        report = unauthenticated(**counts, progress=progress)
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_bearable)


def _show(report: UnauthenticatedReport) -> None:
    for one in report.attacks:
        click.echo(
            f"{one.name}: {one.connections:,} connections, {one.ended:,} ended, "
            f"{one.bytes / 2**20:,.0f} MiB sent; {one.asked:,} asked meanwhile, {one.failed} "
            f"failed, p99 {one.p99_ms:.1f} ms, longest {one.longest_ms:.1f} ms; "
            f"{one.grown_bytes / 2**20:+.0f} MiB"
        )


def main() -> None:
    """Throw what the arguments say, and print what was sent as JSON."""
    import uvloop

    name, port, count = sys.argv[1:]
    sent = uvloop.run(_throw(name, int(port), int(count)))
    sys.stdout.buffer.write(msgspec.json.encode(sent) + b"\n")


if __name__ == "__main__":
    main()
