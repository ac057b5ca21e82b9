"""The settings of the decision service: what each is, and how they are read.

A value comes from the command line, else the environment, else a TOML file, else its default.
Each field below carries its default, type and meaning; files, docs and checks follow them.
"""

from __future__ import annotations

import ipaddress
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.settings.passwords import hide_password

CONFIG_FILE = "fastbandit.toml"
_PREFIX = "FASTBANDIT_"
_HUGE = 1e300
_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "printable text",
    tuple[str, ...]: "a list of printable texts",
}


@dataclass(frozen=True)
class Need:
    """What a value must be beyond its type, in words and as a test."""

    text: str
    holds: Callable[[Any], bool]
    names: tuple[str, ...] = ()


def _one_of(*names: str, or_file: str | None = None) -> Need:
    def holds(value: str) -> bool:
        return value in names or (or_file is not None and value.endswith(or_file))

    return Need(f"one of {', '.join(names)}", holds, names)


_ANY = Need("", lambda value: True)
_NOT_EMPTY = Need("at least one character", bool)
_PORT = Need("from 0 to 65535", lambda value: 0 <= value <= 65_535)
_FEATURES = Need("from 0 to 100000", lambda value: 0 <= value <= 100_000)
_SECONDS = Need("more than 0 and at most 1e9", lambda value: 0 < value <= 1e9)
_PAUSE = Need("from 0 to 1e9", lambda value: 0 <= value <= 1e9)
_AT_LEAST_0 = Need("0 or more", lambda value: value >= 0)
_AT_LEAST_1 = Need("1 or more", lambda value: value >= 1)
_SHARE = Need("from 0 to 1", lambda value: 0 <= value <= 1)
_PART = Need("0 or more and below 1", lambda value: 0 <= value < 1)
_DISTINCT = Need("not empty, none twice", lambda value: all(value) and len({*value}) == len(value))
_ARMS_FILE = Need(
    "a path that ends in .csv, .parquet, .npy or .json",
    lambda value: value == "" or value.endswith((".csv", ".parquet", ".npy", ".json")),
)
_LOG_URL = Need(
    "empty, or a URL such as postgresql://user@host/database",
    lambda value: value == "" or value.startswith(("postgresql://", "postgres://")),
)
_BASELINE = Need(
    "empty, request or random",
    lambda value: value in ("", "request", "random"),
    ("request", "random"),
)


def _setting(default: Any, meaning: str, need: Need = _ANY, *, is_asked: bool = False) -> Any:
    """Make a field; one that is asked for has no default that suits everyone."""
    return field(default=default, metadata={"meaning": meaning, "need": need, "is_asked": is_asked})


# -- sections


@dataclass(frozen=True)
class ServerConfig:
    """Where the service listens, and what it keeps."""

    host: str = _setting("127.0.0.1", "address to listen on", _NOT_EMPTY)
    port: int = _setting(8080, "port to listen on; 0 takes a free one", _PORT)
    data_dir: str = _setting(
        "fastbandit-data",
        "folder of log, snapshots and keys; relative to the working directory",
        _NOT_EMPTY,
    )
    tls_cert: str = _setting("", "file of the TLS certificate (PEM, the whole chain)")
    tls_key: str = _setting("", "file of the certificate's private key (PEM)")
    allow_plain_http: bool = _setting(
        False, "serve other machines without TLS, as behind a proxy that has it"
    )
    max_body_bytes: int = _setting(4_194_304, "largest request that is read", _AT_LEAST_1)
    max_waiting: int = _setting(
        256, "requests that may be under way; further selects get 503", _AT_LEAST_1
    )
    log_level: str = _setting(
        "info", "debug, info, warning or error", _one_of("debug", "info", "warning", "error")
    )
    console: bool = _setting(True, "serve the web page")
    keys_file: str = _setting("", "file of the keys, which deciders may share; else in data_dir")

    def __post_init__(self) -> None:
        _check(self)
        if bool(self.tls_cert) != bool(self.tls_key):
            raise SettingError(
                f"TLS needs both server.tls_cert and server.tls_key: got {self.tls_cert!r} and "
                f"{self.tls_key!r}. Set the other too, or neither."
            )
        if not (self.is_loopback or self.tls_cert or self.allow_plain_http):
            raise SettingError(
                f"A service that other machines reach needs TLS: got server.host = "
                f"{self.host!r} without it. Set server.tls_cert and server.tls_key; or, behind "
                f"a proxy that has TLS, server.allow_plain_http = true."
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a name
            return self.host == "localhost"


@dataclass(frozen=True)
class ContextConfig:
    """What is known when an arm is chosen."""

    features: int = _setting(
        0, "how many numbers a context has; needed unless names are given", _FEATURES, is_asked=True
    )
    names: tuple[str, ...] = _setting((), "their names; a context may then be an object", _DISTINCT)

    def __post_init__(self) -> None:
        _check(self)
        if self.names and self.features not in (0, len(self.names)):
            raise SettingError(
                f"Each feature of a context needs one name: got context.features = "
                f"{self.features} and {len(self.names)} context.names. Leave out features, or "
                f"correct the names."
            )

    @property
    def dim(self) -> int:
        """How many numbers a context has; raises where nothing says so."""
        if not (self.names or self.features):
            raise SettingError(
                "The service needs to know how many numbers a context has: got neither "
                "context.features nor context.names. Set one of them."
            )
        return len(self.names) or self.features


@dataclass(frozen=True)
class ArmsConfig:
    """The arms that a new service starts with."""

    file: str = _setting(
        "",
        "first catalogue: .csv, .parquet, .npy, .json; or PUT the arms later",
        _ARMS_FILE,
        is_asked=True,
    )
    id: str = _setting("id", "column of the arms' ids", _NOT_EMPTY)
    columns: tuple[str, ...] = _setting(
        (), "columns for predicates; other columns of numbers are features", _DISTINCT
    )

    def __post_init__(self) -> None:
        _check(self)
        if self.id in self.columns:
            raise SettingError(
                f"The column of the ids needs to stand apart: got arms.id = {self.id!r}, also "
                f"in arms.columns. Leave it out there."
            )


@dataclass(frozen=True)
class RewardConfig:
    """What counts as the reward of a decision."""

    kind: str = _setting(
        "binary", "binary (0 and 1) or real", _one_of("binary", "real"), is_asked=True
    )
    wait_seconds: float = _setting(
        600.0,
        "how long a reward may take; later ones are not learned from",
        _SECONDS,
        is_asked=True,
    )
    default: float = _setting(0.0, "reward of an arm for which none came in time")
    combine: str = _setting(
        "first", "where several come: first, or sum (real only)", _one_of("first", "sum")
    )

    def __post_init__(self) -> None:
        _check(self)
        if self.kind != "binary":
            return
        if self.default not in (0, 1):
            raise SettingError(
                f"Binary rewards need to be 0 or 1: got reward.default = {self.default!r}. Use "
                f"0 or 1, or set reward.kind = 'real'."
            )
        if self.combine == "sum":
            raise SettingError(
                "Rewards that add up need to be real numbers: got reward.combine = 'sum' with "
                "reward.kind = 'binary'. Set reward.kind = 'real', or combine = 'first'."
            )


@dataclass(frozen=True)
class SelectConfig:
    """How arms are chosen."""

    exploration: str = _setting("ts", "ts (Thompson sampling) or ucb", _one_of("ts", "ucb"))
    search: str = _setting(
        "generator",
        "generator, ascent, exhaustive, or auto: by the arms",
        _one_of("generator", "ascent", "exhaustive", "auto"),
    )
    preset: str = _setting(
        "default",
        "default, paper, paper-scaled, or a TOML file of settings",
        _one_of("default", "paper", "paper-scaled", or_file=".toml"),
    )
    seed: int = _setting(0, "fixes everything random", _AT_LEAST_0)
    epsilon: float = _setting(0.0, "share of decisions that take any eligible arm", _SHARE)
    propensity_draws: int = _setting(
        200, "draws that tell how likely an arm was, where asked", _AT_LEAST_1
    )

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class LearnConfig:
    """When the service learns, and what a new version must pass."""

    enabled: bool = _setting(True, "learn in a process beside the service")
    fresh: int = _setting(500, "new rewards after which to learn", _AT_LEAST_1)
    growth: float = _setting(
        0.1, "share of the rewards learned before that must be new, if that is more", _AT_LEAST_0
    )
    seconds: float = _setting(60.0, "learn after so long, if any reward is new", _SECONDS)
    delta_seconds: float = _setting(
        1.0, "let arms' own constants follow rewards so often; 0 for never", _PAUSE
    )
    held_out: float = _setting(0.1, "share of the new rewards kept to check a new version", _PART)
    min_quality: float = _setting(0.9, "least argmax quality q of a new version", _SHARE)
    min_recall: float = _setting(0.9, "least recall of its index", _SHARE)
    keep: int = _setting(5, "versions that are kept", _AT_LEAST_1)
    audited: int = _setting(64, "contexts on which q is measured", _AT_LEAST_1)

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class ShadowConfig:
    """Whether a baseline decides, and the bandit only learns and is compared with it."""

    baseline: str = _setting(
        "", "decides until promoted: request (who asks), random, or empty for none", _BASELINE
    )

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class LogConfig:
    """Where events are kept: in the data folder, or in a database that services share."""

    url: str = _setting("", "URL of PostgreSQL; empty for a file in the data folder", _LOG_URL)
    spool_events: int = _setting(
        100_000, "decisions kept on this machine while the database is away", _AT_LEAST_0
    )

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class SnapshotsConfig:
    """Where versions of the bandit are kept for all who share the log."""

    url: str = _setting(
        "", "folder or URL that all reach, such as s3://bucket/folder; needs log.url"
    )

    def __post_init__(self) -> None:
        _check(self)


SECTIONS: dict[str, type[Any]] = {
    "server": ServerConfig,
    "context": ContextConfig,
    "arms": ArmsConfig,
    "reward": RewardConfig,
    "select": SelectConfig,
    "learn": LearnConfig,
    "shadow": ShadowConfig,
    "log": LogConfig,
    "snapshots": SnapshotsConfig,
}


@dataclass(frozen=True)
class Config:
    """All settings of the service, and where each came from ("server.port" -> "default")."""

    server: ServerConfig = field(default_factory=ServerConfig)
    context: ContextConfig = field(default_factory=ContextConfig)
    arms: ArmsConfig = field(default_factory=ArmsConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    learn: LearnConfig = field(default_factory=LearnConfig)
    shadow: ShadowConfig = field(default_factory=ShadowConfig)
    log: LogConfig = field(default_factory=LogConfig)
    snapshots: SnapshotsConfig = field(default_factory=SnapshotsConfig)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if bool(self.log.url) != bool(self.snapshots.url):
            raise SettingError(
                f"A shared log needs shared snapshots: got log.url = "
                f"{hide_password(self.log.url)!r} and snapshots.url = "
                f"{hide_password(self.snapshots.url)!r}. Set both, or neither."
            )


# -- what there is to set


@dataclass(frozen=True)
class Setting:
    """One key of a section: its type, default, meaning and need."""

    section: str
    key: str
    kind: Any
    default: Any
    meaning: str
    need: Need
    is_asked: bool

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"{_PREFIX}{self.section}_{self.key}".upper()


def settings_of(section: str) -> Iterator[Setting]:
    """Give the settings of a section in their order."""
    kinds = get_type_hints(SECTIONS[section])
    for own in fields(SECTIONS[section]):
        yield Setting(section, own.name, kinds[own.name], own.default, **own.metadata)


def all_settings() -> Iterator[Setting]:
    """Give every setting in the order of the sections."""
    for section in SECTIONS:
        yield from settings_of(section)


def written(value: Any) -> str:
    """Word a value as TOML has it."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


# -- reading


def find_config(path: Path | None = None) -> Path | None:
    """Give the file that was named, else fastbandit.toml where the working directory has it."""
    if path is None and Path(CONFIG_FILE).exists():
        return Path(CONFIG_FILE)
    return path


def read_config(
    path: Path | None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Read all settings, or say which cannot be used, why, and where it came from.

    `environ` is the environment of this process unless given. `overrides` come from the
    command line, such as {"server.port": 8081}; those that are None count as not given.
    """
    known = {setting.name: setting for setting in all_settings()}
    values = {name: setting.default for name, setting in known.items()}
    sources = dict.fromkeys(known, "default")
    found = [*_from_file(path)] if path is not None else []
    found += _from_environment(os.environ if environ is None else environ)
    found += _from_command_line(overrides or {})
    for name, value, source in found:
        values[name] = check_value(known[name], value, source=source)
        sources[name] = source
    made = {
        section: kind(**{own.key: values[own.name] for own in settings_of(section)})
        for section, kind in SECTIONS.items()
    }
    return Config(**made, sources=sources)


def _from_file(path: Path) -> Iterator[tuple[str, Any, str]]:
    """Give the name, value and source of each setting in a file."""
    for section, table in _read_toml(path).items():
        known_name(f"section in {path}", section, tuple(SECTIONS))
        if not isinstance(table, dict):
            raise SettingError(
                f"{path} needs [{section}] to be a section: got {section} = {table!r}. Write its "
                f"keys below a line [{section}]."
            )
        keys = tuple(setting.key for setting in settings_of(section))
        for key, value in table.items():
            known_name(f"key of [{section}] in {path}", key, keys)
            yield f"{section}.{key}", value, f"file {path}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingError(
            f"A config file needs to exist: found none at {path}. Run: fastbandit init {path}"
        ) from error
    except (ValueError, RecursionError, OSError) as error:
        raise SettingError(
            f"The config file {path} needs to be TOML: got {error}. Correct that place."
        ) from error


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """Give the settings in variables that begin with FASTBANDIT_ and a section."""
    for section in SECTIONS:
        known = {setting.variable: setting for setting in settings_of(section)}
        for variable in sorted(environ):
            if variable.startswith(f"{_PREFIX}{section}".upper()):
                known_name("environment variable", variable, tuple(known))
                own, text = known[variable], environ[variable]
                yield own.name, _parsed(own.kind, text), f"environment {variable}"


def _parsed(kind: Any, text: str) -> Any:
    """Turn text into a value of a kind; text that cannot is left for the check to refuse."""
    try:
        if kind is bool:
            return {"true": True, "false": False}.get(text.strip().lower(), text)
        if kind in (int, float):
            return kind(text)
        if kind is not str:
            parts = [part.strip() for part in text.split(",")]
            return json.loads(text) if text.lstrip().startswith("[") else [*filter(None, parts)]
    except ValueError:
        pass
    return text


def _from_command_line(overrides: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for name, value in overrides.items():
        known_name("setting", name, tuple(setting.name for setting in all_settings()))
        if value is not None:
            yield name, str(value) if isinstance(value, Path) else value, "command line"


# -- checks


def check_value(setting: Setting, value: Any, *, source: str = "code") -> Any:
    """Give a value as its setting takes it, or raise."""
    fitted = _fitted(setting.kind, value)
    if fitted is not None and setting.need.holds(fitted):
        return fitted
    if fitted is not None and setting.need.names:
        try:
            known_name(f"setting {setting.name}", value, setting.need.names)
        except SettingError as error:
            raise SettingError(f"{error} It came from {source}.") from None
    needed = ", ".join(filter(None, (_KINDS[setting.kind], setting.need.text)))
    got = hide_password(repr(value))
    raise SettingError(
        f"The setting {setting.name} needs {needed}: got {got} from {source}. Correct it there."
    )


def _fitted(kind: Any, value: Any) -> Any:
    """Give a value as a type takes it, or None."""
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and abs(value) < _HUGE else None
    if kind is str:
        return value if isinstance(value, str) and value.isprintable() else None
    if kind in (bool, int):
        return value if type(value) is kind and abs(value) < 2**63 else None
    is_list = isinstance(value, list | tuple) and all(_fitted(str, v) is not None for v in value)
    return tuple(value) if is_list else None


def _check(section: Any) -> None:
    """Check each value of a section by itself."""
    name = next(name for name, kind in SECTIONS.items() if kind is type(section))
    for setting in settings_of(name):
        check_value(setting, getattr(section, setting.key))
