"""Every system of the bake-off chooses and learns; peers learn what is plain to see."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from little_sets import ARMS, stripes

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, Ids
from fastbandit.types import Inputs
from lab.bakeoff.contextual_bandits import ContextualBandits
from lab.bakeoff.play import play
from lab.bakeoff.sets import Setting
from lab.bakeoff.systems import NAMES, OURS, SYSTEMS, System
from lab.bakeoff.vowpal_wabbit import VowpalWabbit
from lab.experiments.environment import Tabled

_LIBRARIES = {"contextualbandits": "contextualbandits", "Vowpal Wabbit": "vowpalwabbit"}


def need(family: str) -> None:
    """Skip where the library of a family is not installed."""
    library = _LIBRARIES.get(family)
    if library is not None and find_spec(library) is None:
        pytest.skip(f"needs {library}: pip install -e '.[peers]'")


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_system_plays(system: System) -> None:
    need(system.family)
    setting = Setting(stripes())

    played = play(setting, system.make(setting.environment, 0, 40), rounds=40, batch=20)

    assert len(played.rewards) == 40


@pytest.mark.parametrize(
    "system", [s for s in SYSTEMS if s.family in _LIBRARIES or "oint" in s.name],
    ids=lambda system: system.name,
)  # fmt: skip
def test_a_peer_learns_which_context_is_an_arms_own(system: System) -> None:
    need(system.family)
    setting = Setting(stripes(rounds=800))

    played = play(setting, system.make(setting.environment, 1, 800), rounds=800, batch=50)

    assert played.last_quarter > 1.8 / ARMS


@pytest.mark.parametrize(
    "system", [s for s in SYSTEMS if s.family != OURS], ids=lambda system: system.name
)
def test_a_seed_repeats_a_run(system: System) -> None:
    need(system.family)
    settings = [Setting(stripes(rounds=60)) for _ in range(2)]

    one, two = (play(w, system.make(w.environment, 2, 60), rounds=60, batch=20) for w in settings)

    np.testing.assert_array_equal(one.rewards, two.rewards)


def test_arms_with_features_and_contexts_that_are_ids_are_worded_for_vowpal_wabbit() -> None:
    need("Vowpal Wabbit")
    environment = Tabled(
        "few",
        Ids(3),
        Inputs(ids=np.arange(3)),
        np.eye(3, dtype=np.float32),
        arms=np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]], dtype=np.float32),
        visits=np.repeat(np.arange(3), 20),
    )

    agent = VowpalWabbit(environment, exploration="epsilon", seed=0)
    played = play(Setting(environment), agent, rounds=60, batch=10)

    assert played.decisions == 50


def test_linear_regressions_that_need_too_much_memory_are_refused() -> None:
    need("contextualbandits")
    environment = Tabled(
        "wide",
        Dense(3000),
        Inputs(dense=np.ones((2, 3000), dtype=np.float32)),
        np.ones((2, 200), dtype=np.float32),
    )
    agent = ContextualBandits(environment, explorer="BootstrappedTS", is_linear=True, seed=0)

    with pytest.raises(SettingError, match=r"at most 4 GiB.*200 arms, 3,000 columns.*67"):
        agent.update(contexts=environment.contexts(0, 2), arms=[0, 1], rewards=[0.0, 1.0])
