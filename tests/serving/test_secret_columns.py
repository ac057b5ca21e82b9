"""Columns that are secret: learned from, and found in no answer, page, log line or export."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import SettingError
from fastbandit.features.schema import Schema
from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.serving.secret_columns import NOT_SHOWN
from fastbandit.settings.service import Config
from fastbandit.storage.exports import FORMATS, export
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_named import CONTEXT, SCHEMA, by_name, events_of
from tests.serving.little_service import Caller, Reply, run

SECRET = "Xenophon-of-Athens"
WHERE = {"country": SECRET}


def schema_with(**marks: Any) -> dict[str, Any]:
    """Return the schema of little services with more said of the column country."""
    columns = {**SCHEMA["columns"]}
    levels = ["DE", SECRET]
    columns["country"] = {"kind": "category", "levels": levels, **marks}
    return {"columns": columns}


ARM_SCHEMA = {
    "columns": {
        "title": {"kind": "text", "dim": 8},
        "price": {"kind": "number"},
        "genre": {"kind": "category", "levels": ["jazz", SECRET], "secret": True},
        "since": {"kind": "date"},
    }
}


def secret_service(folder: Path, **settings: Any) -> Config:
    path = folder / "arms.json"
    path.write_text(json.dumps(ARM_SCHEMA))
    more = {"arms__schema": str(path), **settings}
    config = by_name(folder, schema_with(secret=True), **more)
    publish_initial_version(config, SnapshotStore(folder / "snapshots"))
    return config


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return secret_service(tmp_path)


def asked(config: Config, *requests: tuple[str, str, Any]) -> list[Reply]:
    """Send requests to a service; a body of bytes goes as it is."""

    async def story(ask: Caller) -> list[Reply]:
        replies = []
        for method, path, body in requests:
            is_raw = isinstance(body, bytes)
            sent = {"raw": body} if is_raw else {}
            replies.append(await ask(method, path, None if is_raw else body, **sent))
        return replies

    return run(config, story)


def select(**more: Any) -> tuple[str, str, Any]:
    return ("POST", "/v1/select", {"context": {**CONTEXT, **WHERE}, **more})


# -- answers


def test_no_answer_repeats_a_secret_value(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    arm = {"id": "z", "features": {"title": "t", "price": 1, "genre": [SECRET], "since": None}}
    wrong = [
        select(context={**CONTEXT, "country": [SECRET]}),
        select(contexts=[CONTEXT, {**CONTEXT, "country": {"name": SECRET}}]),
        select(context=[SECRET]),
        select(contxt={"country": SECRET}),
        select(context=SECRET),
        ("POST", "/v1/select", b'{"context": {"country": "' + SECRET.encode() + b'"'),
        ("POST", "/v1/select", b'{"context": {"country": "' + SECRET.encode() + b'"}, "k": 1e}'),
        select(arms=[arm]),
        ("PUT", "/v1/arms", {"arms": [arm]}),
        ("PUT", "/v1/arms", {"arms": [{**arm, "feature": SECRET}]}),
        select(eligible={"genre": "jazz"}),
        select(columns=["genre"]),
    ]
    good = [
        ("PUT", "/v1/arms", {"arms": [{**arm, "features": {**arm["features"], "genre": SECRET}}]}),
        select(id="one", columns=["price", "title"]),
        ("GET", "/v1/decisions/one/explanation", None),
        ("GET", "/v1/arms/z/explanation", None),
        *(("GET", path, None) for path in ("/openapi.json", "/v1/status", "/v1/console")),
    ]
    with caplog.at_level(logging.DEBUG):
        replies = asked(config, *wrong, *good)

    assert {reply.status for reply in replies[: len(wrong)]} == {400, 422}
    assert replies[len(wrong)].status == replies[len(wrong) + 1].status == 200
    for reply in replies:
        assert SECRET not in json.dumps(reply.body, default=str), reply
    assert SECRET not in "".join(str(vars(record)) for record in caplog.records)


def test_an_error_names_the_secret_column_and_what_to_do(config: Config) -> None:
    (reply,) = asked(config, select(context={**CONTEXT, "country": [SECRET]}))

    assert reply.body["field"] == "context.country"
    assert reply.body["value"] == NOT_SHOWN
    assert reply.body["fix"] == "Send its name, or null."


def test_values_of_other_columns_are_repeated(config: Config) -> None:
    replies = asked(config, select(context={**CONTEXT, "age": "old"}), select(k=0))

    assert [reply.body["value"] for reply in replies] == ["old", "0"]


def test_the_page_of_the_interface_has_name_and_kind_of_a_secret_column(config: Config) -> None:
    (reply,) = asked(config, ("GET", "/openapi.json", None))

    shapes = reply.body["components"]["schemas"]
    assert shapes["Context"]["properties"]["country"]["description"] == "category: secret"
    assert shapes["ArmFeatures"]["properties"]["genre"]["description"] == "category: secret"


def test_a_column_may_become_secret_after_the_first_version(tmp_path: Path) -> None:
    config = by_name(tmp_path, schema_with())
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))
    wrong = select(context={**CONTEXT, "country": [SECRET]})
    assert SECRET in str(asked(config, wrong)[0].body)

    (reply,) = asked(by_name(tmp_path, schema_with(secret=True)), wrong)

    assert SECRET not in str(reply.body)


def test_a_column_that_predicates_know_cannot_become_secret(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="so from the first arms on: 'genre'"):
        asked(secret_service(tmp_path, arms__columns=["genre"]), select())


# -- what is kept, and what is exported


def test_a_secret_column_is_kept_for_learning(config: Config) -> None:
    asked(config, select(id="one"))
    plain, secret = (Schema.from_dict(schema_with(secret=one)) for one in (False, True))

    assert events_of(config)[0].context["country"] == SECRET
    context = {**CONTEXT, **WHERE}
    assert (plain.encode_one(context) == secret.encode_one(context)).all()


@pytest.mark.parametrize("format", FORMATS)
def test_no_export_holds_a_secret_value(config: Config, tmp_path: Path, format: str) -> None:
    offer = {"title": "t", "price": 1.0, "genre": SECRET, "since": None}
    offers = [{"id": "z", "features": offer}, {"id": "a"}]
    upsert = {"arms": [{"id": "y", "features": {**offer, "price": 2.0}}]}
    asked(
        config,
        ("PUT", "/v1/arms", upsert),
        select(id="one", explore=False),
        select(id="two", explore=False, arms=offers),
        *(("POST", "/v1/reward", {"decision": id, "value": 1.0}) for id in ("one", "two")),
    )
    out = tmp_path / f"out.{format}"

    made = export(tmp_path, out, format)

    assert made.rows == 2
    if format == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(out)
        assert "context.country" not in table.column_names
        assert SECRET not in str(table.to_pylist())
    assert SECRET.encode() not in out.read_bytes()
    assert SECRET in str(events_of(config))


def test_a_schema_that_is_printed_shows_no_secret_value() -> None:
    schema = Schema.from_dict(schema_with(secret=True))

    assert SECRET not in str(schema) + schema._repr_html_() + json.dumps(schema.shape())
    assert Schema.from_dict(schema.as_dict()) == schema


def test_columns_of_arms_are_not_dropped_by_days(tmp_path: Path) -> None:
    path = tmp_path / "arms.json"
    columns = {"columns": {"price": {"kind": "number", "drop_after_days": 3}}}
    path.write_text(json.dumps(columns))
    config = by_name(tmp_path, arms__schema=str(path))

    with pytest.raises(SettingError, match="stay as long as their arms"):
        config.arms.read_schema()
