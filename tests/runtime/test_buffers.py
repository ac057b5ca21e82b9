"""Each thread has arrays of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from fastbandit.runtime.buffers import Buffers


def test_threads_share_no_buffers() -> None:
    buffers = Buffers(3)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: buffers.contexts).result()

    assert other.shape == buffers.contexts.shape == (1, 3)
    assert other is not buffers.contexts
    assert buffers.request[0] is buffers.contexts
