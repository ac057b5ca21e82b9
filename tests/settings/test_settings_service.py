"""Settings of the service: values that do not go together, and what is documented of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from service_configs import EVERY, refusal

from fastbandit.declaration import range_of
from fastbandit.settings.rewards import RewardConfig
from fastbandit.settings.service import (
    ArmsConfig,
    ContextConfig,
    ServerConfig,
    Setting,
    all_settings,
    settings_of,
)
from fastbandit.settings.service_files import read_config, written

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_this_machine_alone_needs_no_tls(host: str) -> None:
    assert ServerConfig(host=host).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.org"])
def test_other_machines_need_tls_or_leave(host: str) -> None:
    message = refusal(lambda: ServerConfig(host=host))

    assert f"server.host = {host!r}" in message
    assert "server.allow_plain_http = true" in message
    assert not ServerConfig(host=host, allow_plain_http=True).is_loopback
    assert not ServerConfig(host=host, tls_cert="c.pem", tls_key="k.pem").is_loopback


def test_a_certificate_and_its_key_need_each_other() -> None:
    assert "got 'x.pem' and ''" in refusal(lambda: ServerConfig(tls_cert="x.pem"))
    assert "got '' and 'x.pem'" in refusal(lambda: ServerConfig(tls_key="x.pem"))


def test_features_are_counted_or_named() -> None:
    assert ContextConfig(features=3).dim == 3
    assert ContextConfig(names=("age", "day")).dim == 2
    assert ContextConfig(features=2, names=("age", "day")).dim == 2


def test_a_number_of_features_is_needed() -> None:
    assert "Set one of them" in refusal(lambda: ContextConfig().dim)


def test_as_many_names_as_features_are_needed() -> None:
    assert "3 and 1 context.names" in refusal(lambda: ContextConfig(features=3, names=("age",)))


def test_the_column_of_ids_serves_no_predicate() -> None:
    assert "arms.id = 'sku'" in refusal(lambda: ArmsConfig(id="sku", columns=("price", "sku")))


def test_a_binary_default_is_0_or_1() -> None:
    assert "reward.default = 0.5" in refusal(lambda: RewardConfig(default=0.5))


def test_binary_rewards_do_not_add_up() -> None:
    assert "reward.kind = 'real'" in refusal(lambda: RewardConfig(combine="sum"))
    assert RewardConfig(kind="real", combine="sum", default=0.5).combine == "sum"


def test_a_section_made_in_code_is_checked_too() -> None:
    assert "ServerConfig needs port to be a whole number from 0 to 65535: got 70000" in refusal(
        lambda: ServerConfig(port=70_000)
    )


def test_settings_and_keys_need_the_base_install_alone() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'msgspec', 'uvicorn', 'apsw'): sys.modules[name] = None\n"
        "import fastbandit.cli.config, fastbandit.cli.keys\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=DOCS.parent, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("role", ["exploration", "posterior", "search"])
def test_the_names_are_those_that_the_bandit_knows(role: str) -> None:
    from fastbandit.settings.parts import parts_of

    names = {one.name: range_of(one.own).choices for one in all_settings()}[f"select.{role}"]

    assert {*names} - {"auto", "neural"} == {*parts_of(role)}


def test_days_may_leave_a_shared_log_for_an_archive() -> None:
    shared = {"log.url": "postgresql://host/db", "snapshots.url": "s3://bucket/folder"}
    config = read_config(None, environ={}, overrides={**shared, "log.retain_days": 7})

    assert config.log.archive


def test_no_more_features_than_a_request_may_have() -> None:
    from fastbandit.serving.schemas import MOST_FEATURES

    assert ContextConfig(features=MOST_FEATURES).dim == MOST_FEATURES
    refusal(lambda: ContextConfig(features=MOST_FEATURES + 1))


@pytest.mark.parametrize("setting", EVERY)
def test_every_setting_is_documented_with_its_default_and_meaning(setting: Setting) -> None:
    section = (DOCS / "serving.md").read_text(encoding="utf-8").partition("## Settings")[2]
    head = f"| `[{setting.section}]` |" if setting == next(settings_of(setting.section)) else "| |"

    row = f"\n{head} `{setting.key}` | {written(setting.default)} | {setting.meaning} |\n"
    assert section.count(row) == 1
