"""Work is spread over cores in parts that make up the whole."""

from __future__ import annotations

import os
import threading

import pytest
import torch

from fastbandit.cores import SMALL, cores, in_parts, one_thread, threads_for


def test_only_cores_that_this_process_may_use_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    assert cores() == 3

    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_parts_make_up_the_whole(count: int, threads: int) -> None:
    done: list[int] = []
    lock = threading.Lock()

    def work(first: int, last: int) -> None:
        with lock:
            done.extend(range(first, last))

    in_parts(count, work, threads=threads)

    assert sorted(done) == list(range(count))


def test_one_thread_does_all_at_once() -> None:
    parts: list[tuple[int, int]] = []

    in_parts(100, lambda first, last: parts.append((first, last)), threads=1)

    assert parts == [(0, 100)]


def test_an_error_of_a_part_is_raised() -> None:
    def fail(first: int, last: int) -> None:
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        in_parts(10, fail, threads=2)


def test_torch_can_be_held_to_one_thread() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        one_thread()

        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("multiplications", "threads"), [(SMALL, 1), (SMALL + 1, 2)])
def test_few_multiplications_are_left_to_one_thread(multiplications: int, threads: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threads_for(multiplications):
            assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_threads_are_as_before_after_an_error() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(ValueError, match="stop"), threads_for(0):
            raise ValueError("stop")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
