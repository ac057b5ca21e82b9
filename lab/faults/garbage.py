"""What is no HTTP, or hardly: sent to a service over sockets, which must go on answering."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from lab.faults.stage import HOST

_BODY = b'{"context": [0.1, 0.2, 0.3]}'
_GOOD = (
    b"POST /v1/select HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY
)
_EVERY = 20


def throw_garbage(port: int, count: int, *, seed: int = 0) -> Iterator[str]:
    """Open so many connections that send garbage; record each time the service did not answer.

    Now and then, and at last, a good request must be answered.
    """
    rng = np.random.default_rng(seed)
    kinds = list(_kinds())
    held: list[socket.socket] = []
    for number in range(count):
        make = kinds[number % len(kinds)]
        with suppress(OSError):
            held.append(_throw(port, make(rng)))
        if len(held) > _EVERY:
            held.pop(0).close()
        if number % _EVERY == 0 or number == count - 1:
            status = status_of(exchange(port, [_GOOD]))
            if status != 200:
                yield f"a good request got {status or 'no answer'} after {make.__name__}"
    for one in held:
        one.close()


def exchange(port: int, pieces: list[bytes], *, seconds: float = 5.0) -> bytes:
    """Send bytes over one connection; return all that comes back until it is quiet or closed."""
    with socket.create_connection((HOST, port), timeout=seconds) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            one.sendall(piece)
        return read_answers(one, 1)


def read_answers(one: socket.socket, count: int) -> bytes:
    """Read until so many whole answers came, or the connection was closed."""
    found = b""
    with suppress(TimeoutError, ConnectionError):
        while len(split_answers(found)) < count:
            more = one.recv(65536)
            if not more:
                break
            found += more
    return found


def split_answers(found: bytes) -> list[bytes]:
    """Split bytes into the whole answers at their start; all have a content length."""
    answers: list[bytes] = []
    while True:
        end = found.find(b"\r\n\r\n")
        if end < 0:
            return answers
        head = found[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(found) < end + 4 + length:
            return answers
        answers.append(found[: end + 4 + length])
        found = found[end + 4 + length :]


def status_of(answer: bytes) -> int:
    """Return the status of the first answer, 0 where there is none."""
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0


def _throw(port: int, data: bytes) -> socket.socket:
    """Send bytes, read a little, and leave the connection as it is."""
    one = socket.create_connection((HOST, port), timeout=0.05)
    with suppress(OSError):
        one.sendall(data)
        one.recv(1024)
    return one


# -- the kinds


def _kinds() -> Iterator[Callable[[np.random.Generator], bytes]]:
    yield from (_noise, _flipped, _cut_short, _huge_headers, _many_headers, _bad_lengths)
    yield from (_bad_chunks, _upgrades, _old_and_odd, _pipelined, _tls_hello)


def _noise(rng: np.random.Generator) -> bytes:
    return rng.bytes(int(rng.integers(1, 2_000)))


def _flipped(rng: np.random.Generator) -> bytes:
    data = bytearray(_GOOD)
    for _ in range(int(rng.integers(1, 6))):
        data[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(data)


def _cut_short(rng: np.random.Generator) -> bytes:
    return _GOOD[: int(rng.integers(1, len(_GOOD)))]


def _huge_headers(rng: np.random.Generator) -> bytes:
    return b"GET /live HTTP/1.1\r\nx: " + b"y" * int(rng.integers(10_000, 2_000_000)) + b"\r\n\r\n"


def _many_headers(rng: np.random.Generator) -> bytes:
    lines = b"".join(b"x-%d: y\r\n" % n for n in range(int(rng.integers(100, 20_000))))
    return b"GET /live HTTP/1.1\r\n" + lines + b"\r\n"


def _bad_lengths(rng: np.random.Generator) -> bytes:
    wrong = (
        b"-1",
        b"1e3",
        b"99999999999999999999",
        b"5, 5",
        b"",
        b"0x10",
        b"4\r\ncontent-length: 5",
    )
    length = wrong[int(rng.integers(len(wrong)))]
    return b"POST /v1/select HTTP/1.1\r\ncontent-length: " + length + b"\r\n\r\n" + _BODY


def _bad_chunks(rng: np.random.Generator) -> bytes:
    wrong = (b"zz\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"5;" + b"x" * 9_000, b"5\r\nab")
    chunk = wrong[int(rng.integers(len(wrong)))]
    return b"POST /v1/select HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + chunk


def _upgrades(rng: np.random.Generator) -> bytes:
    wanted = (b"websocket", b"h2c", b"\xff")[int(rng.integers(3))]
    return (
        b"POST /v1/select HTTP/1.1\r\nconnection: upgrade\r\nupgrade: " + wanted + b"\r\n"
        b"content-length: 4\r\n\r\nabcdGET /live HTTP/1.1\r\n\r\n"
    )


def _old_and_odd(rng: np.random.Generator) -> bytes:
    lines = (
        b"GET /live\r\n\r\n",
        b"GET /live HTTP/0.9\r\n\r\n",
        b"GET /live HTTP/1.0\r\n\r\n",
        b"GET /live HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
        b"GET http://evil.example/live HTTP/1.1\r\n\r\n",
        b"GET /%ff%fe%00 HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET " + b"/x" * 40_000 + b" HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"POST /v1/select HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 900\r\n\r\n",
    )
    return lines[int(rng.integers(len(lines)))]


def _pipelined(rng: np.random.Generator) -> bytes:
    return _GOOD * int(rng.integers(2, 300)) + _GOOD[:40]


def _tls_hello(rng: np.random.Generator) -> bytes:
    return b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.bytes(200)
