"""Bad input gives an error of our own that says what came, and leaves the bandit as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fakes import compiled, same_decision, same_weights, vectors_of

from fastbandit import Bandit, Box, FastbanditError, Image, Sparse
from fastbandit.errors import (
    DuplicateArmError,
    EligibilityError,
    InputError,
    NotFiniteError,
    RewardError,
    SettingError,
    ShapeError,
    UnknownArmError,
)

pytestmark = pytest.mark.usefixtures("little_training")

ARMS = vectors_of(30, 3, seed=1)
CONTEXTS = vectors_of(20, 4, seed=2)
ROWS = np.arange(20)
ONES = np.ones(20)
Do = Callable[[Bandit], Any]


def with_value(array: Any, value: float) -> Any:
    """Put a value into row 3."""
    spoiled = np.array(array, dtype=np.float64)
    spoiled[3] = value
    return spoiled


def learning(**changes: Any) -> Do:
    told = {"contexts": CONTEXTS, "arms": ROWS, "rewards": ONES, **changes}
    return lambda bandit: bandit.update(**told)


def selecting(contexts: Any = CONTEXTS, **settings: Any) -> Do:
    return lambda bandit: bandit.select(contexts, **settings)


BAD: dict[str, tuple[Do, type[FastbanditError], str]] = {
    "NaN contexts": (selecting(with_value(CONTEXTS, np.nan)), NotFiniteError, "nan in row 3"),
    "infinite contexts": (
        selecting(with_value(CONTEXTS, -np.inf)),
        NotFiniteError,
        "-inf in row 3",
    ),
    "contexts too large": (selecting(with_value(CONTEXTS, 1e300)), NotFiniteError, "inf in row 3"),
    "too many columns": (selecting(vectors_of(20, 5)), ShapeError, r"\(n, 4\): got \(20, 5\)"),
    "a lone context": (selecting(CONTEXTS[0]), ShapeError, r"got \(4,\)"),
    "a number for contexts": (selecting(3.0), ShapeError, r"\(n, 4\)"),
    "no contexts at all": (selecting(None), InputError, "contexts"),
    "ragged contexts": (selecting([[1, 2, 3, 4], [1, 2]]), ShapeError, "ragged"),
    "words for contexts": (selecting([["a", "b", "c", "d"]]), InputError, "numbers"),
    "k of zero": (selecting(k=0), SettingError, "got 0"),
    "k of a half": (selecting(k=0.5), SettingError, r"got 0\.5"),
    "nothing eligible": (selecting(eligible=[]), EligibilityError, "got none for all"),
    "an empty mask": (
        selecting(eligible=np.zeros(30, dtype=bool)),
        EligibilityError,
        "got none for all",
    ),
    "nothing eligible for one": (
        selecting(CONTEXTS[:2], eligible=[[1], []]),
        EligibilityError,
        "context 1",
    ),
    "unknown eligible": (selecting(eligible=["what"]), UnknownArmError, "got 'what'"),
    "a short mask": (selecting(eligible=np.ones(29, dtype=bool)), ShapeError, r"got \(29,\)"),
    "too few seeds": (selecting(seeds=[1, 2]), ShapeError, r"of shape \(2,\)"),
    "seeds that are no numbers": (selecting(seeds=np.ones(20)), ShapeError, "float64"),
    "audit of NaN": (
        lambda bandit: bandit.audit(with_value(CONTEXTS, np.nan)),
        NotFiniteError,
        "row 3",
    ),
    "NaN rewards": (learning(rewards=with_value(ONES, np.nan)), NotFiniteError, "nan in row 3"),
    "infinite rewards": (
        learning(rewards=with_value(ONES, np.inf)),
        NotFiniteError,
        "inf in row 3",
    ),
    "too few rewards": (learning(rewards=ONES[:5]), ShapeError, r"got \(5,\)"),
    "a table of rewards": (learning(rewards=np.ones((20, 2))), ShapeError, r"got \(20, 2\)"),
    "NaN contexts to learn": (
        learning(contexts=with_value(CONTEXTS, np.nan)),
        NotFiniteError,
        "nan in row 3",
    ),
    "columns to learn": (learning(contexts=CONTEXTS[:, :2]), ShapeError, r"got \(20, 2\)"),
    "unknown arms": (learning(arms=[*range(19), 99]), UnknownArmError, "got 99"),
    "negative arms": (learning(arms=[*range(19), -1]), UnknownArmError, "got -1"),
    "too few arms": (learning(arms=range(19)), ShapeError, "20 contexts and 19 arms"),
    "lists of arms": (learning(arms=[[1, 2]] * 20), UnknownArmError, r"got \[1, 2\]"),
    "a duplicate id": (
        lambda bandit: bandit.add_arms(ARMS[:1], ids=[7]),
        DuplicateArmError,
        "got 7",
    ),
    "new ids that repeat": (
        lambda bandit: bandit.add_arms(ARMS[:2], ids=["x", "x"]),
        DuplicateArmError,
        "got 'x'",
    ),
    "fewer ids than arms": (
        lambda bandit: bandit.add_arms(ARMS[:2], ids=["x"]),
        ShapeError,
        "1 ids and 2 rows",
    ),
    "new arms of another size": (
        lambda bandit: bandit.add_arms(ARMS[:2, :1]),
        ShapeError,
        r"got \(2, 1\)",
    ),
    "NaN arms": (
        lambda bandit: bandit.add_arms(with_value(ARMS, np.nan)),
        NotFiniteError,
        "nan in row 3",
    ),
    "no new arms at all": (lambda bandit: bandit.add_arms(), InputError, "neither"),
    "new arms without features": (
        lambda bandit: bandit.add_arms(ids=["x"]),
        InputError,
        "arms",
    ),
    "an id that cannot be one": (
        lambda bandit: bandit.add_arms(ARMS[:1], ids=[["x"]]),
        InputError,
        r"got \['x'\]",
    ),
    "discarding all": (
        lambda bandit: bandit.discard_arms(range(30)),
        EligibilityError,
        "discarding 30 arms",
    ),
}


@pytest.fixture(scope="module")
def shared(little_training: None) -> Bandit:
    bandit = Bandit(arms=ARMS, context=4, reward="real", seed=1, search="generator")
    bandit.update(contexts=CONTEXTS, arms=ROWS, rewards=CONTEXTS[:, 0])
    return bandit


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_changes_nothing(case: str, shared: Bandit) -> None:
    do, error, message = BAD[case]
    bandit, untouched = compiled(shared), compiled(shared)

    with pytest.raises(error, match=message):
        do(bandit)

    assert len(bandit) == len(untouched)
    assert same_decision(bandit.select(CONTEXTS), untouched.select(CONTEXTS))


@pytest.mark.parametrize("case", [case for case in BAD if "audit" not in case])
def test_bad_input_changes_nothing_before_the_first_update(case: str) -> None:
    do, error, message = BAD[case]
    bandit, untouched = (Bandit(arms=ARMS, context=4, reward="real", seed=1) for _ in range(2))

    with pytest.raises(error, match=message):
        do(bandit)

    assert same_decision(bandit.select(CONTEXTS), untouched.select(CONTEXTS))


@pytest.mark.parametrize("value", [0.5, -1, 2])
def test_binary_rewards_are_0_or_1(value: float) -> None:
    bandit = Bandit(arms=ARMS, context=4, reward="binary")

    with pytest.raises(RewardError, match=f"got {float(value)} in row 3"):
        bandit.update(contexts=CONTEXTS, arms=ROWS, rewards=with_value(ONES, value))
    assert bandit.version == 0


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"arms": np.zeros((0, 3))}, InputError, "at least one arm"),
        ({"arms": None, "ids": []}, InputError, "at least one arm"),
        ({"arms": None}, InputError, "at least one arm"),
        ({"ids": ["a"] * 30}, DuplicateArmError, "got 'a'"),
        ({"ids": ["a", "b"]}, ShapeError, "2 ids and 30 rows"),
        ({"arms": with_value(ARMS, np.nan)}, NotFiniteError, "nan in row 3"),
        ({"arms": np.zeros(30)}, ShapeError, r"got \(30,\)"),
        ({"context": 0}, SettingError, "got 0"),
        ({"context": "wide"}, SettingError, "got 'wide'"),
        ({"reward": "count"}, SettingError, "got 'count'"),
        ({"exploration": "st"}, SettingError, "got 'st'"),
        ({"search": "exhaustiv"}, SettingError, "Did you mean 'exhaustive'"),
        ({"posterior": "bayes"}, SettingError, "got 'bayes'"),
        ({"preset": "defaults"}, SettingError, "Did you mean 'default'"),
        ({"device": "abacus"}, SettingError, "got 'abacus'"),
        pytest.param({"seed": "seven"}, SettingError, "seven"),
        pytest.param({"seed": 1.5}, SettingError, r"1\.5"),
    ],
)
def test_a_bandit_that_cannot_be_made_says_why(
    settings: dict[str, Any], error: type[FastbanditError], message: str
) -> None:
    with pytest.raises(error, match=message):
        Bandit(**{"arms": ARMS, "context": 4, **settings})


@pytest.mark.parametrize(
    ("low", "high"), [([], []), ([0], [0]), ([0, 0], [1]), ([0], [np.inf]), ([2], [1])]
)
def test_a_box_without_an_inside_is_refused(low: list[float], high: list[float]) -> None:
    with pytest.raises(SettingError, match=r"Write Box\("):
        Box(low, high)


def test_a_box_has_no_eligible_arms_and_no_arms_to_add() -> None:
    bandit = Bandit(arms=Box([0, 0], [1, 1]), context=4)

    with pytest.raises(SettingError, match="box"):
        bandit.select(CONTEXTS, eligible=[1])
    with pytest.raises(SettingError, match="box"):
        bandit.add_arms(ARMS)
    with pytest.raises(SettingError, match="box"):
        bandit.discard_arms([1])


def test_points_outside_the_box_cannot_be_learned_from() -> None:
    bandit = Bandit(arms=Box([0, 0], [1, 1]), context=4, reward="real")

    with pytest.raises(InputError, match="5"):
        bandit.update(contexts=CONTEXTS[:1], arms=[[5.0, 0.5]], rewards=[1.0])


def test_an_audit_before_any_update_is_refused() -> None:
    with pytest.raises(SettingError, match="update"):
        Bandit(arms=ARMS, context=4).audit(CONTEXTS)


def test_sparse_rows_that_are_not_finite_are_named_by_their_row() -> None:
    matrix = scipy.sparse.csr_matrix(with_value(np.ones((6, 5)), np.nan))

    with pytest.raises(NotFiniteError, match="nan in row 3"):
        Bandit(arms=ARMS, context=Sparse(5)).select(matrix)


def test_images_of_another_size_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(n, 9, 9\): got \(2, 9, 8\)"):
        Bandit(arms=ARMS, context=Image(9, 9)).select(np.zeros((2, 9, 8)))


@pytest.mark.parametrize(
    "part",
    ["training.update.fit_reward", "search.generator.fit_generator", "training.update.embed"],
)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_an_update_that_stops_half_way_keeps_the_old_policy(
    shared: Bandit, part: str, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, untouched = compiled(shared), compiled(shared)

    def interrupt(*args: Any, **settings: Any) -> None:
        raise stop("half-way")

    with monkeypatch.context() as patch:
        patch.setattr(f"fastbandit.{part}", interrupt)
        with pytest.raises(stop, match="half-way"):
            learning()(bandit)

    assert bandit.version == 1
    assert same_decision(bandit.select(CONTEXTS), untouched.select(CONTEXTS))
    for either in (bandit, untouched):
        learning()(either)
    assert same_weights(bandit, untouched)


def test_an_update_stopped_while_the_network_learns_keeps_the_old_weights(
    shared: Bandit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = compiled(shared)
    before = {key: value.clone() for key, value in bandit.policy.model.state_dict().items()}
    steps = iter(range(5))

    def factor(share: float) -> float:
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr("fastbandit.training.fit_reward.cosine_factor", factor)
    with pytest.raises(KeyboardInterrupt):
        learning()(bandit)

    after = bandit.policy.model.state_dict()
    assert all((after[key] == before[key]).all() for key in before)


def test_every_error_is_one_of_our_own_and_one_the_caller_expects() -> None:
    from fastbandit import errors

    known = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    ours = [e for e in known if e is not FastbanditError]

    assert all(issubclass(error, FastbanditError) for error in ours)
    builtins = (ValueError, KeyError, OSError, ImportError, RuntimeError)
    assert all(issubclass(error, builtins) for error in ours)
