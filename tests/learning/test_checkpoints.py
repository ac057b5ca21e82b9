"""Checkpoints of an update bring each loop to where it was; those of others are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Generator, nn

from fastbandit.learning import checkpoints as module
from fastbandit.learning.checkpoints import Checkpoints, update_in
from fastbandit.optim.process_group import Loop

UPDATE = {"parent": "abc", "cut": 7}


@pytest.fixture(autouse=True)
def after_each_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    monkeypatch.setattr(module, "_SHARE", 0.0)


def new_loop() -> Loop:
    network = nn.Linear(3, 1)
    nn.init.ones_(network.weight)
    nn.init.zeros_(network.bias)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.1, fused=True)
    return Loop(network, optimiser, Generator().manual_seed(5))


def train(loop: Loop, iterations: Iterator[int], *, most: int = 99) -> list[int]:
    """Take steps on numbers that are drawn as it goes on; return which, and stop after so many."""
    done = []
    for iteration in iterations:
        drawn = torch.rand(8, 3, generator=loop.rng)
        loss = loop.network(drawn).square().mean()
        loop.optimiser.zero_grad()
        loss.backward()
        loop.optimiser.step()
        loop.losses.append(loss.detach())
        done.append(iteration)
        if len(done) == most:
            break
    return done


def state_of(loop: Loop) -> list[bytes]:
    numbers = [*loop.network.state_dict().values(), *loop.losses, loop.rng.get_state()]
    return [one.numpy().tobytes() for one in numbers]


def test_two_that_follow_one_another_do_what_one_does(tmp_path: Path) -> None:
    whole = new_loop()
    train(whole, iter(range(10)))
    killed = new_loop()
    third = Checkpoints(tmp_path / "b", UPDATE)
    third.curve.append((2, 0.5))
    train(killed, third.iterations(killed, 10), most=5)
    resumed = new_loop()
    second = Checkpoints(tmp_path / "b", UPDATE)
    left = train(resumed, second.iterations(resumed, 10))

    assert left == [4, 5, 6, 7, 8, 9]  # the fifth was done, and not written down
    assert state_of(resumed) == state_of(whole)
    assert second.curve == [(2, 0.5)]


def test_a_loop_that_was_done_is_not_done_again(tmp_path: Path) -> None:
    loops = [new_loop(), new_loop()]
    first = Checkpoints(tmp_path / "a", UPDATE)
    for loop, most in zip(loops, (99, 3), strict=True):
        train(loop, first.iterations(loop, 6), most=most)
    again, second = [new_loop(), new_loop()], Checkpoints(tmp_path / "a", UPDATE)

    assert [train(loop, second.iterations(loop, 6)) for loop in again] == [[], [2, 3, 4, 5]]
    assert state_of(again[0]) == state_of(loops[0])


@pytest.mark.parametrize("update", [{"parent": "other", "cut": 7}, {"parent": "abc", "cut": 8}])
def test_those_of_another_update_are_removed(tmp_path: Path, update: dict[str, object]) -> None:
    loop = new_loop()
    train(loop, Checkpoints(tmp_path / "a", UPDATE).iterations(loop, 6), most=3)
    assert update_in(tmp_path / "a") == UPDATE

    other = Checkpoints(tmp_path / "a", update)

    assert not (tmp_path / "a").exists()
    new = new_loop()
    assert len(train(new, other.iterations(new, 6))) == 6


def test_one_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    loop = new_loop()
    train(loop, Checkpoints(tmp_path / "a", UPDATE).iterations(loop, 6), most=3)
    (arrays,) = (tmp_path / "a" / "0").glob("arrays-*")
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)

    again = new_loop()
    assert len(train(again, Checkpoints(tmp_path / "a", UPDATE).iterations(again, 6))) == 6


def test_one_of_another_network_is_passed_over(tmp_path: Path) -> None:
    loop = new_loop()
    train(loop, Checkpoints(tmp_path / "a", UPDATE).iterations(loop, 6), most=3)
    network = nn.Linear(3, 2)
    other = Loop(network, torch.optim.Adam(network.parameters(), fused=True), Generator())

    assert next(iter(Checkpoints(tmp_path / "a", UPDATE).iterations(other, 6))) == 0


def test_quick_loops_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 60.0)
    loop = new_loop()

    train(loop, Checkpoints(tmp_path / "a", UPDATE).iterations(loop, 6))

    assert not (tmp_path / "a").exists()


def test_without_room_training_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("in the way")
    loop = new_loop()

    assert len(train(loop, Checkpoints(tmp_path / "a", UPDATE).iterations(loop, 6))) == 6
