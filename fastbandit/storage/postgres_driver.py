"""The driver of PostgreSQL, or an error that says what to install."""

from __future__ import annotations

import logging

from fastbandit.packages import missing

try:
    import psycopg
    import psycopg_pool
    from psycopg import sql
except ModuleNotFoundError as error:
    raise missing(error.name or "psycopg", what="A log in PostgreSQL") from error

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # commands say it themselves

__all__ = ["psycopg", "psycopg_pool", "sql"]
