"""Packages of the extras: imported when they are needed, or named with what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fastbandit.errors import MissingExtraError

EXTRAS = {
    "apsw": "serve",
    "faiss": "evaluation",
    "fsspec": "postgres",
    "httpcore": "client",
    "httpx": "client",
    "jaxtyping": "train",
    "matplotlib": "train",
    "msgspec": "serve",
    "onnx": "onnx",
    "prometheus_client": "serve",
    "psycopg": "postgres",
    "psycopg_pool": "postgres",
    "pyarrow": "evaluation",
    "ray": "cluster",
    "scipy": "train",
    "sklearn": "adapters",
    "torch": "train",
    "uvicorn": "serve",
    "uvloop": "serve",
}
"""The extra to install for a module, where the caller does not name another."""


def needed(module: str, *, what: str, extra: str | None = None) -> Any:
    """Import a module; raise what to install where it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if _root(error.name) != _root(module):
            raise
        raise missing(_root(module), what=what, extra=extra) from error


def missing(module: str, *, what: str, extra: str | None = None) -> MissingExtraError:
    """Return the error that names a module that is not installed, and what to install."""
    return MissingExtraError(
        f"{what} needs {module}, which is not installed. Run: "
        f"pip install 'fastbandit[{extra or EXTRAS[module]}]'"
    )


def missing_extra(error: ModuleNotFoundError, *, what: str) -> MissingExtraError | None:
    """Return the error for a failed import, or None where no extra has that module."""
    module = _root(error.name)
    return missing(module, what=what) if module in EXTRAS else None


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]
