"""Open Bandit Dataset, small version: logged recommendations of a fashion shop.

Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline" (NeurIPS 2021). A
context is what is known of the user; the position of a recommendation on the page (1 to 3) is
no property of the user and is left out.
"""

from __future__ import annotations

from pathlib import Path

from fastbandit.declaration import known_name
from fastbandit.evaluation.open_bandit import read_files
from fastbandit.features.kinds import Dense
from fastbandit.progress import progress_bar
from fastbandit.types import Inputs
from lab.experiments.datasets.files import find
from lab.experiments.environment import Tabled
from lab.experiments.logged import LoggedData, fit_simulator

CAMPAIGNS = ("all", "men", "women")
POLICIES = ("random", "bts")
MODES = ("simulator", "replay")

FOLDERS = ("openbandit/obd", "obd", "openbandit", "open_bandit_dataset")


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    campaign: str = "all",
    policy: str = "random",
    mode: str = "simulator",
) -> Tabled | LoggedData:
    """Make a simulator fitted to a log; with mode "replay" give the log itself, for `replay`."""
    known_name("mode", mode, MODES)
    log = load_log(data=data, campaign=campaign, policy=policy, name=name, seed=seed)
    if mode == "replay":
        return log
    with progress_bar("Open Bandit") as progress:
        return fit_simulator(log, progress=progress)


def load_log(
    *,
    data: Path | None,
    campaign: str = "all",
    policy: str = "random",
    name: str = "openbandit",
    seed: int = 0,
) -> LoggedData:
    """Read the log of one campaign and one logging policy."""
    known_name("campaign", campaign, CAMPAIGNS)
    known_name("logging policy", policy, POLICIES)
    within = f"{policy}/{campaign}"
    log = find(name, [f"{folder}/{within}/{campaign}.csv" for folder in FOLDERS], data=data)
    read = read_files(log)
    return LoggedData(
        name=name,
        context=Dense(read.users.shape[1]),
        contexts=Inputs(dense=read.users),
        size=len(read.items),
        chosen=read.chosen,
        rewards=read.clicks,
        propensities=read.propensities,
        arms=read.items,
        seed=seed,
        notes=(
            f"campaign {campaign}, logged by {policy}; {int(read.clicks.sum())} clicks in "
            f"{len(read.clicks):,} rounds",
            "the position on the page (1 to 3) is left out of the context",
        ),
    )
