"""The console shows what a version learned to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastbandit import Bandit, Schema
from fastbandit.learning.learner import Learner
from fastbandit.serving.console.learned_names import learned_names
from fastbandit.serving.secret_columns import SecretColumns
from tests.serving.little_service import Caller, config_in, run
from tests.serving.test_open_service import offered, open_config

HOSTILE = ("<script>alert(1)</script>", "\"'><svg onload>", "\u202e${alert(2)}")
IMAGES = ("<img src=x onerror=alert(3)>", "<img src=y onerror=alert(4)>")
ROWS = [{"age": float(n), "city": f"c{n % 30}"} for n in range(90)]


def tagged(**marks: Any) -> dict[str, Any]:
    return {"columns": {"tags": {"kind": "mapping", **marks}, "age": {"kind": "number"}}}


@pytest.fixture
def nothing_secret(tmp_path: Path) -> SecretColumns:
    return SecretColumns(config_in(tmp_path))


def test_names_levels_and_slots_of_contexts_and_arms_are_shown(
    nothing_secret: SecretColumns,
) -> None:
    context = Schema.open(slots=64).grown(ROWS)
    arms = Schema.open(slots=8).table([{"price": 1.0}, {"price": 2.0}])
    frozen = Bandit(context=context, arms=arms, ids=["a", "b"], search="exhaustive").freeze()

    first, second = learned_names(frozen, nothing_secret)

    assert (first["of"], first["used"], first["slots"], first["known"]) == ("contexts", 31, 64, 2)
    assert first["names"][0] == {"name": "age", "levels": None, "count": 0}
    assert (len(first["names"][1]["levels"]), first["names"][1]["count"]) == (20, 30)
    assert (second["of"], [one["name"] for one in second["names"]]) == ("arms", ["price"])


def test_nothing_is_shown_where_all_was_declared(nothing_secret: SecretColumns) -> None:
    frozen = Bandit(context=2, ids=["a", "b"], search="exhaustive").freeze()

    assert learned_names(frozen, nothing_secret) == []


@pytest.mark.parametrize("marks", [{}, {"secret": True}])
def test_nothing_is_shown_of_a_secret_mapping(tmp_path: Path, marks: dict[str, Any]) -> None:
    path = tmp_path / "context.json"
    path.write_text(json.dumps(tagged(secret=True)))
    config = config_in(tmp_path, context__features=0, context__schema=str(path))
    rows = [{"tags": {"word": "hush"}, "age": float(n)} for n in range(20)]
    context = Schema.from_dict(tagged(**marks)).grown(rows)  # the version may not know of it
    frozen = Bandit(context=context, ids=["a", "b"], search="exhaustive").freeze()

    assert "hush" in str(context.as_dict())
    assert learned_names(frozen, SecretColumns(config)) == []


def test_the_console_lists_names_that_clients_sent_as_they_are(tmp_path: Path) -> None:
    preset = tmp_path / "few.toml"
    preset.write_text("format = 1\n[training.reward]\niterations = 20\nbatch = 16\n")
    config = open_config(tmp_path, learn__fresh=8, select__preset=str(preset))
    learner = Learner(config)
    learner.step()

    async def ask_and_reward(ask: Caller) -> None:
        for n in range(24):
            context = {HOSTILE[0]: n, HOSTILE[1]: {HOSTILE[2]: IMAGES[n % 2]}}
            made = await ask("POST", "/v1/select", {"context": context, "arms": offered()})
            told = {"decision": made.body["decision"], "value": float(n % 2)}
            assert (await ask("POST", "/v1/reward", told)).status == 200

    async def look(ask: Caller) -> Any:
        reply = await ask("GET", "/v1/console")
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["x-content-type-options"] == "nosniff"
        return reply.body["serving"]["names"]

    run(config, ask_and_reward)
    assert learner.step().did == "published"
    contexts, arms = run(config, look)
    levels = {one["name"]: one["levels"] for one in contexts["names"]}
    assert levels[HOSTILE[0]] is None  # a number
    assert {*levels[f"{HOSTILE[1]}.{HOSTILE[2]}"]} == {*IMAGES}
    assert {"item.topic", "item.price"} <= {one["name"] for one in arms["names"]}
