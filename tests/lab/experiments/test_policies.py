"""Every policy plays by its name where it can, and says in a line where it cannot."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.bandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.features.rewards import RewardKind
from fastbandit.settings.files import Settings
from fastbandit.types import Inputs
from lab.experiments.continuum import Continuum
from lab.experiments.environment import Environment, Tabled
from lab.experiments.logged import LoggedData
from lab.experiments.policies import NAMES, NEURAL, NINE, agent_for
from lab.experiments.run import Run, run

pytestmark = pytest.mark.usefixtures("little_training")

CONTEXTS, ARMS = vectors_of(12, 3, seed=1), vectors_of(6, 2, seed=2)
PROBABILITIES = np.random.default_rng(3).random((12, 6)).astype(np.float32)
ON_A_BOX = ("GP-UCB", "GP-TS", "HOO")
WITH_FEATURES = ("GLOC", "GLOC-TS", "QGLOC", "GLM-UCB", "KernelUCB")


def small_environment(**settings: Any) -> Tabled:
    given: dict[str, Any] = {"arms": ARMS} | settings
    return Tabled("little", Dense(3), Inputs(dense=CONTEXTS), PROBABILITIES, **given)


def fitting(name: str) -> Environment:
    return Continuum("sines") if name in ON_A_BOX else small_environment()


def play(name: str, environment: Environment) -> Run:
    """Play two batches; the second is decided by what was learned from the first."""
    agent = agent_for(name, environment, seed=1, rounds=12)
    return run(environment, agent, rounds=12, batch=6, audits=2)


def is_sound(done: Run, name: str) -> bool:
    """Return whether all rounds were played, none above the best, and networks were audited."""
    is_below = bool((done.rewards <= done.best + 1e-9).all())
    return len(done.rewards) == 12 and is_below and len(done.qualities) == (name in NEURAL)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_plays(name: str) -> None:
    assert is_sound(play(name, fitting(name)), name)


@pytest.mark.parametrize("name", ["Exhaust TS", "GANBandit UCB", "LinearTS", "LinUCB"])
@pytest.mark.parametrize("reward", get_args(RewardKind))
def test_arms_that_are_ids_alone_are_played(name: str, reward: str) -> None:
    assert is_sound(play(name, small_environment(arms=None, reward=reward)), name)


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_generalised_linear_policies_play_on_real_rewards(name: str) -> None:
    assert is_sound(play(name, small_environment(reward="real")), name)


@pytest.mark.parametrize("name", ["FastBandit TS", "GANBandit TS"])
def test_arms_with_features_and_an_embedding_of_their_own_are_played(name: str) -> None:
    assert is_sound(play(name, small_environment(embed_ids=True)), name)


@pytest.mark.parametrize("name", ["FastBandit UCB", "GANBandit TS", "LinearTS"])
def test_a_continuum_is_played_by_policies_of_both_kinds(name: str) -> None:
    assert is_sound(play(name, Continuum("branin")), name)


def test_the_names_are_different_and_the_nine_of_the_paper_come_first() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert NAMES[:9] == NINE
    assert set(NEURAL) <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("GANBandit", "Did you mean 'GANBandit"), ("LinearUCB", "Did you mean"), ("", "Use one of")],
)
def test_an_unknown_name_is_refused_with_the_known_ones(name: str, hint: str) -> None:
    with pytest.raises(SettingError, match=f"The policy needs to be one of Random.*{hint}"):
        agent_for(name, small_environment(), seed=0, rounds=12)


def refusal(name: str, environment: Any) -> str:
    with pytest.raises(SettingError) as caught:
        agent_for(name, environment, seed=0, rounds=12)
    return str(caught.value)


@pytest.mark.parametrize("name", ON_A_BOX)
def test_policies_on_a_box_refuse_a_catalogue_in_a_line(name: str) -> None:
    message = refusal(name, small_environment())

    assert message.startswith(f"{name} needs a continuum: got little, which has 6 arms. Use one")
    assert "\n" not in message


@pytest.mark.parametrize("name", [n for n in NAMES if n not in (*NEURAL, *ON_A_BOX, "LinearTS")])
def test_policies_on_a_catalogue_refuse_a_continuum_in_a_line(name: str) -> None:
    message = refusal(name, Continuum("sines"))

    assert message.startswith(f"{name} needs a catalogue of arms: got sines, a continuum. Use one")
    assert "\n" not in message


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_policies_that_need_features_refuse_ids_in_a_line(name: str) -> None:
    message = refusal(name, small_environment(arms=None))

    assert message.startswith(f"{name} needs features of its arms: got little")
    assert "Use LinearTS or LinUCB" in message
    assert "\n" not in message


class Guarded:
    """An environment whose rewards are guarded: whoever asks for one is caught."""

    def __init__(self, inner: Environment) -> None:
        self._inner = inner
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("contexts", "expected", "observed", "ceiling", "instances"):
            raise AssertionError(f"{name} was asked for")
        return getattr(self._inner, name)

    def best_arm(self, rounds: int) -> Any:
        self.asked.append(rounds)
        return self._inner.best_arm(rounds)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_overall_best_arm_asks_for_rewards(name: str) -> None:
    guarded: Any = Guarded(fitting(name))

    agent_for(name, guarded, seed=1, rounds=7)

    assert guarded.asked == ([7] if name == "Overall best arm" else [])


@pytest.mark.parametrize("rounds", [1, 12])
def test_the_overall_best_arm_is_that_of_the_rounds_to_be_played(rounds: int) -> None:
    env = small_environment()
    agent = agent_for("Overall best arm", env, seed=0, rounds=rounds)

    rows = agent.select(CONTEXTS).rows

    assert env.best_arm(1) != env.best_arm(12)
    assert set(rows[:, 0]) == {env.best_arm(rounds)}


def log() -> LoggedData:
    return LoggedData(
        name="diary",
        context=Dense(3),
        contexts=Inputs(dense=CONTEXTS),
        size=6,
        chosen=np.arange(12) % 6,
        rewards=np.ones(12),
        arms=ARMS,
    )


def test_a_log_knows_no_hindsight() -> None:
    message = refusal("Overall best arm", log())

    assert "got diary, a log, which knows no hindsight. Use Learned best arm" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["Random", "Learned best arm", "LinearTS", "Exhaust TS"])
def test_other_policies_take_a_log(name: str) -> None:
    diary: Any = log()

    agent = agent_for(name, diary, seed=0, rounds=12)

    assert len(agent.select(CONTEXTS)) == 12


@pytest.mark.parametrize("preset", ["paper", Settings({"network": {"embedding": 4}})])
def test_a_preset_is_a_name_or_settings(preset: Any) -> None:
    agent = agent_for("Exhaust TS", small_environment(), seed=0, rounds=12, preset=preset)

    assert isinstance(agent, Bandit)
    assert agent.blueprint.network.embedding == (8 if preset == "paper" else 4)
