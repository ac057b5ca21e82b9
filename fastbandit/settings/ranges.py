"""Ranges of the service's settings, and how a setting is declared."""

from __future__ import annotations

from typing import Any

from fastbandit.declaration import Range, ranged
from fastbandit.settings.parts import names_of

_TABLES = (".csv", ".csv.gz", ".parquet", ".npy", ".json", ".jsonl")


def one_of(*names: str) -> Range:
    """Return the range of a text that is one of some names."""
    return Range(choices=names)


NOT_EMPTY = Range(holds=bool, needed="at least one character")
PORT = Range(least=0, most=65_535)
FEATURES = Range(least=0, most=100_000)
SECONDS = Range(above=0, most=1e9)
PAUSE = Range(least=0, most=1e9)
FROM_0 = Range(least=0)
FROM_1 = Range(least=1)
OFFERED = Range(least=1, most=1_000)
SHARE = Range(least=0, most=1)
PART = Range(least=0, below=1)
ANYTHING = Range()
ANY_NUMBER = Range(least=float("-inf"))
DISTINCT = Range(
    holds=lambda value: all(value) and len({*value}) == len(value), needed="not empty, none twice"
)
ARMS_FILE = Range(
    holds=lambda value: value == "" or value.endswith(_TABLES),
    needed="a path that ends in .csv, .csv.gz, .parquet, .npy, .json or .jsonl",
)
SCHEMA_FILE = Range(
    holds=lambda value: value == "" or value.endswith((".json", ".toml")),
    needed="a path that ends in .json or .toml",
)
LOG_URL = Range(
    holds=lambda value: value == "" or value.startswith(("postgresql://", "postgres://")),
    needed="empty, or a URL such as postgresql://user@host/database",
)
BASELINE = Range(
    holds=lambda value: value in ("", "request", "random"),
    needed="empty, request or random",
    choices=("request", "random"),
)
ROUTE = Range(
    holds=lambda value: value.startswith("/") and value == value.rstrip("/") and value[1:2] != "v",
    needed="a path such as /personalizer",
)
PRESET = Range(
    holds=lambda value: value == "default" or value.endswith(".toml"),
    needed="default, or a path that ends in .toml",
    choices=("default",),
)


def part_name(role: str, *others: str) -> Range:
    """Return the range of a part's name: that of one of ours, or the import path of another."""
    names = (*others, *names_of(role))
    return Range(
        holds=lambda value: value in names or ":" in value,
        needed=f"one of {', '.join(names)}, or an import path such as my_module:MyPart",
        choices=names,
    )


def entry(default: Any, text: str, limits: Range = ANYTHING, *, is_asked: bool = False) -> Any:
    """Return a field; one that is asked for has no default that suits everyone."""
    return ranged(limits._replace(text=text, is_asked=is_asked), default=default)
