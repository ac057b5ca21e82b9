"""The configuration of a Personalizer: the settings of the service that may change while it runs.

What a client sets lies in a file of the data folder, in place of what the settings say: all workers
follow it, and it outlives a restart. No model is ever discarded for it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil, inf
from pathlib import Path
from typing import Any

import msgspec

from fastbandit.errors import DataError, SettingError
from fastbandit.files.atomic import mark_of, raising
from fastbandit.files.manifest import write_json
from fastbandit.serving.personalizer.errors import not_carried_over
from fastbandit.serving.personalizer.schemas import ServiceConfiguration
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.settings.durations import duration_of, seconds_of
from fastbandit.settings.service import Config
from fastbandit.storage.backups import PERSONALIZER_FILE
from fastbandit.storage.events import Who

_LOGGER = logging.getLogger("fastbandit.serving")
MODES: dict[str, Who] = {"Online": "bandit", "Apprentice": "baseline"}
_AGGREGATIONS = {"earliest": "first", "sum": "sum"}
_TERMS = (
    ("defaultReward", "default_reward"),
    ("rewardWaitTime", "reward_wait_time"),
    ("rewardAggregation", "reward_aggregation"),
)
_FOLLOW_SECONDS = 0.25


def configured(config: Config) -> Config:
    """Return settings with what a client of Personalizer set in their place, if any did."""
    if not config.personalizer.enabled:
        return config
    stored = read_stored(Path(config.server.data_dir))
    try:
        return config if stored is None else applied(config, stored)
    except Rejection as error:
        raise SettingError(
            f"What clients of Personalizer set needs to fit the settings: {PERSONALIZER_FILE} in "
            f"{config.server.data_dir} does not ({error}). Change the settings, or remove that "
            f"file to go by them."
        ) from error


def read_stored(folder: Path) -> ServiceConfiguration | None:
    """Return what a client set, None where none did."""
    path = folder / PERSONALIZER_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=ServiceConfiguration)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            f"What clients of Personalizer set needs to stand in a file that can be read: {path} "
            f"cannot ({error}). Restore it from a backup, or remove it to go by the settings."
        ) from error


def store(folder: Path, asked: ServiceConfiguration) -> ServiceConfiguration:
    """Write what a client set, whole or not at all; return it with the time of now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = msgspec.structs.replace(asked, last_configuration_edit_date=now)
    needs = f"A configuration needs a data folder that can be written to: {folder} cannot"
    with raising(DataError, needs, fix="Make room there."):
        write_json(folder / PERSONALIZER_FILE, msgspec.to_builtins(found))
    return found


def filled(asked: ServiceConfiguration, shown: ServiceConfiguration) -> ServiceConfiguration:
    """Return a configuration as it would be shown, with what is shown now where it says nothing."""
    said = {name: getattr(asked, name) for name in asked.__struct_fields__}
    said["log_mirror_sas_uri"] = None  # a secret, and of no use here
    said["reward_aggregation"] = asked.reward_aggregation.lower()
    for name in ("reward_wait_time", "model_export_frequency"):
        seconds = seconds_of(said[name])
        said[name] = said[name] if seconds in (None, inf) else duration_of(seconds)
    some = {name: value for name, value in said.items() if value is not None and value != ""}
    return msgspec.structs.replace(shown, **some)


def check_changed(asked: ServiceConfiguration, shown: ServiceConfiguration) -> None:
    """Reject what leaves the ranges of Personalizer; settings are wider, and what is shown may."""
    if asked.reward_wait_time != shown.reward_wait_time:
        _seconds("rewardWaitTime", asked.reward_wait_time, 5.0, 2 * 86_400.0)
    if asked.model_export_frequency != shown.model_export_frequency:
        _seconds("modelExportFrequency", asked.model_export_frequency, 1.0, 1e9)
    if asked.default_reward != shown.default_reward and not -1 <= asked.default_reward <= 1:
        raise _wrong("A reward is a number from -1 to 1.", "defaultReward", asked.default_reward)
    terms = [said for said, name in _TERMS if getattr(asked, name) != getattr(shown, name)]
    if terms and asked.learning_mode != shown.learning_mode:
        raise Rejection(
            400,
            "mode and terms",
            f"A change of learningMode needs to come alone: got {' and '.join(terms)}, too.",
            fix="Change the mode first, then the others; nothing was changed.",
            field="learningMode",
            value=asked.learning_mode,
        )
    _check_retention(asked, shown)


def _check_retention(asked: ServiceConfiguration, shown: ServiceConfiguration) -> None:
    """Reject days after which decisions would leave whose rewards are waited for."""
    days, wait = asked.log_retention_days or 0, asked.reward_wait_time
    least = ceil((seconds_of(wait) or 0.0) / 86_400) + 1
    is_same = (days, wait) == (shown.log_retention_days, shown.reward_wait_time)
    if not is_same and days != -1 and days < least:
        raise Rejection(
            400,
            "short retention",
            f"Logs stay for rewardWaitTime and a day, rounded up to {least} days, or for ever with "
            f"-1: got {days}.",
            fix="Correct it; nothing was changed.",
            field="logRetentionDays",
            value=days,
        )


def applied(config: Config, asked: ServiceConfiguration) -> Config:
    """Return settings with those of a configuration in their place, or reject it."""
    combine, days = _AGGREGATIONS.get(asked.reward_aggregation.lower()), asked.log_retention_days
    if combine is None or (combine == "sum" and config.reward.kind == "binary"):
        said = "Several rewards need to be aggregated as earliest, or as sum where they are real."
        raise _wrong(said, "rewardAggregation", asked.reward_aggregation)
    wait, pause = config.reward.wait_seconds, config.learn.seconds
    if asked.reward_wait_time != duration_of(wait):  # which may be less exact
        wait = _seconds("rewardWaitTime", asked.reward_wait_time)
    if asked.model_export_frequency != duration_of(pause):
        pause = _seconds("modelExportFrequency", asked.model_export_frequency)
    try:
        return replace(
            config,
            reward=replace(
                config.reward, wait_seconds=wait, default=asked.default_reward, combine=combine
            ),
            select=replace(config.select, epsilon=asked.exploration_percentage),
            learn=replace(config.learn, seconds=pause),
            log=config.log if days is None else replace(config.log, retain_days=max(0, days)),
        )
    except SettingError as error:
        raise _wrong(str(error), "defaultReward", asked.default_reward) from error


def check_carried_over(asked: ServiceConfiguration, *, decides: Who, is_shared: bool) -> None:
    """Reject what Personalizer did and this service does not; `decides` is who does now."""
    if asked.log_mirror_enabled:
        raise not_carried_over(
            "Logs are not mirrored to a storage account.",
            fix="Set logMirrorEnabled false; `fastbandit export --daily` writes a file a day.",
        )
    if asked.is_auto_optimization_enabled:
        raise not_carried_over(
            "Learning settings are not optimised by themselves.",
            fix="Compare them with `fastbandit evaluate`; set isAutoOptimizationEnabled false.",
        )
    if asked.learning_mode == "LoggingOnly":
        raise not_carried_over(
            "A service is in the mode Online or Apprentice, not LoggingOnly.",
            fix="Set learn.enabled = false to only log.",
        )
    if asked.learning_mode and asked.learning_mode not in MODES:
        said = "The mode needs to be Online or Apprentice."
        raise _wrong(said, "learningMode", asked.learning_mode)
    if is_shared and asked.learning_mode and MODES[asked.learning_mode] != decides:
        raise not_carried_over(
            "Where several deciders share a log, none of them changes the mode for all.",
            fix="Run `fastbandit promote`, with --back for Apprentice; leave out learningMode.",
        )


def shown(config: Config, *, decides: Who, edited: str) -> ServiceConfiguration:
    """Return the settings of a service as a configuration."""
    mode = next(name for name, who in MODES.items() if who == decides)
    return ServiceConfiguration(
        reward_wait_time=duration_of(config.reward.wait_seconds),
        default_reward=config.reward.default,
        reward_aggregation="sum" if config.reward.combine == "sum" else "earliest",
        exploration_percentage=config.select.epsilon,
        model_export_frequency=duration_of(config.learn.seconds),
        log_retention_days=config.log.retain_days or -1,
        learning_mode=mode,
        last_configuration_edit_date=edited,
        log_mirror_enabled=False,
        is_auto_optimization_enabled=False,
    )


class Stored:
    """Follows the file of what clients set: `newer` returns settings once it changed.

    What cannot be read, or does not fit the settings, changes nothing.
    """

    def __init__(self, config: Config) -> None:
        self._folder = Path(config.server.data_dir)
        self._seen, self._looked_at = mark_of(self._folder / PERSONALIZER_FILE), 0.0

    def newer(self, config: Config, *, is_now: bool = False) -> Config | None:
        """Return settings anew where the file changed since; it is looked at now and then."""
        now = time.monotonic()
        if not is_now and now - self._looked_at < _FOLLOW_SECONDS:
            return None
        self._looked_at, mark = now, mark_of(self._folder / PERSONALIZER_FILE)
        if mark == self._seen:
            return None
        self._seen = mark
        try:
            stored = read_stored(self._folder)
            return None if stored is None else applied(config, stored)
        except (DataError, Rejection) as error:
            reason = " ".join(str(error).split())
            _LOGGER.error("a configuration cannot be followed", extra={"reason": reason})
            return None


def _seconds(field: str, text: str, least: float = 0.0, most: float = 1e9) -> float:
    found = seconds_of(text)
    if found is None or not least <= found <= most:
        limits = f"{duration_of(least)} to {duration_of(most)}"
        said = f"{field} needs to be a duration of ISO 8601 from {limits}, such as PT10M."
        raise _wrong(said, field, text)
    return found


def _wrong(said: str, field: str, value: Any) -> Rejection:
    return wrong_field(said, fix="Correct it; nothing was changed.", field=field, value=value)
