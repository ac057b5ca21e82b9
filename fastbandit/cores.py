"""How work is spread over the processor's cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

SMALL = 2**24
"""So many multiplications in the largest product of a step are done soonest by one thread.

Two threads gain nothing below on an idle machine. On a busy one they wait for each other in every
step, and a step of a third of a millisecond takes a hundred.
"""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parts(count: int, work: Callable[[int, int], object], *, threads: int | None = None) -> None:
    """Call work with the first and last of even parts of range(count), on all cores.

    Work should release Python's lock. Parts are smaller than a core's share, so that cores end
    together.
    """
    threads = max(1, min(threads or cores(), count))
    parts = 4 * threads if threads > 1 else 1
    ends = [count * part // parts for part in range(parts + 1)]
    if threads == 1:
        work(0, count)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))


def one_thread() -> None:
    """Let this process compute with one thread: work is compared, not cores.

    Small matrices gain nothing from more, and threads that wait for one another on a busy
    machine lose much.
    """
    import torch

    torch.set_num_threads(1)
    try:
        import faiss
    except ImportError:  # only some baselines look arms up with it
        return
    faiss.omp_set_num_threads(1)


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """Let torch compute with one thread where a step multiplies few numbers; then as before."""
    import torch

    threads = torch.get_num_threads()
    if multiplications > SMALL or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
