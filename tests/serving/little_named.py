"""A service whose contexts and arms have named values of any kind, asked in-process."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import Caller, Reply, config_in, run

CONTEXT: dict[str, Any] = {"age": 31, "country": "DE", "likes": ["jazz"], "member": True}
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "mean": 40.0, "std": 10.0},
        "country": {"kind": "category", "levels": ["DE", "FR"]},
        "likes": {"kind": "set", "levels": ["jazz", "rock"], "default": []},
        "member": {"kind": "flag"},
    }
}
ARMS = """id,title,price,genre,since
a,A quiet evening,10,jazz,2024-01-03
b,Loud and long,,rock,2024-02-01
c,Both of them,30,jazz,
d,None of these,5,,2023-12-24
"""


def by_name(folder: Path, schema: Any = None, **settings: Any) -> Config:
    """Return the config of a service with a schema, and arms that have texts, gaps and dates."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "context.json"
    path.write_text(json.dumps(SCHEMA if schema is None else schema))
    arms = folder / "arms.csv"
    arms.write_text(ARMS)
    base = {"context__features": 0, "context__schema": str(path), "arms__file": str(arms)}
    preset = folder / "short.toml"
    preset.write_text("format = 1\n[training.reward]\niterations = 20\nbatch = 16\n")
    short = {"learn__fresh": 8, "learn__min_quality": 0.0, "select__preset": str(preset)}
    short |= {"select__search": "exhaustive"}
    return config_in(folder, **{**base, **short, **settings})


def ask_for(config: Config, **body: Any) -> Reply:
    async def story(ask: Caller) -> Reply:
        return await ask("POST", "/v1/select", body)

    return run(config, story)


def events_of(config: Config) -> list[Any]:
    with closing(SqliteLog(Path(config.server.data_dir) / LOG_FILE, is_reader=True)) as log:
        return log.read()
