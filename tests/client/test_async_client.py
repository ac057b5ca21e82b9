"""The client for asyncio: what waits for the service or the disk leaves the loop free."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fake_service import NOBODY, FakeService, hang

from fastbandit.client import SPOOLED, AsyncClient, Retries


def test_the_loop_runs_on_while_a_call_waits(service: FakeService) -> None:
    service.failures = [hang]

    async def story() -> int:
        client = AsyncClient(
            service.url, deadline_seconds=0.3, fallback="a", retries=Retries(tries=1)
        )
        async with client:
            call, steps = asyncio.create_task(client.select([0.1])), 0
            while not call.done():
                await asyncio.sleep(0.01)
                steps += 1
            assert (await call).is_fallback
        return steps

    assert asyncio.run(story()) > 3


def test_calls_run_beside_one_another(service: FakeService) -> None:
    async def story() -> set[str]:
        async with AsyncClient(service.url, deadline_seconds=20.0) as client:
            found = await asyncio.gather(*(client.select([float(n)]) for n in range(5)))
        return {selected.decision for selected in found}

    assert len(asyncio.run(story())) == 5


def test_a_reward_is_spooled_while_no_service_answers(tmp_path: Path) -> None:
    async def story() -> tuple[str, int]:
        retries = Retries(tries=1)
        async with AsyncClient(NOBODY, spool=tmp_path / "spool", retries=retries) as client:
            assert client.spool is not None
            return await client.reward("a", 1.0), client.spool.count()

    assert asyncio.run(story()) == (SPOOLED, 1)
