"""Load for a service on this machine: many connections, as fast as answers come or on a schedule.

A load runs in a process of its own, ends by itself, and goes to loopback only.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from fastbandit.errors import ServiceUnavailable, SettingError

_STEP_SECONDS = 0.002
_LAST_SECONDS = 0.2  # for answers that are under way


class Load(msgspec.Struct, frozen=True):
    """What to send, where, and for how long; a `rate` of 0 sends when an answer has come."""

    port: int
    seconds: float
    connections: int = 32
    rate: float = 0.0
    features: int = 8
    contexts: int = 1
    host: str = "127.0.0.1"
    path: str = "/v1/select"
    seed: int = 0
    key: str = ""
    bodies: str = ""
    """A file with a body in each line, in place of random contexts."""


class Answers(msgspec.Struct, frozen=True):
    """How many requests were sent and answered, by status, and how long answers took.

    On a schedule, times count from when a request was due. `unsent` are those for which no
    connection was free then, `blunt` refusals that do not say when to come again.
    """

    seconds: float
    sent: int
    unsent: int
    statuses: dict[str, int]
    good_per_second: float
    p50_ms: float
    p99_ms: float
    refused_p99_ms: float
    broken: int
    blunt: int = 0
    cpu_seconds: float = 0.0
    """What the process of the load itself took of the CPU."""

    @property
    def sent_per_second(self) -> float:
        """The rate that was reached."""
        return self.sent / self.seconds


class _Connection(asyncio.Protocol):
    """One connection with at most one request under way."""

    def __init__(self, on_answer: Callable[[_Connection, int], None]) -> None:
        self.on_answer, self.buffer, self.began = on_answer, b"", 0.0
        self.is_busy = self.is_open = self.is_blunt = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.is_open = cast(asyncio.Transport, transport), True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self.is_busy:
            self.on_answer(self, 0)

    def send(self, request: bytes, *, due: float) -> None:
        self.is_busy, self.began = True, due
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self.buffer) < end + 4 + length:
            return
        status, self.buffer = int(head[9:12]), b""
        self.is_blunt = status == 503 and b"\r\nretry-after:" not in head
        self.on_answer(self, status)


class _Driver:
    """Sends requests over connections and keeps the times of the answers."""

    def __init__(self, load: Load) -> None:
        self.load, self.requests = load, requests_of(load)
        self.idle: deque[_Connection] = deque()
        self.statuses: Counter[str] = Counter()
        self.good: list[float] = []
        self.refused: list[float] = []
        self.sent = self.unsent = self.broken = self.blunt = 0
        self.is_over, self.cpu = False, 0.0

    async def run(self) -> Answers:
        load, loop = self.load, asyncio.get_running_loop()
        for _ in range(load.connections):
            _, one = await loop.create_connection(
                lambda: _Connection(self.answered), load.host, load.port
            )
            self.idle.append(one)
        connections = list(self.idle)
        began, cpu = time.perf_counter(), time.process_time()
        if load.rate:
            await self._on_schedule(began)
        else:
            while self.idle:
                self._send(self.idle.popleft(), due=began)
            await asyncio.sleep(load.seconds)
        self.is_over = True
        seconds, self.cpu = time.perf_counter() - began, time.process_time() - cpu
        await asyncio.sleep(_LAST_SECONDS)
        for one in connections:
            one.transport.close()
        await asyncio.sleep(0)
        return self._answers(seconds)

    async def _on_schedule(self, began: float) -> None:
        """Send so many a second whether answers come or not, as visitors do."""
        due, rate = 0, self.load.rate
        while (passed := time.perf_counter() - began) < self.load.seconds:
            wanted = int(passed * rate)
            while due < wanted:
                due += 1
                if self.idle:
                    self._send(self.idle.popleft(), due=began + due / rate)
                else:
                    self.unsent += 1
            await asyncio.sleep(_STEP_SECONDS)

    def _send(self, one: _Connection, *, due: float) -> None:
        one.send(self.requests[self.sent % len(self.requests)], due=due)
        self.sent += 1

    def answered(self, one: _Connection, status: int) -> None:
        one.is_busy, now = False, time.perf_counter()
        if not self.is_over:
            took = now - one.began
            self.statuses[str(status)] += 1
            self.blunt += one.is_blunt
            (self.good if status in (200, 201) else self.refused).append(took)
        if status == 0 or not one.is_open:
            self.broken += not self.is_over
        elif self.load.rate:
            self.idle.append(one)
        elif not self.is_over:
            self._send(one, due=now)

    def _answers(self, seconds: float) -> Answers:
        return Answers(
            seconds=seconds,
            sent=self.sent,
            unsent=self.unsent,
            statuses=dict(self.statuses),
            good_per_second=len(self.good) / seconds,
            p50_ms=_milliseconds(self.good, 50),
            p99_ms=_milliseconds(self.good, 99),
            refused_p99_ms=_milliseconds(self.refused, 99),
            broken=self.broken,
            blunt=self.blunt,
            cpu_seconds=self.cpu,
        )


def requests_of(load: Load, *, count: int = 512) -> list[bytes]:
    """Return requests with random contexts, or with bodies from a file, as bytes to send."""
    requests = []
    for body in (
        Path(load.bodies).read_bytes().splitlines() if load.bodies else _random(load, count)
    ):
        key = f"authorization: Bearer {load.key}\r\n" if load.key else ""
        head = (
            f"POST {load.path} HTTP/1.1\r\nhost: {load.host}\r\n{key}"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        requests.append(head.encode() + body)
    return requests


def _random(load: Load, count: int) -> Iterator[bytes]:
    rng = np.random.default_rng(load.seed)
    for numbers in rng.normal(size=(count, load.contexts, load.features)).round(6).tolist():
        request = {"context": numbers[0]} if load.contexts == 1 else {"contexts": numbers}
        yield msgspec.json.encode(request)


def load_from_process(load: Load) -> Answers:
    """Send a load from a process of its own, and return what came back."""
    command = [sys.executable, "-m", "lab.faults.load", msgspec.json.encode(load).decode()]
    done = subprocess.run(command, capture_output=True, timeout=load.seconds + 60, check=False)
    if done.returncode:
        raise ServiceUnavailable(
            f"A load needs a service that answers on port {load.port}: it ended with "
            f"{done.stderr.decode(errors='replace').strip()[-300:]}. See the service's journal."
        )
    return msgspec.json.decode(done.stdout, type=Answers)


def run_load(load: Load) -> Answers:
    """Send a load from this process, and return what came back."""
    import uvloop

    return uvloop.run(send_load(load))


async def send_load(load: Load) -> Answers:
    """Send a load from this event loop, and return what came back."""
    if not ip_address(load.host).is_loopback:
        raise SettingError(
            f"A load goes to this machine only: got host {load.host!r}. Use 127.0.0.1."
        )
    return await _Driver(load).run()


def _milliseconds(times: list[float], percent: float) -> float:
    return float(np.percentile(times, percent) * 1e3) if times else 0.0


def main() -> None:
    """Run the load that stands as JSON in the first argument, and print the answers as JSON."""
    load = msgspec.json.decode(sys.argv[1], type=Load)
    sys.stdout.buffer.write(msgspec.json.encode(run_load(load)) + b"\n")


if __name__ == "__main__":
    main()
