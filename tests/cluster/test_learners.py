"""Two learners on one log: one works, the other waits until the first is gone."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import psycopg
from machines import Machines, Started, until

from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.postgres_log import PostgresLog
from tests.serving.little_service import CONTEXT


def write_rewards(machines: Machines, first: int, count: int) -> None:
    """Write decisions with their rewards."""
    log = PostgresLog(machines.url)
    for number in range(first, first + count):
        arm = f"arm-{number % 12}"
        made = DecisionMade(f"d{number}", CONTEXT, [arm], [0.0], number, 0, 0, 10**9)
        log.append([made, RewardCame(made.id, float(number % 2))])
    log.close()


def versions(machines: Machines) -> list[tuple[int, int | None]]:
    """Give the number and the parent of each version that was published."""
    with psycopg.connect(machines.url) as connection:
        query = "SELECT version, parent FROM fastbandit.snapshots ORDER BY version"
        return connection.execute(query).fetchall()


def served(one: Started, version: int) -> bool:
    return one.state().get("version") == version


def waits(one: Started) -> bool:
    return "Another learner holds the lease" in one.state().get("error", "")


def test_of_two_that_begin_with_nothing_one_makes_the_first_version(machines: Machines) -> None:
    with machines.started("a", "learn") as one, machines.started("b", "learn") as two:
        until(
            lambda: {served(one, 0), waits(two)} == {True} or {served(two, 0), waits(one)} == {True}
        )
        assert versions(machines) == [(0, None)]


def test_when_the_first_is_killed_the_other_goes_on(machines: Machines) -> None:
    with ExitStack() as running:
        one = running.enter_context(machines.started("a", "learn"))
        one.wait_for(lambda: served(one, 0))
        two = running.enter_context(machines.started("b", "learn"))
        two.wait_for(lambda: waits(two))
        write_rewards(machines, 0, 4)
        one.wait_for(lambda: served(one, 1))

        one.process.send_signal(signal.SIGKILL)
        write_rewards(machines, 4, 4)
        two.wait_for(lambda: served(two, 2))
        one = running.enter_context(machines.started("a", "learn"))
        one.wait_for(lambda: waits(one))
        write_rewards(machines, 8, 4)
        two.wait_for(lambda: served(two, 3))

    assert versions(machines) == [(0, None), (1, 0), (2, 1), (3, 2)]


def test_arms_that_were_put_make_the_first_version(machines: Machines) -> None:
    async def put(one: object) -> None:
        assert callable(one)
        arms = [{"id": f"arm {n}", "features": [float(n), 1.0, n % 2]} for n in range(4)]
        reply = await one("PUT", "/v1/arms", {"arms": arms})
        assert (reply.status, reply.body["arms"]) == (200, 4)

    machines.run(put, "decider", arms__file="", arms__columns=[])
    with machines.started("a", "learn", "--once", arms__file="", arms__columns=[]) as one:
        assert one.process.wait() == 0, one.said

    assert versions(machines) == [(0, None)]


def test_a_rollback_on_any_machine_is_for_all(machines: Machines) -> None:
    write_rewards(machines, 0, 4)
    with machines.started("a", "learn", "--once") as one:
        assert one.process.wait() == 0, one.said
    known = versions(machines)
    with machines.started("b", "snapshots") as listed:
        listed.process.wait()
    with machines.started("c", "rollback", "0") as back:
        back.process.wait()
    with machines.started("d", "snapshots") as after:
        after.process.wait()

    assert [version for version, _ in known] == [0, 1]
    assert "→ version 1" in listed.said
    assert "version 0" in listed.said
    assert back.said == "Version 0 is served now.\n"
    assert "→ version 0" in after.said
    assert "✗ version 1: Rolled back to version 0." in after.said
