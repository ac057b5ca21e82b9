"""Packages of others that an adapter needs, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fastbandit.errors import MissingExtraError


def needed(module: str, *, what: str, extra: str) -> Any:
    """Import a module, or say what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{what} needs {module.partition('.')[0]}, which is not installed. Run: "
            f"pip install 'fastbandit[{extra}]'"
        ) from error
