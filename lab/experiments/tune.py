"""Tune settings in four stages, each from the best of the one before, with Optuna's TPE.

A journal keeps every trial. A trial's draws depend on its number alone, so tuning that was
interrupted goes on to the same end.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from fastbandit.errors import SettingError
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.settings.files import Sections, Value
from lab.experiments.datasets import load
from lab.experiments.environment import Environment
from lab.experiments.recipe import Preset, Recipe, recipe_for, write_recipe
from lab.experiments.tune_journal import (
    Journal,
    done_trials,
    drop_unfinished,
    plain,
    sampler_of,
)
from lab.experiments.tune_knobs import Knob, knobs_of
from lab.experiments.tune_stages import (
    STAGES,
    WORST,
    Bench,
    Measured,
    check_numbers,
    check_policy,
    mean_of,
    measure_of,
)

_FRESH = (1, 2)  # the splits that winners are judged on; trials see split 0 alone


@dataclass(frozen=True)
class Step:
    """What one stage changed, and what came of it on splits that its trials did not see."""

    stage: int
    trials: int
    changes: Sections
    was: Sections
    before: Measured
    after: Measured

    @property
    def is_accepted(self) -> bool:
        """Whether the best trial was better than what there was."""
        return bool(self.changes) and self.after.value > self.before.value

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {**asdict(self), "name": STAGES[self.stage], "is_accepted": self.is_accepted}


@dataclass(frozen=True)
class Tuned:
    """The settings found, stage by stage, and what the policy earns before and after.

    `settings` are the base's own where those earned more: then `is_better` is False.
    """

    base: Recipe
    settings: Recipe
    steps: tuple[Step, ...]
    before: Measured | None
    after: Measured | None
    is_finished: bool

    @property
    def is_better(self) -> bool:
        return self.settings != self.base

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "base": self.settings.base,
            "settings": dict(self.settings.sections),
            "is_better": self.is_better,
            "is_finished": self.is_finished,
            "steps": [step.to_json() for step in self.steps],
            "before": None if self.before is None else asdict(self.before),
            "after": None if self.after is None else asdict(self.after),
        }


def tune(
    environment: Environment,
    policy: str = "GANBandit TS",
    *,
    base: Preset = "default",
    stages: Sequence[int] = tuple(STAGES),
    trials: int = 20,
    rounds: int = 2_000,
    batch: int = 500,
    evaluations: int | None = None,
    seconds: float = math.inf,
    seed: int = 0,
    device: str = "cpu",
    journal: Path | None = None,
    about: str = "",
    progress: Progress = silent,
) -> Tuned:
    """Tune the settings of a policy, and keep what is better on splits that no trial saw.

    A search may take up to `evaluations` scores a decision (None: what the base takes, at
    least 128). After `seconds` no trial begins. `journal` is a file in which an interrupted
    tuning finds its trials again; `about` distinguishes environments of the same name.
    """
    check_policy(policy)
    check_numbers(stages, trials=trials, rounds=rounds, batch=batch)
    start = recipe_for(base)
    bench = Bench(
        environment,
        policy,
        rounds=rounds,
        batch=batch,
        evaluations=evaluations,
        seed=seed,
        device=device,
    )
    asked: list[Any] = [environment.name, environment.size, environment.seed, about, policy]
    asked += [rounds, batch, evaluations, seed, plain(start)]
    work = _Work(bench, start, Journal(journal, asked), time.monotonic() + seconds)
    steps: list[Step] = []
    order = sorted(set(stages))
    settings, total = start, len(order) * (trials + 1) + 1
    for number, stage in enumerate(order):
        shown = _shifted(progress, number * (trials + 1), total)
        step = work.stage(stage, settings, trials=trials, progress=shown)
        if step is None:
            continue
        steps.append(step)
        settings = settings.merged(step.changes) if step.is_accepted else settings
    progress(total - 1, total, "comparing the whole")
    is_finished = len(steps) == len(work.changed_knobs) and all(
        step.trials >= trials for step in steps
    )
    if settings == start:
        return Tuned(start, start, tuple(steps), None, None, is_finished)
    before, after = work.whole(start), work.whole(settings)
    found = settings if after.value >= before.value else start
    return Tuned(start, found, tuple(steps), before, after, is_finished)


@dataclass
class _Work:
    """One tuning under way."""

    bench: Bench
    base: Recipe
    journal: Journal
    deadline: float

    def __post_init__(self) -> None:
        self.changed_knobs: list[int] = []

    def stage(
        self, stage: int, settings: Recipe, *, trials: int, progress: Progress
    ) -> Step | None:
        """Make the trials of a stage that are not in the journal, and judge the best."""
        knobs = knobs_of(stage, self.bench.plan(settings))
        if not knobs:
            return None
        self.changed_knobs.append(stage)
        study = self.journal.study(f"stage {stage}", settings)
        known = study.user_attrs.get("step")
        if known is not None and known["trials"] >= trials:
            return _read_step(known)
        if self._is_late() and not done_trials(study):
            return None
        if stage >= 3:
            self.bench.allow(settings, self.base)
        drop_unfinished(study)
        while len(done_trials(study)) < trials and not self._is_late():
            progress(len(done_trials(study)), trials, f"{stage}: {STAGES[stage]}")
            self._trial(study, stage, settings, knobs)
        progress(trials, trials, f"{stage}: judging")
        return self._judged(study, stage, settings, is_whole=len(done_trials(study)) >= trials)

    def _trial(self, study: Any, stage: int, settings: Recipe, knobs: Sequence[Knob]) -> None:
        number = len(done_trials(study))
        study.sampler = sampler_of(self.bench.seed, stage, number)
        if number == 0:  # the first trial is where the stage stands already
            study.enqueue_trial({knob.name: knob.stored for knob in knobs})
        trial = study.ask()
        changed_knobs = [(knob, knob.suggested(trial)) for knob in knobs]
        changed = [(k, value) for k, value in changed_knobs if number and value != k.current]
        changes = _sections((knob, value) for knob, value in changed)
        trial.set_user_attr("changes", changes)
        trial.set_user_attr("was", _sections((knob, knob.current) for knob, _ in changed))
        study.tell(trial, self._measured(stage, settings.merged(changes), 0).value)

    def _judged(self, study: Any, stage: int, settings: Recipe, *, is_whole: bool) -> Step:
        best = study.best_trial
        changes, was = best.user_attrs["changes"], best.user_attrs["was"]
        before = mean_of([self._measured(stage, settings, split) for split in _FRESH])
        after = before
        if changes:
            changed_knobs = settings.merged(changes)
            after = mean_of([self._measured(stage, changed_knobs, split) for split in _FRESH])
        step = Step(stage, len(done_trials(study)), changes, was, before, after)
        if is_whole:
            study.set_user_attr("step", asdict(step))
        return step

    def _measured(self, stage: int, settings: Recipe, split: int) -> Measured:
        """Measure; what does not come to a number is worse than all that does."""
        import torch

        try:
            measured = measure_of(self.bench, stage)(settings, split)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            return Measured(WORST, "nothing", WORST)
        return measured if math.isfinite(measured.value) else replace(measured, value=WORST)

    def whole(self, settings: Recipe) -> Measured:
        """Play the policy itself with settings, on fresh splits, or recall what came of it."""
        study = self.journal.study("whole", settings)
        known = study.user_attrs.get("measured")
        if known is None:
            found = mean_of([self.bench.played(settings, split) for split in _FRESH])
            known = asdict(found)
            study.set_user_attr("measured", known)
        return Measured(**known)

    def _is_late(self) -> bool:
        return time.monotonic() > self.deadline


def _sections(changed_knobs: Iterable[tuple[Knob, Value]]) -> dict[str, dict[str, Any]]:
    """Return values by section and field, as JSON reads them back."""
    found: dict[str, dict[str, Any]] = {}
    for knob, value in changed_knobs:
        found.setdefault(knob.section, {})[knob.field] = json.loads(json.dumps(value))
    return found


def _read_step(known: Mapping[str, Any]) -> Step:
    before, after = Measured(**known["before"]), Measured(**known["after"])
    return Step(**{**known, "before": before, "after": after})


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, steps, doing: progress(before + done, total, doing)


# -- the command


@click.command("tune")
@click.argument("dataset")
@click.option("--options", "-O", multiple=True, metavar="K=V", help="Options of the dataset.")
@click.option("--policy", default="GANBandit TS", show_default=True)
@click.option("--base", default="default", show_default=True, help="A preset or a TOML file.")
@click.option("--stages", default="1,2,3,4", show_default=True, help="Comma-separated.")
@click.option("--trials", default=20, show_default=True, help="Trials of each stage.")
@click.option("--rounds", default=2_000, show_default=True, help="Decisions of each run.")
@click.option("--batch", default=500, show_default=True, help="Decisions between two updates.")
@click.option(
    "--evaluations",
    type=click.IntRange(1),
    help="Scores that a decision may take; without, as many as the base takes, at least 128.",
)
@click.option("--seconds", type=float, default=math.inf, help="Begin no trial after so long.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the dataset's files.")
@click.option("--seed", default=0, show_default=True)
@click.option("--device", default="cpu", show_default=True)
@click.option(
    "-o", "--out", default="tuned.toml", show_default=True, type=click.Path(path_type=Path)
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    help="Where trials are stored, to go on after an interruption; without, beside the output.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def tune_command(
    dataset: str,
    options: tuple[str, ...],
    policy: str,
    base: str,
    stages: str,
    trials: int,
    rounds: int,
    batch: int,
    evaluations: int | None,
    seconds: float,
    data: Path | None,
    seed: int,
    device: str,
    out: Path,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Tune a policy's settings on a dataset, and write them as TOML.

    Stages: 1 reward network, 2 uncertainty, 3 search, 4 index. The file is what
    the suites' `--presets` take, and over the defaults `Bandit(preset=...)`, too.
    """
    from fastbandit.cores import one_thread

    if not out.parent.is_dir():
        raise SettingError(
            f"The settings need a folder to be written to: {out.parent} is none. Make it first."
        )
    one_thread()
    environment = load(dataset, data=data, seed=seed, **_read_options(options))
    with progress_bar("Tuning") as progress:
        tuned = tune(
            environment,
            policy,
            base=base,
            stages=_read_stages(stages),
            trials=trials,
            rounds=rounds,
            batch=batch,
            evaluations=evaluations,
            seconds=seconds,
            seed=seed,
            device=device,
            journal=journal or out.with_suffix(".journal"),
            about=" ".join(sorted(options)),
            progress=progress,
        )
    write_recipe(out, tuned.settings, note=f"{dataset}, {policy}: {_outcome(tuned)}")
    if as_json:
        click.echo(json.dumps({**tuned.to_json(), "file": str(out)}, indent=1))
    else:
        _print(tuned, out)


def _read_options(options: Sequence[str]) -> dict[str, Any]:
    """Parse k=v into values: numbers, true and false where they read so, else text."""
    found: dict[str, Any] = {}
    for option in options:
        name, sign, text = option.partition("=")
        if not sign or not name.isidentifier():
            raise SettingError(
                f"An option of a dataset needs the form name=value: got {option!r}. Write "
                f"--options arms=1000, for example."
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _read_stages(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise SettingError(f"Stages need to be numbers like 1,2,3,4: got {text!r}.")
    return tuple(int(part) for part in parts)


def _outcome(tuned: Tuned) -> str:
    """Say in one line what came of it all."""
    if tuned.before is None or tuned.after is None:
        return "no stage found better settings: these are the base's"
    change = f"{tuned.before.text} before, {tuned.after.shown:.4f} after"
    if not tuned.is_better:
        return f"{change}, which is worse: these are the base's"
    return change


def _print(tuned: Tuned, out: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in ("stage", "trials", "changed", "before", "after"):
        table.add_column(heading)
    for step in tuned.steps:
        changed_knobs = [
            f"{field} {step.was[section][field]} → {value}"
            for section, part in step.changes.items()
            for field, value in part.items()
        ]
        changed = "\n".join(changed_knobs) if step.is_accepted else "nothing was better"
        name = f"{step.stage} {STAGES[step.stage]}"
        table.add_row(name, str(step.trials), changed, step.before.text, step.after.text)
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(f"The whole: {_outcome(tuned)}.")
    if not tuned.is_finished:
        console.print("The time was over before all trials; the same command goes on from here.")
    console.print(f"Written: {out}")
