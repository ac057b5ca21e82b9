"""Connections that give up in time, and errors that name no password."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg
import pytest

from fastbandit.errors import LogError, LogUnavailableError
from fastbandit.storage.postgres_connection import (
    Server,
    TooLate,
    is_slow,
    is_unavailable,
    rows,
    taking_its_time,
)


def server_at(url: str, *, timeout_seconds: float = 5.0) -> Server:
    return Server(url, schema="public", timeout_seconds=timeout_seconds)


def test_a_url_that_cannot_be_read_is_an_error_without_its_text() -> None:
    with pytest.raises(LogError, match="needs a URL") as caught:
        server_at("postgresql://me:hunter2@[host/")

    assert "hunter2" not in str(caught.value)


def test_the_name_of_a_server_holds_no_password() -> None:
    server = server_at("postgresql://me:hunter2@host:5433/log")

    assert server.name == "host:5433/log, public"


def test_a_server_that_is_not_there_is_unavailable(tmp_path: object) -> None:
    server = server_at(f"postgresql://me@/postgres?host={tmp_path}")

    with pytest.raises(LogUnavailableError, match="nothing was written"), server.reporting("read"):
        server.connect()


def test_an_answer_that_is_late_ends_the_connection(url: str) -> None:
    connection = server_at(url).connect()
    connection.limit = 0.2
    began = time.monotonic()

    with pytest.raises(TooLate) as caught:
        rows(connection, "SELECT pg_sleep(3)")

    assert time.monotonic() - began < 2
    assert (connection.is_late, connection.closed) == (True, True)
    assert (is_slow(caught.value), is_unavailable(caught.value)) == (True, True)


def test_what_takes_its_time_is_waited_for(url: str) -> None:
    connection = server_at(url, timeout_seconds=0.5).connect()

    with taking_its_time(connection):
        assert rows(connection, "SELECT pg_sleep(0.8) IS NOT NULL") == [(True,)]
    assert connection.limit == 0.5
    connection.close()


@pytest.mark.parametrize(
    ("error", "is_gone"),
    [
        (psycopg.InterfaceError(), True),
        (psycopg.OperationalError("no answer"), True),
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.UniqueViolation(), False),
        (ValueError(), False),
    ],
)
def test_some_errors_say_that_a_server_is_unavailable(error: Exception, is_gone: bool) -> None:
    assert is_unavailable(error) == is_gone


def test_an_error_names_no_content_of_a_row(url: str) -> None:
    server = server_at(url)
    with closing(server.connect()) as connection:
        connection.execute("CREATE TEMPORARY TABLE kept (context text, arms text NOT NULL)")
        with pytest.raises(LogError, match="null value") as caught, server.reporting("used"):
            connection.execute("INSERT INTO kept VALUES ('hunter2', NULL)")

    assert "hunter2" not in str(caught.value)
