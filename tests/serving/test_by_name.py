"""A service whose contexts and arms have named values of any kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.cli.evaluate import command as evaluate_command
from fastbandit.cli.learn import command as learn_command
from fastbandit.errors import SettingError
from fastbandit.evaluation import read_rounds
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import CategorySet
from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import ArmsChanged, DecisionMade
from fastbandit.storage.exports import export
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_named import CONTEXT, SCHEMA, ask_for, by_name, events_of
from tests.serving.little_service import Caller, Reply, config_in, run


def test_the_order_of_names_does_not_matter(named: Config, tmp_path: Path) -> None:
    backwards = dict(reversed(CONTEXT.items()))

    first = ask_for(named, context=CONTEXT, id="one").body
    (tmp_path / LOG_FILE).unlink()

    assert ask_for(named, context=backwards, id="one").body["scores"] == first["scores"]


def test_a_name_with_a_default_may_be_left_out(named: Config) -> None:
    some = {name: value for name, value in CONTEXT.items() if name != "likes"}

    assert ask_for(named, context=some).status == 200


def test_null_stands_for_no_value(named: Config) -> None:
    assert ask_for(named, context=dict.fromkeys(CONTEXT)).status == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"age": "old"}, "context.age"),
        ({"member": "maybe"}, "context.member"),
        ({"colour": "red"}, "context.colour"),
        ({"age": 10**400}, "context.age"),
    ],
)
def test_a_value_of_another_kind_is_named(
    named: Config, change: dict[str, Any], field: str
) -> None:
    async def story(ask: Caller) -> Reply:
        raw = json.dumps({"context": {**CONTEXT, **change}}).encode()
        return await ask("POST", "/v1/select", raw=raw)

    reply = run(named, story)

    assert (reply.status, reply.body["field"]) == (422, field)
    assert reply.body["fix"]


def test_a_name_that_is_missing_is_named_with_its_place(named: Config) -> None:
    reply = ask_for(named, contexts=[CONTEXT, {"country": "FR", "member": False}])

    assert (reply.status, reply.body["field"]) == (422, "contexts[1].age")


def test_a_list_is_rejected(named: Config) -> None:
    assert ask_for(named, context=[1.0, 2.0]).body["field"] == "context"


def test_the_log_holds_the_values_as_they_came(named: Config) -> None:
    ask_for(named, context=CONTEXT)

    (made,) = [event for event in events_of(named) if isinstance(event, DecisionMade)]
    assert made.context == CONTEXT


def test_a_retry_gets_the_same_answer_and_another_context_none(named: Config) -> None:
    async def story(ask: Caller) -> list[Reply]:
        bodies = [CONTEXT, dict(reversed(CONTEXT.items())), {**CONTEXT, "age": 32}]
        return [await ask("POST", "/v1/select", {"context": c, "id": "one"}) for c in bodies]

    first, again, other = run(named, story)

    assert first.body == again.body
    assert other.status == 409


def test_the_learner_learns_from_named_values_and_publishes(tmp_path: Path) -> None:
    config = by_name(tmp_path, learn__held_out=0.2)
    learner = Learner(config)
    learner.start()
    learner.step()

    async def story(ask: Caller) -> None:
        rng = np.random.default_rng(0)
        for _ in range(20):
            context = {**CONTEXT, "age": float(rng.integers(20, 60))}
            made = (await ask("POST", "/v1/select", {"context": context})).body
            told = {"decision": made["decision"], "value": int(made["arms"][0] == "a")}
            await ask("POST", "/v1/reward", told)

    run(config, story)
    step = learner.step()

    assert (step.did, step.version) == ("published", 1)
    first = ask_for(config, context=CONTEXT, id="one").body
    assert first["version"] == 1

    # the columns of a schema may stand in another order: the version has its own
    first = ask_for(config, context=CONTEXT, id="two", explore=False).body
    turned = by_name(tmp_path, {"columns": dict(reversed(SCHEMA["columns"].items()))})
    other = ask_for(turned, context=CONTEXT, id="three", explore=False).body
    assert (other["arms"], other["scores"]) == (first["arms"], first["scores"])


@pytest.mark.parametrize(
    ("columns", "difference"),
    [
        ({**SCHEMA["columns"], "height": {"kind": "number"}}, "'height' is new"),
        ({**SCHEMA["columns"], "age": {"kind": "category"}}, "'age' has kind"),
        ({**SCHEMA["columns"], "age": {"kind": "number"}}, "'age' has mean"),
    ],
)
def test_another_schema_does_not_start(named: Config, columns: Any, difference: str) -> None:
    other = by_name(Path(named.server.data_dir), {"columns": columns})

    with pytest.raises(SettingError, match=difference):
        ask_for(other, context=CONTEXT)


def test_a_folder_with_a_schema_does_not_start_without(named: Config) -> None:
    dim = Schema.from_dict(SCHEMA).dim

    with pytest.raises(SettingError, match=r"context\.schema"):
        ask_for(config_in(Path(named.server.data_dir), context__features=dim), context=[0.0] * dim)


@pytest.mark.parametrize(
    ("names", "difference"),
    [(("b", "a"), "another order"), (("a", "c"), "'b' is missing")],
)
def test_names_in_another_order_do_not_start(
    tmp_path: Path, names: tuple[str, ...], difference: str
) -> None:
    np.save(tmp_path / "arms.npy", np.eye(3))
    given = {"context__features": 0, "arms__file": str(tmp_path / "arms.npy")}
    config = config_in(tmp_path, context__names=("a", "b"), **given)
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))
    assert ask_for(config, context={"b": 1.0, "a": 2.0}).status == 200

    with pytest.raises(SettingError, match=difference):
        ask_for(config_in(tmp_path, context__names=names, **given), context=[1.0, 2.0])


# -- arms


NEW = {"title": "A new one", "price": 12.5, "genre": "rock", "since": "2024-03-01"}


def test_arms_come_by_name_and_can_be_chosen_by_their_columns(named: Config) -> None:
    async def story(ask: Caller) -> None:
        arms = [{"id": "e", "features": NEW}, {"id": "f", "features": dict.fromkeys(NEW)}]
        reply = await ask("PUT", "/v1/arms", {"arms": arms})
        assert (reply.status, reply.body["added"], reply.body["arms"]) == (200, 2, 6)
        for wanted in ({"price": 12.5}, {"title": "A new one"}, {"since": {">": "2024-02-02"}}):
            told = {"context": CONTEXT, "eligible": wanted}
            assert (await ask("POST", "/v1/select", told)).body["arms"] == ["e"]
        again = await ask("PUT", "/v1/arms", {"arms": arms})
        assert again.body["unchanged"] == 2

    run(named, story)
    (change,) = [event for event in events_of(named) if isinstance(event, ArmsChanged)]
    assert change.upserted[0].features == NEW


def test_arms_by_name_are_there_after_a_restart(named: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask("PUT", "/v1/arms", {"arms": [{"id": "e", "features": {**NEW, "price": None}}]})

    run(named, story)

    assert ask_for(named, context=CONTEXT, eligible=["e"]).body["arms"] == ["e"]


@pytest.mark.parametrize(
    ("features", "field"),
    [
        ({**NEW, "price": "cheap"}, "arms[1].features.price"),
        ({**NEW, "weight": 2}, "arms[1].features.weight"),
        ({"price": 1}, "arms[1].features.title"),
        ([1.0, 2.0], "arms"),
    ],
)
def test_an_arm_of_another_shape_is_named(named: Config, features: Any, field: str) -> None:
    async def story(ask: Caller) -> Reply:
        arms = [{"id": "e", "features": NEW}, {"id": "f", "features": features}]
        return await ask("PUT", "/v1/arms", {"arms": arms})

    reply = run(named, story)
    assert (reply.status, reply.body["field"]) == (422, field)


def test_the_first_arms_may_come_by_name(tmp_path: Path) -> None:
    config = by_name(tmp_path, arms__file="")

    async def put(ask: Caller) -> None:
        first = [
            {"id": n, "features": {**NEW, "price": n, "genre": g}} for n, g in enumerate("xyx")
        ]
        for arms in (first, [{"id": 7, "features": {**NEW, "price": 7, "genre": None}}]):
            reply = await ask("PUT", "/v1/arms", {"arms": arms})
            assert reply.status == 200, reply

    run(config, put)
    learner = Learner(config)
    learner.start()
    assert learner.step().did == "published"

    assert ask_for(config, context=CONTEXT, eligible={"price": 7}).body["arms"] == [7]


def test_arms_may_be_known_by_their_ids_alone(tmp_path: Path) -> None:
    arms = tmp_path / "ids.csv"
    arms.write_text("id\nx\ny\n")
    config = by_name(tmp_path, arms__file=str(arms))
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))

    async def story(ask: Caller) -> None:
        reply = await ask("PUT", "/v1/arms", {"arms": [{"id": "x"}, {"id": "z"}]})
        assert (reply.body["added"], reply.body["unchanged"]) == (1, 1)
        told = {"context": CONTEXT, "eligible": ["z"]}
        assert (await ask("POST", "/v1/select", told)).body["arms"] == ["z"]

    run(config, story)


def test_arms_without_features_may_have_names(tmp_path: Path) -> None:
    arms = tmp_path / "names.csv"
    arms.write_text("id,name\n" + "".join(f"a{n},word{n}\n" for n in range(60)))
    config = by_name(tmp_path, arms__file=str(arms))
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))

    async def story(ask: Caller) -> None:
        new = [{"id": "a1", "columns": {"name": "word1"}}, {"id": "z", "columns": {"name": "Zed"}}]
        reply = await ask("PUT", "/v1/arms", {"arms": new})
        assert (reply.body["added"], reply.body["unchanged"]) == (1, 1)
        told = {"context": CONTEXT, "eligible": ["z"], "columns": ["name"]}
        answer = (await ask("POST", "/v1/select", told)).body
        assert (answer["arms"], answer["columns"]) == (["z"], [{"name": "Zed"}])

    run(config, story)


# -- exports

VISITS: list[dict[str, Any]] = [
    {**CONTEXT, "age": None, "likes": [["jazz"], ["jazz", "rock"], None, ["rock"]][n % 4]}
    if n % 3
    else {"member": bool(n % 2), "country": None, "age": n, "likes": []}
    for n in range(40)
]


@pytest.fixture
def exported(named: Config, tmp_path: Path) -> Path:
    """Export decisions with rewards, of which the first was made among eligible arms."""

    async def story(ask: Caller) -> None:
        for n, context in enumerate(VISITS):
            eligible = {"eligible": ["a", "b"]} if n == 0 else {}
            told = {"context": context, "propensity": n > 0, **eligible}
            decision = (await ask("POST", "/v1/select", told)).body["decision"]
            await ask("POST", "/v1/reward", {"decision": decision, "value": float(n % 2)})

    run(named, story)
    export(tmp_path, tmp_path / "log.parquet", "parquet")
    return tmp_path / "log.parquet"


def test_an_export_is_read_as_the_log_itself(exported: Path) -> None:
    schema = Schema.from_dict(SCHEMA)

    read, kept = read_rounds(exported, schema=schema), read_rounds(exported.parent)

    assert read.contexts.tolist() == kept.contexts.tolist() == schema.encode(VISITS[1:]).tolist()
    assert [(read.ids or ())[arm] for arm in read.chosen] == [
        (kept.ids or ())[arm] for arm in kept.chosen
    ]


def test_an_export_is_judged_by_name(exported: Path) -> None:
    told = ["--log", str(exported), "--policy", str(exported.parent), "--json", "--greedy"]

    found = CliRunner().invoke(evaluate_command, told, catch_exceptions=False)

    assert json.loads(found.stdout)["rounds"] == 39


@pytest.mark.usefixtures("little_training")
def test_an_export_is_learned_from_by_name(exported: Path) -> None:
    folder, out = exported.parent, exported.parent / "out"
    told = ["--log", exported, "--arms", folder / "arms.csv", "--out", out, "--json"]
    told += ["--context-schema", folder / "context.json", "--preset", folder / "short.toml"]

    found = CliRunner().invoke(learn_command, list(map(str, told)), catch_exceptions=False)

    assert json.loads(found.stdout)["decisions"] == 40
    assert Schema.load(out / "context.json") == Schema.from_dict(SCHEMA)


def test_what_an_export_means_can_be_inferred(exported: Path) -> None:
    found = read_rounds(exported)

    assert found.schema is not None
    assert {*found.schema.names} == {*CONTEXT}
    assert isinstance(found.schema["likes"], CategorySet)


def test_the_description_names_the_features(named: Config) -> None:
    async def story(ask: Caller) -> Any:
        return (await ask("GET", "/openapi.json")).body["components"]["schemas"]

    shapes = run(named, story)

    assert [*shapes["Context"]["properties"]] == [*SCHEMA["columns"]]
    assert shapes["Context"]["required"] == ["age", "country", "member"]
    assert shapes["SelectRequest"]["properties"]["context"] == {
        "$ref": "#/components/schemas/Context"
    }
    assert {"price", "genre"} <= {*shapes["ArmFeatures"]["properties"]}
