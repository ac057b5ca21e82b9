"""Vowpal Wabbit's command line as settings of a service: what each flag becomes, or why nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastbandit.errors import SettingError
from fastbandit.settings.durations import seconds_of

_NUMBER = re.compile(r"-?\.?\d")
_SHORT = {
    "-q": "--quadratic",
    "-b": "--bit_precision",
    "-l": "--learning_rate",
    "-d": "--data",
    "-f": "--final_regressor",
    "-i": "--initial_regressor",
    "-p": "--predictions",
    "-r": "--raw_predictions",
    "-c": "--cache",
    "-k": "--kill_cache",
    "-t": "--testonly",
    "-P": "--progress",
}
_DRAWS = "explored by draws from the posterior"
_PRODUCTS = "the reward model learns products of features of contexts and arms by itself"
_OPTIMISER = "the reward model is trained anew at each update, by its own optimiser"
_UNSURE = "how unsure the model is says how widely it explores"
_FILES = "what is read and written is named by this command"
_SHAPE = "what is read here: actions with features in each request"

_EXPLORATIONS = {
    **dict.fromkeys(("--squarecb", "--bag", "--cover", "--softmax", "--rnd", "--regcb"), "ts"),
    "--regcbopt": "ucb",
}
_WITHOUT = {
    **dict.fromkeys(("--cb_explore_adf", "--cb_adf", "--dsjson", "--json"), _SHAPE),
    **dict.fromkeys(("--quadratic", "--cubic", "--interactions"), _PRODUCTS),
    **dict.fromkeys(
        (
            *("--learning_rate", "--power_t", "--initial_t", "--decay_learning_rate", "--passes"),
            *("--l1", "--l2", "--adaptive", "--normalized", "--invariant", "--sgd", "--coin"),
            *("--cb_type", "--loss_function", "--bfgs", "--ftrl", "--adax", "--link"),
        ),
        _OPTIMISER,
    ),
    **dict.fromkeys(
        (
            *("--gamma_scale", "--gamma_exponent", "--mellowness", "--psi", "--nounif"),
            *("--lambda", "--cb_min_cost", "--cb_max_cost", "--first_only", "--greedify"),
            *("--elim", "--rnd_alpha", "--rnd_invlambda"),
        ),
        _UNSURE,
    ),
    **dict.fromkeys(
        (
            *("--data", "--final_regressor", "--initial_regressor", "--predictions", "--cache"),
            *("--raw_predictions", "--kill_cache", "--testonly", "--progress", "--quiet"),
            *("--save_resume", "--preserve_performance_counters", "--cache_file", "--compressed"),
            *("--id", "--audit", "--invert_hash", "--readable_model"),
        ),
        _FILES,
    ),
    "--bit_precision": "features have slots of their own, and are hashed once these are taken",
    "--hash": "features have slots of their own, and are hashed once these are taken",
    "--first": "before the first update every arm is equally likely",
    "--constant": "the reward model has a constant",
    "--noconstant": "the reward model has a constant",
}
_UNKNOWN = "not known here"


@dataclass(frozen=True)
class Translated:
    """A flag with its value as it came, the setting that it becomes if any, and why.

    What the log itself says has no flag.
    """

    flag: str
    value: str
    setting: str = ""
    becomes: Any = None
    why: str = ""

    def __str__(self) -> str:
        came = f"{self.flag} {self.value}".strip()
        if not self.flag:
            return f"{self.setting} = {self.becomes}, as the log has it: {self.why}"
        if self.setting:
            return f"{came} becomes {self.setting} = {self.becomes}: {self.why}"
        return f"{came} becomes nothing: {self.why}"


@dataclass(frozen=True)
class Arguments:
    """All flags of a command line, translated.

    `ignored` are first letters of namespaces that are not learned from; `retained`, where there
    are some, are those of all others.
    """

    flags: tuple[Translated, ...] = ()
    ignored: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that flags became, the last where several say one."""
        return {one.setting: one.becomes for one in self.flags if "." in one.setting}

    def learns_from(self, namespace: str) -> bool:
        """Return whether a namespace is learned from."""
        first = namespace[:1] or " "
        return first not in self.ignored and (not self.retained or first in self.retained)


def read_arguments(text: str) -> Arguments:
    """Translate a command line such as `--cb_explore_adf --epsilon 0.2 -q UA`."""
    found = list(_flags(text))
    translated = tuple(_translated(flag, value) for flag, value in found)
    return Arguments(
        translated,
        ignored=frozenset(value[:1] for flag, value in found if flag == "--ignore"),
        retained=frozenset(value[:1] for flag, value in found if flag == "--keep"),
    )


def _flags(text: str) -> Iterator[tuple[str, str]]:
    """Yield flags by their long names, each with its value, and names of files by themselves."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SettingError(
            f"A command line needs quotes in pairs: got {text[:60]!r} ({error}). Correct it."
        ) from error
    if words and not words[0].startswith("-"):  # vw itself
        words = words[1:]
    while words:
        flag, value = _parted(words.pop(0))
        while _is_flag(flag) and not value and words and not _is_flag(words[0]):
            value = words.pop(0)
        yield flag, value


def _parted(word: str) -> tuple[str, str]:
    """Return a flag and what follows it at once; another word is the name of a file."""
    if not _is_flag(word):
        return word, ""
    if word.startswith("--"):
        flag, _, value = word.partition("=")
        return flag, value
    return _SHORT.get(word[:2], word[:2]), word[2:].removeprefix("=")


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


def _translated(flag: str, value: str) -> Translated:
    if flag in _EXPLORATIONS:
        name = _EXPLORATIONS[flag]
        why = _DRAWS if name == "ts" else "explored by upper bounds of the reward"
        return Translated(flag, value, "select.exploration", name, why)
    if flag == "--epsilon":
        share = _number(flag, value, most=1.0)
        return Translated(flag, value, "select.epsilon", share, "mixed with uniform choices")
    if flag == "--random_seed":
        return Translated(flag, value, "select.seed", int(_number(flag, value)), "the same")
    if flag in ("--ignore", "--keep"):
        why = "namespaces are learned from by their first letters"
        return Translated(flag, value, "the schemas", f"{flag[2:]} {value}", why)
    why = _WITHOUT.get(flag, _UNKNOWN) if _is_flag(flag) else _FILES
    return Translated(flag, value, why=why)


def _number(flag: str, value: str, *, most: float = 2.0**63) -> float:
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise SettingError(
            f"The flag {flag} needs a number from 0 to {most:g}: got {value!r}. Correct the "
            f"command line."
        )
    return found


def of_configuration(given: Mapping[str, Any]) -> Arguments:
    """Translate the configuration of a Personalizer resource, as its API answers it."""
    arguments = given.get("arguments")
    before = read_arguments(arguments) if isinstance(arguments, str) else Arguments()
    found = [_of_field(name, value) for name, value in given.items() if name != "arguments"]
    return Arguments((*before.flags, *found), before.ignored, before.retained)


def _of_field(name: str, value: Any) -> Translated:
    shown = str(value)
    if name == "rewardWaitTime":
        seconds = _seconds(shown)
        return Translated(name, shown, "reward.wait_seconds", seconds, "the same")
    if name == "defaultReward":
        return Translated(name, shown, "reward.default", _number_of(name, value), "the same")
    if name == "explorationPercentage":
        share = _number_of(name, value, is_share=True)
        return Translated(name, shown, "select.epsilon", share, "mixed with uniform choices")
    if name == "rewardAggregation":
        combine = "sum" if shown.lower() == "sum" else "first"
        return Translated(name, shown, "reward.combine", combine, "the same")
    if name == "modelExportFrequency":
        return Translated(name, shown, "learn.seconds", _seconds(shown), "versions come so often")
    if name == "logRetentionDays":
        days = max(0, int(_number_of(name, value)))
        return Translated(name, shown, "log.retain_days", days, "the same; 0 for ever")
    if name == "learningMode" and shown.lower() in ("apprentice", "loggingonly"):
        why = "the caller's first action decides until promoted"
        return Translated(name, shown, "shadow.baseline", "request", why)
    return Translated(name, shown, why=_UNKNOWN)


def _number_of(name: str, value: Any, *, is_share: bool = False) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and (not is_share or 0 <= value <= 1):
        return float(value)
    needed = "a number from 0 to 1" if is_share else "a number"
    raise SettingError(
        f"The configuration needs {needed} for {name}: got {value!r}. Correct the file."
    )


def _seconds(text: str) -> float:
    """Return the seconds of a duration such as PT10M."""
    found = seconds_of(text)
    if found is None:
        raise SettingError(
            f"A duration needs to be as in ISO 8601, such as PT10M: got {text!r}. Correct the file."
        )
    return found
