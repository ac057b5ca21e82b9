"""The settings of the decision service: what each is, its default and its range.

`fastbandit.settings.service_files` reads them from the command line, the environment and TOML.
Files, docs and checks follow the fields below.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, get_type_hints

from fastbandit.declaration import info_of, part, range_of
from fastbandit.errors import SettingError
from fastbandit.features.schema import Schema
from fastbandit.settings.limits import LimitsConfig
from fastbandit.settings.passwords import hide_password
from fastbandit.settings.personalizer import PersonalizerConfig
from fastbandit.settings.ranges import (
    ARMS_FILE,
    BASELINE,
    DISTINCT,
    FEATURES,
    FROM_0,
    FROM_1,
    LOG_URL,
    NOT_EMPTY,
    PART,
    PAUSE,
    PORT,
    PRESET,
    SCHEMA_FILE,
    SECONDS,
    SHARE,
    entry,
    one_of,
    part_name,
)
from fastbandit.settings.rewards import RewardConfig

_PREFIX = "FASTBANDIT_"


# -- sections


@part("service", name="server")
class ServerConfig:
    """Where the service listens, and what it stores."""

    host: str = entry("127.0.0.1", "address to listen on", NOT_EMPTY)
    port: int = entry(8080, "port to listen on; 0 takes a free one", PORT)
    data_dir: str = entry(
        "fastbandit-data",
        "folder of log, snapshots and keys; relative to the working directory",
        NOT_EMPTY,
    )
    tls_cert: str = entry("", "file of the TLS certificate (PEM, the whole chain)")
    tls_key: str = entry("", "file of the certificate's private key (PEM)")
    allow_plain_http: bool = entry(
        False, "serve other machines without TLS, as behind a proxy that has it"
    )
    workers: int = entry(1, "processes that decide, all on the log of the data folder", FROM_1)
    max_body_bytes: int = entry(4194304, "largest request that is read", FROM_1)
    max_waiting: int = entry(
        256,
        "requests that may be under way; further selects wait for 70 ms at most, then get 503",
        FROM_1,
    )
    log_level: str = entry(
        "info", "debug, info, warning or error", one_of("debug", "info", "warning", "error")
    )
    console: bool = entry(True, "serve the web page")
    keys_file: str = entry("", "file of the keys, which deciders may share; else in data_dir")

    def __post_init__(self) -> None:
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


@part("service", name="context")
class ContextConfig:
    """What is known when an arm is chosen."""

    features: int = entry(
        0,
        "how many numbers a context has; needed without names and schema",
        FEATURES,
        is_asked=True,
    )
    names: tuple[str, ...] = entry((), "their names; a context may then be an object", DISTINCT)
    schema: str = entry(
        "",
        "file of a schema (.json, .toml), beside the settings: contexts are then named values",
        SCHEMA_FILE,
    )
    any_names: bool = entry(
        False, "take contexts of any names, and learn to read them; in place of a schema"
    )

    def __post_init__(self) -> None:
        if self.any_names and (self.schema or self.names or self.features):
            raise SettingError(
                "An open context needs nothing else: got context.any_names = true beside a schema, "
                "names or features. Leave these out; a schema may have a mapping that takes_others."
            )
        if self.schema and (self.names or self.features):
            raise SettingError(
                f"A schema says all there is to say of contexts: got context.schema = "
                f"{self.schema!r} beside context.{'names' if self.names else 'features'}. Leave "
                f"out one of the two."
            )
        if self.names and self.features not in (0, len(self.names)):
            raise SettingError(
                f"Each feature of a context needs one name: got context.features = "
                f"{self.features} and {len(self.names)} context.names. Leave out features, or "
                f"correct the names."
            )

    @property
    def dim(self) -> int:
        """How many numbers a context has; raises where nothing says so."""
        schema = self.read_schema()
        if schema is not None:
            return schema.dim
        if not (self.names or self.features):
            raise SettingError(
                "The service needs to know what a context has: got none of context.schema, "
                "context.features, context.names and context.any_names. Set one of them."
            )
        return len(self.names) or self.features

    def read_schema(self) -> Schema | None:
        """Read the file of the schema, where there is one, or return an open one."""
        if self.any_names:
            return Schema.open()
        return Schema.load(self.schema) if self.schema else None


@part("service", name="arms")
class ArmsConfig:
    """The arms that a new service starts with."""

    file: str = entry(
        "",
        "first catalogue, a table (.csv, .parquet, .json) or .npy; or PUT the arms later",
        ARMS_FILE,
        is_asked=True,
    )
    id: str = entry("id", "column of the arms' ids", NOT_EMPTY)
    columns: tuple[str, ...] = entry(
        (), "columns for predicates alone; all others are features", DISTINCT
    )
    schema: str = entry(
        "",
        "file of a schema (.json, .toml) of the first arms, beside the settings; else inferred",
        SCHEMA_FILE,
    )
    any_names: bool = entry(
        False, "start without arms: requests bring them, with features of any names"
    )
    title: str = entry(
        "", "column that people read beside an id; else one called title, name or label"
    )

    def __post_init__(self) -> None:
        if self.id in self.columns:
            raise SettingError(
                f"The column of the ids needs to stand apart: got arms.id = {self.id!r}, also "
                f"in arms.columns. Leave it out there."
            )

    def read_schema(self) -> Schema | None:
        """Read the file of the schema, where there is one; one that is open where arms are."""
        if not self.schema:
            return Schema.open() if self.any_names else None
        found = Schema.load(self.schema)
        if found.drops:
            raise SettingError(
                f"Values of arms stay as long as their arms: got drop_after_days for the column "
                f"{min(found.drops)!r} of arms.schema. Leave it out, and upsert the arm without "
                f"the value when it is time."
            )
        return found


@part("service", name="select")
class SelectConfig:
    """How arms are chosen."""

    exploration: str = entry(
        "ts",
        "ts (Thompson sampling), ucb, or greedy, which does not explore",
        part_name("exploration"),
    )
    search: str = entry(
        "generator",
        "generator, ascent, exhaustive, or auto: by the arms",
        part_name("search", "auto"),
    )
    posterior: str = entry(
        "auto",
        "one of the posteriors, auto or neural: by the arms",
        part_name("posterior", "auto", "neural"),
    )
    part_modules: tuple[str, ...] = entry(
        (), "modules from which parts may be named, as my_module:MySearch", DISTINCT
    )
    preset: str = entry("default", "default, or a TOML file of settings", PRESET)
    seed: int = entry(0, "fixes everything random", FROM_0)
    epsilon: float = entry(
        0.0, "share of decisions that take any eligible arm, each as likely (uniform mixing)", SHARE
    )
    propensity_draws: int = entry(
        200, "draws by which propensities are estimated, where asked", FROM_1
    )


@part("service", name="learn")
class LearnConfig:
    """When the service learns, and what a new version must pass."""

    enabled: bool = entry(True, "learn in a process beside the service")
    fresh: int = entry(500, "new rewards after which to learn", FROM_1)
    growth: float = entry(
        0.1, "share of the rewards learned before that must be new, if that is more", FROM_0
    )
    seconds: float = entry(60.0, "learn after so long, if any reward is new", SECONDS)
    delta_seconds: float = entry(
        1.0, "let arms' own constants follow rewards so often; 0 for never", PAUSE
    )
    held_out: float = entry(0.1, "share of the new rewards held out to check a new version", PART)
    min_quality: float = entry(0.9, "least argmax quality q of a new version", SHARE)
    keep: int = entry(5, "versions that are retained", FROM_1)
    audited: int = entry(64, "contexts on which q is measured", FROM_1)


@part("service", name="shadow")
class ShadowConfig:
    """Whether a baseline decides, and the bandit only learns and is compared with it."""

    baseline: str = entry(
        "", "decides until promoted: request (who asks), random, or empty for none", BASELINE
    )


@part("service", name="log")
class LogConfig:
    """Where events are stored: in the data folder, or in a database that services share."""

    url: str = entry("", "URL of PostgreSQL; empty for a file in the data folder", LOG_URL)
    spool_events: int = entry(
        100000, "decisions stored on this machine while the database is unavailable", FROM_0
    )
    retain_days: int = entry(0, "days that events stay in the log; 0 for ever", FROM_0)
    archive: bool = entry(
        True, "archive what leaves the log, in Parquet: learning goes on with it; else it is lost"
    )


@part("service", name="snapshots")
class SnapshotsConfig:
    """Where versions of the bandit are stored for all who share the log."""

    url: str = entry("", "folder or URL that all reach, such as s3://bucket/folder; needs log.url")
    signing_key_file: str = entry(
        "", "file of keys, one a line: versions are signed by the first, and need to be by one"
    )


@dataclass(frozen=True)
class Config:
    """All settings of the service, and where each came from ("server.port" -> "default")."""

    server: ServerConfig = field(default_factory=ServerConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    context: ContextConfig = field(default_factory=ContextConfig)
    arms: ArmsConfig = field(default_factory=ArmsConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    learn: LearnConfig = field(default_factory=LearnConfig)
    shadow: ShadowConfig = field(default_factory=ShadowConfig)
    log: LogConfig = field(default_factory=LogConfig)
    snapshots: SnapshotsConfig = field(default_factory=SnapshotsConfig)
    personalizer: PersonalizerConfig = field(default_factory=PersonalizerConfig)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.log.url and self.server.workers > 1:
            raise SettingError(
                f"Several workers need the log of the data folder: got server.workers = "
                f"{self.server.workers} with log.url. Start that many deciders, each with a data "
                f"folder of its own, or leave out log.url."
            )
        if bool(self.log.url) != bool(self.snapshots.url):
            raise SettingError(
                f"A shared log needs shared snapshots: got log.url = "
                f"{hide_password(self.log.url)!r} and snapshots.url = "
                f"{hide_password(self.snapshots.url)!r}. Set both, or neither."
            )


SECTIONS: dict[str, type[Any]] = {
    own.name: kind
    for own, kind in zip(fields(Config), get_type_hints(Config).values(), strict=True)
    if info_of(kind) is not None
}


@dataclass(frozen=True)
class Setting:
    """One key of a section: its type, default and range."""

    section: str
    own: Field[Any]
    kind: Any

    @property
    def key(self) -> str:
        return self.own.name

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def default(self) -> Any:
        return self.own.default

    @property
    def meaning(self) -> str:
        return range_of(self.own).text

    @property
    def is_asked(self) -> bool:
        return range_of(self.own).is_asked

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"{_PREFIX}{self.section}_{self.key}".upper()


def settings_of(section: str) -> Iterator[Setting]:
    """Return the settings of a section in their order."""
    kinds = get_type_hints(SECTIONS[section])
    for own in fields(SECTIONS[section]):
        yield Setting(section, own, kinds[own.name])


def all_settings() -> Iterator[Setting]:
    """Return every setting in the order of the sections."""
    for section in SECTIONS:
        yield from settings_of(section)
