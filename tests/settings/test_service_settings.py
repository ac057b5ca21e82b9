"""Settings of the service: where values come from, what is refused, and what is written down."""

from __future__ import annotations

import json
import re
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.cli.config import command as config_command
from fastbandit.cli.init import command as init_command
from fastbandit.cli.init import write_config
from fastbandit.declaration import range_of
from fastbandit.errors import SettingError
from fastbandit.settings.passwords import hide_password
from fastbandit.settings.service import (
    SECTIONS,
    ArmsConfig,
    Config,
    ContextConfig,
    RewardConfig,
    ServerConfig,
    Setting,
    all_settings,
    settings_of,
)
from fastbandit.settings.service_files import CONFIG_FILE, find_config, read_config, written

EVERY = [pytest.param(setting, id=setting.name) for setting in all_settings()]
DOCS = Path(__file__).parents[2] / "docs"
OTHER: dict[str, Any] = {
    "server.host": "localhost",
    "server.tls_cert": "",
    "server.tls_key": "",
    "server.log_level": "debug",
    "arms.file": "arms.csv",
    "reward.kind": "real",
    "reward.default": 1.0,
    "reward.combine": "first",
    "select.exploration": "ucb",
    "select.search": "ascent",
    "select.posterior": "dropout",
    "select.preset": "mine.toml",
    "shadow.baseline": "random",
    "log.url": "",
    "snapshots.url": "",
}
"""Values other than the defaults, for settings where any other of the type will not do."""


def other_value(setting: Setting) -> Any:
    if setting.name in OTHER:
        return OTHER[setting.name]
    others: dict[Any, Any] = {bool: not setting.default, int: 7, float: 0.5, str: "other"}
    return others.get(setting.kind, ("red", "big"))


def value_of(config: Config, setting: Setting) -> Any:
    return getattr(getattr(config, setting.section), setting.key)


def file_with(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(SettingError) as caught:
        call()
    return str(caught.value)


def in_file(folder: Path, text: str) -> str:
    return refusal(lambda: read_config(file_with(folder, text), environ={}))


def in_environment(**environ: str) -> str:
    return refusal(lambda: read_config(None, environ=environ))


# -- where values come from


def test_nothing_set_gives_the_defaults() -> None:
    config = read_config(None, environ={})

    assert config == Config()
    assert {*config.sources.values()} == {"default"}
    assert [*config.sources] == [setting.name for setting in all_settings()]


@pytest.mark.parametrize("setting", EVERY)
def test_every_setting_can_stand_in_a_file(setting: Setting, tmp_path: Path) -> None:
    value = other_value(setting)
    path = file_with(tmp_path, f"[{setting.section}]\n{setting.key} = {written(value)}\n")

    config = read_config(path, environ={})

    assert value_of(config, setting) == value
    assert config.sources[setting.name] == f"file {path}"


@pytest.mark.parametrize("setting", EVERY)
def test_every_setting_can_stand_in_the_environment(setting: Setting) -> None:
    value = other_value(setting)
    text = value if isinstance(value, str) else written(value)

    config = read_config(None, environ={setting.variable: text})

    assert value_of(config, setting) == value
    assert config.sources[setting.name] == f"environment {setting.variable}"


@pytest.mark.parametrize("setting", EVERY)
def test_every_setting_can_come_from_the_command_line(setting: Setting) -> None:
    value = other_value(setting)

    config = read_config(None, environ={}, overrides={setting.name: value})

    assert value_of(config, setting) == value
    assert config.sources[setting.name] == "command line"


def test_the_command_line_stands_over_the_environment_over_the_file(tmp_path: Path) -> None:
    path = file_with(tmp_path, "[server]\nport = 1\nmax_waiting = 1\n[learn]\nkeep = 1\n")
    environ = {"FASTBANDIT_SERVER_PORT": "2", "FASTBANDIT_SERVER_MAX_WAITING": "2"}

    config = read_config(path, environ=environ, overrides={"server.port": 3})

    assert (config.server.port, config.server.max_waiting, config.learn.keep) == (3, 2, 1)


def test_an_option_that_was_not_given_changes_nothing() -> None:
    config = read_config(None, environ={}, overrides={"server.port": None})

    assert config.sources["server.port"] == "default"


def test_a_path_from_the_command_line_becomes_text() -> None:
    config = read_config(None, environ={}, overrides={"server.data_dir": Path("there")})

    assert config.server.data_dir == "there"


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTBANDIT_SERVER_PORT", "81")

    assert read_config(None).server.port == 81


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('["a", "b, c"]', ("a", "b, c")),
        ("a, b", ("a", "b")),
        ("a,", ("a",)),
        ("", ()),
        ("[]", ()),
    ],
)
def test_a_list_in_the_environment_is_json_or_has_commas(text: str, names: tuple[str]) -> None:
    config = read_config(None, environ={"FASTBANDIT_CONTEXT_NAMES": text})

    assert config.context.names == names


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), (" true", True)])
def test_a_boolean_in_the_environment_is_a_word(text: str, value: bool) -> None:
    assert read_config(None, environ={"FASTBANDIT_SERVER_CONSOLE": text}).server.console is value


def test_a_whole_number_serves_as_a_number(tmp_path: Path) -> None:
    config = read_config(file_with(tmp_path, "[reward]\nwait_seconds = 60\n"), environ={})

    assert isinstance(config.reward.wait_seconds, float)


def test_variables_of_others_are_left_alone() -> None:
    environ = {"FASTBANDIT_DATA": "x", "FASTBANDIT_STRESS_SELECTS": "1", "SERVER_PORT": "1"}

    assert read_config(None, environ=environ) == Config()


def test_the_file_in_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config() is None
    Path(CONFIG_FILE).touch()

    assert find_config() == Path(CONFIG_FILE)
    assert find_config(Path("mine.toml")) == Path("mine.toml")


# -- names that are not known


def test_an_unknown_section_names_the_file_and_the_nearest(tmp_path: Path) -> None:
    said = in_file(tmp_path, "[sever]\nport = 1\n")

    assert str(tmp_path / "mine.toml") in said
    assert "got 'sever'" in said
    assert "Did you mean 'server'?" in said


def test_an_unknown_key_names_the_file_and_the_nearest(tmp_path: Path) -> None:
    said = in_file(tmp_path, "[server]\nprot = 1\n")

    assert f"[server] in {tmp_path / 'mine.toml'}" in said
    assert "got 'prot'. Did you mean 'port'?" in said


def test_a_key_outside_of_all_sections_is_refused(tmp_path: Path) -> None:
    assert "got 'port'" in in_file(tmp_path, "port = 1\n")


def test_a_section_that_is_a_value_is_refused(tmp_path: Path) -> None:
    assert "Write its keys below a line [server]" in in_file(tmp_path, "server = 1\n")


def test_an_unknown_variable_names_the_nearest() -> None:
    said = in_environment(FASTBANDIT_SERVER_PRT="1")

    assert "got 'FASTBANDIT_SERVER_PRT'. Did you mean 'FASTBANDIT_SERVER_PORT'?" in said


def test_an_unknown_option_is_refused() -> None:
    said = refusal(lambda: read_config(None, environ={}, overrides={"server.prt": 1}))

    assert "Did you mean 'server.port'?" in said


@st.composite
def misspellings(draw: st.DrawFn) -> tuple[Setting, str]:
    """Draw a setting, and its key with one character left out, put in, or put in place."""
    setting = draw(st.sampled_from([*all_settings()]))
    key, place = setting.key, draw(st.integers(0, len(setting.key) - 1))
    letter = draw(st.sampled_from(string.ascii_lowercase + "_"))
    misspelt = draw(
        st.sampled_from(
            [
                key[:place] + key[place + 1 :],
                key[:place] + letter + key[place:],
                key[:place] + letter + key[place + 1 :],
            ]
        )
    )
    return setting, misspelt


@given(misspellings())
def test_a_key_with_one_wrong_character_is_refused_and_named(drawn: tuple[Setting, str]) -> None:
    setting, misspelt = drawn
    if misspelt in {own.key for own in settings_of(setting.section)}:
        return
    variable = f"FASTBANDIT_{setting.section}_{misspelt}".upper()

    in_variable = in_environment(**{variable: "1"})
    by_option = refusal(
        lambda: read_config(None, environ={}, overrides={f"{setting.section}.{misspelt}": 1})
    )

    assert setting.variable in in_variable
    assert setting.name in by_option
    if len(setting.key) > 2:  # a shorter one is listed
        assert f"Did you mean '{setting.variable}'?" in in_variable
        assert f"Did you mean '{setting.name}'?" in by_option


@given(misspellings())
def test_a_file_with_one_wrong_character_is_refused_and_the_key_named(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Setting, str]
) -> None:
    setting, misspelt = drawn
    if misspelt in {"", *(own.key for own in settings_of(setting.section))}:
        return
    folder = tmp_path_factory.mktemp("misspelt")

    said = in_file(folder, f"[{setting.section}]\n{misspelt} = 1\n")

    assert f"got '{misspelt}'" in said
    if len(setting.key) > 2:  # a shorter one is listed
        assert f"Did you mean '{setting.key}'?" in said
    else:
        assert f" {setting.key}," in said


# -- values that cannot be used


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("server.port", -1, "a whole number from 0 to 65535"),
        ("server.port", 65_536, "a whole number from 0 to 65535"),
        ("server.port", True, "a whole number"),
        ("server.port", 80.0, "a whole number"),
        ("server.port", "80", "a whole number"),
        ("server.host", "", "printable text, at least one character"),
        ("server.host", 1, "printable text"),
        ("server.data_dir", "", "printable text, at least one character"),
        ("server.data_dir", "a\0b", "printable text"),
        ("server.console", 1, "true or false"),
        ("server.max_body_bytes", 0, "a whole number of at least 1"),
        ("server.max_waiting", 2**70, "a whole number of at least 1"),
        ("context.features", -1, "a whole number from 0 to 100000"),
        ("context.features", 100_001, "a whole number from 0 to 100000"),
        ("context.names", "age", "a list of printable texts"),
        ("context.names", ["age", 1], "a list of printable texts"),
        ("context.names", ["age", "age"], "none twice"),
        ("context.names", ["age", ""], "not empty"),
        ("arms.file", "arms.pickle", "ends in .csv, .parquet, .npy or .json"),
        ("reward.wait_seconds", float("inf"), "a finite number above 0"),
        ("reward.wait_seconds", float("nan"), "a finite number above 0"),
        ("reward.wait_seconds", 10**400, "a finite number above 0"),
        ("reward.wait_seconds", 0, "a finite number above 0"),
        ("reward.wait_seconds", True, "a finite number"),
        ("reward.default", float("nan"), "a finite number"),
        ("select.epsilon", 1.01, "a finite number of at least 0 and at most 1"),
        ("select.epsilon", -0.01, "a finite number of at least 0 and at most 1"),
        ("select.seed", -1, "a whole number of at least 0"),
        ("select.propensity_draws", 0, "a whole number of at least 1"),
        ("learn.fresh", 0, "a whole number of at least 1"),
        ("learn.growth", -0.1, "a finite number of at least 0"),
        ("learn.held_out", 1.0, "a finite number of at least 0 and below 1"),
        ("learn.min_quality", 2.0, "a finite number of at least 0 and at most 1"),
        ("learn.min_recall", 2.0, "a finite number of at least 0 and at most 1"),
    ],
)
def test_a_value_out_of_place_is_refused_with_what_is_needed(
    name: str, value: Any, needed: str
) -> None:
    said = refusal(lambda: read_config(None, environ={}, overrides={name: value}))

    assert f"The setting {name} needs" in said
    assert needed in said
    assert f"got {value!r} from command line" in said


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("server.log_level", "infos", "info"),
        ("reward.kind", "binry", "binary"),
        ("reward.combine", "sums", "sum"),
        ("select.exploration", "uc", "ucb"),
        ("select.search", "generater", "generator"),
        ("select.preset", "defalt", "default"),
        ("select.posterior", "droput", "dropout"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_nearest(name: str, value: str, nearest: str) -> None:
    said = refusal(lambda: read_config(None, environ={}, overrides={name: value}))

    assert f"got {value!r}. Did you mean {nearest!r}? It came from command line." in said


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FASTBANDIT_SERVER_PORT", "tcp://10.0.0.1:8080"),
        ("FASTBANDIT_SERVER_PORT", ""),
        ("FASTBANDIT_SERVER_CONSOLE", "yes"),
        ("FASTBANDIT_SELECT_EPSILON", "a little"),
        ("FASTBANDIT_CONTEXT_NAMES", '["a"'),
    ],
)
def test_text_of_the_wrong_type_names_its_variable(variable: str, text: str) -> None:
    assert f"got {text!r} from environment {variable}" in in_environment(**{variable: text})


def test_a_value_of_the_wrong_type_names_its_file(tmp_path: Path) -> None:
    said = in_file(tmp_path, '[server]\nport = "x"\n')

    assert f"got 'x' from file {tmp_path / 'mine.toml'}" in said


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"

    said = refusal(lambda: read_config(path, environ={}))

    assert (
        said == f"A config file needs to exist: found none at {path}. Run: fastbandit init {path}"
    )


@pytest.mark.parametrize(
    "raw", [b"[server", b"\xff\xfe", b"[server]\nport = 1\nport = 2\n", b"a = " + b"9" * 5_000]
)
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "mine.toml").write_bytes(raw)

    said = refusal(lambda: read_config(tmp_path / "mine.toml", environ={}))

    assert f"{tmp_path / 'mine.toml'} needs to be TOML" in said


def test_a_folder_is_no_file_of_settings(tmp_path: Path) -> None:
    assert "needs to be TOML" in refusal(lambda: read_config(tmp_path, environ={}))


# -- values that do not go together


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_this_machine_alone_needs_no_tls(host: str) -> None:
    assert ServerConfig(host=host).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.org"])
def test_other_machines_need_tls_or_leave(host: str) -> None:
    said = refusal(lambda: ServerConfig(host=host))

    assert f"server.host = {host!r}" in said
    assert "server.allow_plain_http = true" in said
    assert not ServerConfig(host=host, allow_plain_http=True).is_loopback
    assert not ServerConfig(host=host, tls_cert="c.pem", tls_key="k.pem").is_loopback


def test_a_certificate_and_its_key_need_each_other() -> None:
    assert "got 'x.pem' and ''" in refusal(lambda: ServerConfig(tls_cert="x.pem"))
    assert "got '' and 'x.pem'" in refusal(lambda: ServerConfig(tls_key="x.pem"))


def test_features_are_counted_or_named() -> None:
    assert ContextConfig(features=3).dim == 3
    assert ContextConfig(names=("age", "day")).dim == 2
    assert ContextConfig(features=2, names=("age", "day")).dim == 2


def test_nobody_can_guess_how_many_features_there_are() -> None:
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


# -- in step with the rest of the package


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


def test_no_more_features_than_a_request_may_have() -> None:
    from fastbandit.serving.schemas import MOST_FEATURES

    assert ContextConfig(features=MOST_FEATURES).dim == MOST_FEATURES
    refusal(lambda: ContextConfig(features=MOST_FEATURES + 1))


# -- commands


def run(command: click.Command, *args: str) -> Result:
    return CliRunner().invoke(command, args, catch_exceptions=True)


def test_init_writes_the_defaults_of_every_setting(tmp_path: Path) -> None:
    write_config(tmp_path / "new.toml")

    text = (tmp_path / "new.toml").read_text(encoding="utf-8")
    assert read_config(tmp_path / "new.toml", environ={}) == Config()
    for section in SECTIONS:
        part = text.partition(f"[{section}]")[2]
        for setting in settings_of(section):
            line = f"{setting.key} = {written(setting.default)}  # {setting.meaning}"
            assert f"\n{line}\n" in part or f"\n# {line}\n" in part


def test_what_init_comments_out_reads_as_the_defaults_too(tmp_path: Path) -> None:
    write_config(tmp_path / "new.toml")
    lines = (tmp_path / "new.toml").read_text(encoding="utf-8").splitlines()
    bare = [line.removeprefix("# ") for line in lines if " = " in line or line.startswith("[")]

    config = read_config(file_with(tmp_path, "\n".join(bare)), environ={})

    assert config == Config()
    assert "default" not in config.sources.values()


def test_init_says_what_to_run_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    done = run(init_command)

    assert Path(CONFIG_FILE).exists()
    assert "\n  fastbandit config show --config fastbandit.toml\n" in done.output
    assert "\n  fastbandit serve --config fastbandit.toml\n" in done.output


def test_init_replaces_a_file_only_by_force(tmp_path: Path) -> None:
    path = file_with(tmp_path, "mine")

    refused = run(init_command, str(path))
    assert isinstance(refused.exception, SettingError)
    assert "--force" in str(refused.exception)
    assert path.read_text() == "mine"

    assert run(init_command, str(path), "--force").exit_code == 0
    assert read_config(path, environ={}) == Config()


def test_init_says_where_it_cannot_write(tmp_path: Path) -> None:
    done = run(init_command, str(tmp_path / "none" / "new.toml"))

    assert isinstance(done.exception, SettingError)
    assert "Choose another place" in str(done.exception)
    assert [*tmp_path.iterdir()] == []


def test_show_prints_each_value_and_its_source(tmp_path: Path) -> None:
    path = file_with(tmp_path, '[context]\nnames = ["ä", "b"]\n')

    lines = run(config_command, "show", "--config", str(path)).output.splitlines()

    assert [line.split(" = ")[0] for line in lines] == [own.name for own in all_settings()]
    assert any(
        line.startswith('context.names = ["ä", "b"] ') and line.endswith(f"# file {path}")
        for line in lines
    )


def test_show_prints_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTBANDIT_SERVER_PORT", "81")

    told = json.loads(run(config_command, "show", "--json").output)

    assert [*told] == [own.name for own in all_settings()]
    assert told["server.port"] == {"value": 81, "source": "environment FASTBANDIT_SERVER_PORT"}
    assert told["arms.columns"] == {"value": [], "source": "default"}


# -- docs


@pytest.mark.parametrize("number", [0, 1])
def test_settings_in_the_docs_can_be_read(number: int, tmp_path: Path) -> None:
    page = (DOCS / "serving.md").read_text(encoding="utf-8")
    text = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[number]

    assert read_config(file_with(tmp_path, text), environ={}) != Config()


@pytest.mark.parametrize("setting", EVERY)
def test_every_setting_is_documented_with_its_default_and_meaning(setting: Setting) -> None:
    section = (DOCS / "serving.md").read_text(encoding="utf-8").partition("## Settings")[2]
    head = f"| `[{setting.section}]` |" if setting == next(settings_of(setting.section)) else "| |"

    row = f"\n{head} `{setting.key}` | {written(setting.default)} | {setting.meaning} |\n"
    assert section.count(row) == 1


# -- passwords


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hush@host/db",
        "postgresql://user:hu@hush@host/db",
        "postgresql://:hush@host:5432/db?sslmode=require",
        "postgresql://user@host/db?password=hush&sslmode=require",
    ],
)
def test_a_password_is_not_worded(url: str) -> None:
    told = hide_password(url)

    assert "hush" not in told
    assert "/db" in told


def test_a_url_that_cannot_be_used_is_named_without_its_password() -> None:
    with pytest.raises(SettingError, match=r"log\.url needs") as caught:
        read_config(None, environ={}, overrides={"log.url": "mysql://user:hush@host/db"})

    assert "hush" not in str(caught.value)


def test_config_show_hides_the_password_of_each_url() -> None:
    environ = {
        "FASTBANDIT_LOG_URL": "postgresql://user:hush@host/db",
        "FASTBANDIT_SNAPSHOTS_URL": "ftp://user:hush@host/folder",
    }
    for options in ([], ["--json"]):
        told = CliRunner().invoke(config_command, ["show", *options], env=environ).output

        assert told.count("user:…@host") == 2
        assert "hush" not in told
