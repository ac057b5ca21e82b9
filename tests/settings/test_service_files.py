"""Settings of the service are read: where values come from, and what is refused."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_configs import (
    EVERY,
    file_with,
    in_environment,
    in_file,
    other_value,
    refusal,
    value_of,
)

from fastbandit.errors import SettingError
from fastbandit.settings.service import Config, Setting, all_settings, settings_of
from fastbandit.settings.service_files import CONFIG_FILE, find_config, read_config, written

DOCS = Path(__file__).parents[2] / "docs"


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

    beside = str(tmp_path / value) if setting.key == "schema" and value else value
    assert value_of(config, setting) == beside
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


def test_an_unknown_section_names_the_file_and_the_nearest(tmp_path: Path) -> None:
    message = in_file(tmp_path, "[sever]\nport = 1\n")

    assert str(tmp_path / "mine.toml") in message
    assert "got 'sever'" in message
    assert "Did you mean 'server'?" in message


def test_an_unknown_key_names_the_file_and_the_nearest(tmp_path: Path) -> None:
    message = in_file(tmp_path, "[server]\nprot = 1\n")

    assert f"[server] in {tmp_path / 'mine.toml'}" in message
    assert "got 'prot'. Did you mean 'port'?" in message


def test_a_key_outside_of_all_sections_is_refused(tmp_path: Path) -> None:
    assert "got 'port'" in in_file(tmp_path, "port = 1\n")


def test_a_section_that_is_a_value_is_refused(tmp_path: Path) -> None:
    assert "Write its keys below a line [server]" in in_file(tmp_path, "server = 1\n")


def test_an_unknown_variable_names_the_nearest() -> None:
    message = in_environment(FASTBANDIT_SERVER_PRT="1")

    assert "got 'FASTBANDIT_SERVER_PRT'. Did you mean 'FASTBANDIT_SERVER_PORT'?" in message


def test_an_unknown_option_is_refused() -> None:
    message = refusal(lambda: read_config(None, environ={}, overrides={"server.prt": 1}))

    assert "Did you mean 'server.port'?" in message


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


def edits_of(text: str) -> set[str]:
    """Return a text as it is and with each character left out or hidden."""
    places = range(len(text))
    less = {text[:at] + text[at + 1 :] for at in places}
    return {text} | less | {f"{text[:at]}?{text[at + 1 :]}" for at in places}


def is_clear(setting: Setting, misspelt: str) -> bool:
    """Return whether a misspelt key can be no other; a short one is listed with all others."""
    others = {own.key for own in settings_of(setting.section)} - {setting.key}
    return len(setting.key) > 2 and not any(edits_of(misspelt) & edits_of(one) for one in others)


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
    if is_clear(setting, misspelt):
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

    message = in_file(folder, f"[{setting.section}]\n{misspelt} = 1\n")

    assert f"got '{misspelt}'" in message
    if is_clear(setting, misspelt):
        assert f"Did you mean '{setting.key}'?" in message
    elif len(setting.key) <= 2:
        assert f" {setting.key}," in message


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
        ("arms.file", "arms.pickle", "ends in .csv, .csv.gz, .parquet"),
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
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_needed(
    name: str, value: Any, needed: str
) -> None:
    message = refusal(lambda: read_config(None, environ={}, overrides={name: value}))

    assert f"The setting {name} needs" in message
    assert needed in message
    assert f"got {value!r} from command line" in message


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
    message = refusal(lambda: read_config(None, environ={}, overrides={name: value}))

    assert f"got {value!r}. Did you mean {nearest!r}? It came from command line." in message


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
    message = in_file(tmp_path, '[server]\nport = "x"\n')

    assert f"got 'x' from file {tmp_path / 'mine.toml'}" in message


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"

    message = refusal(lambda: read_config(path, environ={}))

    assert (
        message
        == f"A config file needs to exist: found none at {path}. Run: fastbandit init {path}"
    )


@pytest.mark.parametrize(
    "raw", [b"[server", b"\xff\xfe", b"[server]\nport = 1\nport = 2\n", b"a = " + b"9" * 5_000]
)
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "mine.toml").write_bytes(raw)

    message = refusal(lambda: read_config(tmp_path / "mine.toml", environ={}))

    assert f"{tmp_path / 'mine.toml'} needs to be TOML" in message


def test_a_folder_is_no_file_of_settings(tmp_path: Path) -> None:
    assert "needs to be TOML" in refusal(lambda: read_config(tmp_path, environ={}))


def test_a_url_that_cannot_be_used_is_named_without_its_password() -> None:
    with pytest.raises(SettingError, match=r"log\.url needs") as caught:
        read_config(None, environ={}, overrides={"log.url": "mysql://user:hush@host/db"})

    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("number", [0, 1])
def test_settings_in_the_docs_can_be_read(number: int, tmp_path: Path) -> None:
    page = (DOCS / "serving.md").read_text(encoding="utf-8")
    text = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[number]

    assert read_config(file_with(tmp_path, text), environ={}) != Config()


@pytest.mark.parametrize("key", ["min_recall", "recall_floor"])
def test_a_setting_that_is_not_used_any_more_is_read_and_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    path = file_with(tmp_path, f"[learn]\n{key} = 0.5\nfresh = 7\n")
    environ = {f"FASTBANDIT_LEARN_{key.upper()}": "0.5"}

    assert read_config(path, environ=environ).learn.fresh == 7
    assert [f"learn.{key} from" in text for text in caplog.messages] == [True, True]


def test_a_file_of_before_is_read_by_its_former_keys(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text('[select]\nexplore = "ucb"\nfloor = 0.25\n[learn]\nquality_floor = 0.5\n')

    config = read_config(path, environ={})

    assert (config.select.exploration, config.select.epsilon) == ("ucb", 0.25)
    assert config.learn.min_quality == 0.5
