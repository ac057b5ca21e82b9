"""The log in PostgreSQL through the laws of fastbandit/testing/logs.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fastbandit.storage.events import EventLog
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.testing.logs import LAWS, Clock, LogBackend


def postgres_logs(url: str, next_schema: Callable[[], str]) -> LogBackend:
    """Logs in schemas of a database, each of which remembers its own."""
    places: dict[int, tuple[str, Clock]] = {}

    def make(clock: Clock) -> EventLog:
        return remember(next_schema(), clock)

    def remember(schema: str, clock: Clock) -> PostgresLog:
        log = PostgresLog(url, schema=schema, clock=clock)
        places[id(log)] = schema, clock
        return log

    def reopen(log: EventLog) -> EventLog:
        log.close()
        return remember(*places[id(log)])

    def beside(log: EventLog) -> EventLog:
        return PostgresLog(url, schema=places[id(log)][0], is_reader=True)

    return LogBackend(make, reopen, beside)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.__name__))
def test_a_log_keeps_the_law(
    law: Callable[[LogBackend], None], url: str, next_schema: Callable[[], str]
) -> None:
    law(postgres_logs(url, next_schema))
