"""The registry of shared versions: one learner at a time holds the lease, and errors are ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from little_versions import publish

from fastbandit.errors import FastbanditError, SnapshotError
from fastbandit.storage.registered_store import RegisteredStore
from fastbandit.storage.snapshot_registry import SnapshotRegistry

Machine = Callable[[str], RegisteredStore]


def test_one_learner_holds_the_lease_until_its_session_ends(machine: Machine) -> None:
    one, two = machine("one"), machine("two")

    assert one.acquire_lease()
    assert not two.acquire_lease()

    one.registry.close()
    assert in_time(two.acquire_lease)


def test_who_lost_the_lease_cannot_publish(machine: Machine, url: str) -> None:
    one = machine("one")
    assert one.acquire_lease()
    publish(one)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks "
            "WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
        )

    with pytest.raises(FastbanditError):
        publish(one)
    with pytest.raises(SnapshotError, match="leader's lease"):
        one.registry.check_lease()
    assert in_time(machine("two").acquire_lease)


def in_time(holds: Callable[[], bool]) -> bool:
    """Return whether something holds within a few seconds."""
    deadline = time.monotonic() + 10
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_trouble_of_the_store_is_reported_without_its_password(
    url: str, schema: str, tmp_path: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = "ftp://me:hunter2@host/versions"

    def fail(*given: Any) -> None:
        raise error(f"{store}/000000 cannot be reached")

    monkeypatch.setattr("fastbandit.storage.snapshot_registry.upload", fail)
    registry = SnapshotRegistry(url, store, schema=schema)
    with pytest.raises(SnapshotError, match="me:…@host") as caught:
        publish(RegisteredStore(tmp_path / "one", registry))
    registry.close()

    assert "hunter2" not in str(caught.value)


def test_a_leader_that_stands_still_loses_the_lease_and_cannot_publish(
    machine: Machine, url: str, schema: str
) -> None:
    one, two = machine("one"), machine("two")
    publish(one)
    assert one.acquire_lease()
    two.pull()
    assert not two.acquire_lease()
    one.registry._stop_beating()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.lease SET until = now() - interval '1 s'")

    assert in_time(two.acquire_lease)

    publish(two)
    with pytest.raises(FastbanditError, match=r"terminat|closed|went away|reached"):
        publish(one)
    with pytest.raises(SnapshotError, match="lease"):
        one.registry.check_lease()
    assert not one.acquire_lease()


def test_a_leader_renews_its_lease(
    machine: Machine, url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.snapshot_registry._BEAT_SECONDS", 0.01)
    one, two = machine("one"), machine("two")
    assert one.acquire_lease()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.lease SET until = now() - interval '1 s'")
        renewed = f"SELECT until > now() FROM {schema}.lease"
        assert in_time(lambda: connection.execute(renewed).fetchall() == [(True,)])
    assert not two.acquire_lease()
    one.registry.check_lease()
