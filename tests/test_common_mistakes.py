"""Common mistakes: each message names the field, the value and the fix, and nothing changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import compiled, same_decision, vectors_of

from fastbandit import (
    Bandit,
    Box,
    Decision,
    Dense,
    Exhaustive,
    FastbanditError,
    FrozenBandit,
    Ids,
    Image,
    LinearTS,
    LinUCB,
    RandomBandit,
    SpannerSearch,
    ThompsonSampling,
    evaluate,
)
from fastbandit.adapters.coba import CobaLearner
from fastbandit.adapters.mabwiser import MabwiserBandit
from fastbandit.adapters.obp import ObpPolicy, from_feedback
from fastbandit.adapters.vowpal_wabbit import read_dsjson
from fastbandit.cli.main import cli, run
from fastbandit.client import Client
from fastbandit.evaluation import LoggedRounds, SparsePolicy, read_rounds
from fastbandit.settings.service_files import read_config
from lab.__main__ import cli as laboratory

ARMS = vectors_of(30, 3, seed=1)
CONTEXTS = vectors_of(20, 4, seed=2)
ROWS = np.arange(20)
ONES = np.ones(20)
HALVES = np.full(20, 0.5)
NAN = float("nan")


@dataclass(frozen=True)
class Place:
    """What a mistake is made with: a bandit that learned, the same frozen, and a folder."""

    bandit: Bandit
    frozen: FrozenBandit
    folder: Path

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@dataclass(frozen=True)
class Mistake:
    """A call, and what its message must hold: the field, the value that came, the fix."""

    call: Callable[[Place], Any]
    field: str
    value: str
    fix: str


def made(**settings: Any) -> Callable[[Place], Any]:
    return lambda at: Bandit(**{"arms": ARMS, "context": 4, **settings})


def told(**changes: Any) -> Callable[[Place], Any]:
    given = {"contexts": CONTEXTS, "arms": ROWS, "rewards": ONES, **changes}
    return lambda at: at.bandit.update(**given)


def chosen(contexts: Any = CONTEXTS, **settings: Any) -> Callable[[Place], Any]:
    return lambda at: at.bandit.select(contexts, **settings)


def logged(**changes: Any) -> LoggedRounds:
    given = {"contexts": CONTEXTS, "chosen": ROWS, "rewards": ONES, "propensities": HALVES}
    return LoggedRounds(**{**given, **changes})


def with_preset(text: str) -> Callable[[Place], Any]:
    return lambda at: made(preset=at.file("mine.toml", text))(at)


def configured(text: str) -> Callable[[Place], Any]:
    return lambda at: read_config(at.file("fastbandit.toml", text))


BUILDING = {
    "contexts given as context": Mistake(
        made(context=CONTEXTS), "context", "ndarray of shape (20, 4)", "Give context=4"
    ),
    "a context of text": Mistake(made(context="4"), "context", "'4'", "Give context=4"),
    "a class of features": Mistake(made(context=Dense), "context", "Dense", "Give context=4"),
    "names for arms": Mistake(made(arms=["tea", "juice"]), "arms", "(2,)", "give ids="),
    "a number for arms": Mistake(made(arms=30), "arms", "30", "give ids="),
    "no arms": Mistake(made(arms=None), "arm", "got none", "Give arms or ids"),
    "arms with a gap": Mistake(
        made(arms=np.where(ARMS[7, 0] == ARMS, NAN, ARMS)), "arms", "nan in row 7", "Fill or drop"
    ),
    "an id twice": Mistake(made(ids=["a"] * 30), "id", "'a' for rows 0 and 1", "Drop or rename"),
    "a missing id": Mistake(made(ids=[NAN, *range(29)]), "id", "nan for row 0", "drop that arm"),
    "too few ids": Mistake(made(ids=["a", "b"]), "id", "2 ids and 30 rows", "Drop the arms"),
    "rewards of another kind": Mistake(
        made(reward="clicks"), "Rewards", "'clicks'", "Use 'binary' for 0 and 1"
    ),
    "an exploration misspelt": Mistake(
        made(exploration="tss"), "exploration", "'tss'", "mean 'ts'"
    ),
    "a class for an object": Mistake(
        made(exploration=ThompsonSampling),
        "exploration",
        "ThompsonSampling",
        "exploration=ThompsonSampling()",
    ),
    "a search misspelt": Mistake(
        made(search="exhaustiv"), "search", "'exhaustiv'", "mean 'exhaustive'"
    ),
    "a class of searches": Mistake(
        made(search=Exhaustive), "search", "Exhaustive", "search=Exhaustive()"
    ),
    "a posterior misspelt": Mistake(
        made(posterior="dropot"), "posterior", "'dropot'", "mean 'dropout'"
    ),
    "a preset that is a wish": Mistake(made(preset="fast"), "preset", "'fast'", "Use one of them"),
    "a device of another name": Mistake(made(device="gpu"), "device", "'gpu'", "Use 'cpu'"),
    "a seed of text": Mistake(made(seed="1"), "seed", "'1'", "0 for example"),
    "names for a box": Mistake(
        made(arms=Box([0.0], [1.0]), ids=["a"]), "ids", "['a']", "Leave them out"
    ),
    "a box from high to low": Mistake(lambda at: Box([1], [0]), "low", "[1] and [0]", "Box([0, 0]"),
    "exploring by less than nothing": Mistake(
        lambda at: ThompsonSampling(scale=-1), "scale", "-1", "leave it out for 1.0"
    ),
    "a spanner of nothing": Mistake(
        lambda at: SpannerSearch(size=0), "size", "got 0", "leave it out for 32"
    ),
    "features without columns": Mistake(
        lambda at: Dense(0), "dim", "got 0", "whole number of at least 1"
    ),
    "an image too small": Mistake(lambda at: Image(4, 4), "pixels", "4 x 4", "Use Dense(16)"),
    "a preset that is not there": Mistake(
        made(preset="gone.toml"), "settings", "gone.toml", "Write one"
    ),
    "a section misspelt": Mistake(
        with_preset("format = 1\n[netwrk]\n"), "section", "'netwrk'", "mean 'network'"
    ),
    "a field misspelt": Mistake(
        with_preset("format = 1\n[network]\nhiden = [8]\n"), "[network]", "'hiden'", "mean 'hidden'"
    ),
    "a field of text": Mistake(
        with_preset('format = 1\n[network]\nhidden = "wide"\n'), "hidden", "'wide'", "leave it out"
    ),
}

DECIDING = {
    "a lone context": Mistake(chosen(CONTEXTS[0]), "contexts", "(4,)", "a list of one"),
    "contexts of another width": Mistake(
        chosen(CONTEXTS[:, :3]), "contexts", "(20, 3)", "one row of 4 numbers"
    ),
    "contexts of text": Mistake(chosen([["a"] * 4]), "contexts", "'a'", "by name, in a frame"),
    "a mapping for contexts": Mistake(chosen({"age": 3}), "contexts", "a dict", "Build the bandit"),
    "no contexts": Mistake(chosen(None), "contexts", "None", "Give one row"),
    "contexts with a gap": Mistake(
        chosen(np.where(CONTEXTS[3, 0] == CONTEXTS, NAN, CONTEXTS)),
        "contexts",
        "nan in row 3",
        "Fill or drop",
    ),
    "none wanted": Mistake(chosen(k=0), "k", "got 0", "Ask for one or more"),
    "a truth for k": Mistake(chosen(k=True), "k", "True", "Ask for one or more"),
    "too much diversity": Mistake(chosen(k=2, diversity=2), "diversity", "got 2", "Use 0"),
    "one eligible arm alone": Mistake(
        chosen(eligible="tea"), "Eligible", "'tea'", "into a list of one"
    ),
    "an eligible arm that is none": Mistake(
        chosen(eligible=[1, 99], strict=True), "arms", "99", "correct its id"
    ),
    "nothing eligible": Mistake(chosen(eligible=[]), "eligible", "none", "Let more be"),
    "a mask too short": Mistake(
        chosen(eligible=np.ones(29, dtype=bool)), "eligible", "(29,)", "one boolean for each arm"
    ),
    "a predicate without columns": Mistake(
        chosen(eligible={"price": {"<=": 3}}), "columns", '{"price"', "set_columns()"
    ),
    "seeds below zero": Mistake(chosen(seeds=[-1] * 20), "Seeds", "int64", "Decision.seeds"),
    "an audit before anything is learned": Mistake(
        lambda at: made()(at).audit(CONTEXTS), "audit", "without any update", "Call update()"
    ),
    "many contexts for one choice": Mistake(
        lambda at: at.frozen.select_one(CONTEXTS), "context", "shape (20, 4)", "select()"
    ),
    "a choice for text": Mistake(
        lambda at: at.frozen.select_one("who"), "context", "'who'", "Give many contexts"
    ),
    "a choice with a gap": Mistake(
        lambda at: at.frozen.select_one([NAN] * 4), "context", "[nan, nan", "Fill or drop"
    ),
    "a choice by a broken seed": Mistake(
        lambda at: at.frozen.select_one(CONTEXTS[0], seed=1.5), "seed", "1.5", "Chosen.seed"
    ),
    "a floor in percent": Mistake(
        lambda at: at.frozen.select_one(CONTEXTS[0], epsilon=5), "epsilon", "got 5", "0.01 for one"
    ),
    "a predicate on no columns": Mistake(
        lambda at: at.frozen.select_one(CONTEXTS[0], eligible={"price": {"<=": 3}}),
        "columns",
        '{"price"',
        "set_columns()",
    ),
    "columns of a few arms": Mistake(
        lambda at: at.frozen.set_columns({"price": [1, 2]}), "'price'", "(2,)", "for every arm"
    ),
    "a slate with a floor": Mistake(
        lambda at: at.frozen.select(CONTEXTS, k=2, diversity=0.5, epsilon=0.1),
        "diversity",
        "epsilon=0.1",
        "Leave out one",
    ),
    "propensities of no draws": Mistake(
        lambda at: at.frozen.propensities(CONTEXTS[0], draws=0), "draws", "got 0", "Use 1000"
    ),
}

LEARNING = {
    "rewards and arms in each other's place": Mistake(
        told(arms=HALVES, rewards=ROWS), "id", "0.5", "correct its id"
    ),
    "a whole decision for arms": Mistake(
        lambda at: told(arms=at.bandit.select(CONTEXTS, seeds=ROWS))(at),
        "arms",
        "Decision(20 contexts",
        "Give its .arms",
    ),
    "fewer arms than contexts": Mistake(
        told(arms=ROWS[:5]), "arm", "20 contexts and 5 arms", "Give a context once"
    ),
    "an arm that is none": Mistake(told(arms=["tea"] * 20), "id", "'tea'", "Add that arm first"),
    "slates for arms": Mistake(told(arms=[[1, 2]] * 20), "id", "[1, 2]", "correct its id"),
    "fewer rewards than contexts": Mistake(
        told(rewards=ONES[:5]), "rewards", "(5,)", "Leave out the contexts"
    ),
    "one reward for all": Mistake(told(rewards=1), "rewards", "()", "Leave out the contexts"),
    "rewards out of range": Mistake(told(rewards=HALVES), "rewards", "0.5", "reward='real'"),
    "rewards of text": Mistake(
        told(rewards=["yes"] * 20), "rewards", "'yes'", "by name, in a frame"
    ),
    "rewards with a gap": Mistake(
        told(rewards=np.where(ROWS == 3, NAN, 1)), "rewards", "nan in row 3", "Fill or drop"
    ),
    "a version of text": Mistake(told(version="two"), "version", "'two'", "Leave it out"),
    "no new arms": Mistake(lambda at: at.bandit.add_arms(), "arms", "got neither", "Give arms="),
    "a new arm without features": Mistake(
        lambda at: at.bandit.add_arms(ids=["new"]), "arms", "None", "Give one row"
    ),
    "a new arm that is there": Mistake(
        lambda at: at.bandit.add_arms(ARMS[:1], ids=[7]), "id", "7, which is row 7", "another id"
    ),
    "a new arm of another width": Mistake(
        lambda at: at.bandit.add_arms(ARMS[:1, :2], ids=["new"]), "arms", "(1, 2)", "3 numbers"
    ),
    "a lone new id": Mistake(
        lambda at: at.bandit.add_arms(ARMS[:1], ids="x"), "Ids", "'x'", "into a list of one"
    ),
    "a lone id to discard": Mistake(
        lambda at: at.bandit.discard_arms(3), "Ids", "got 3", "into a list of one"
    ),
    "all arms to discard": Mistake(
        lambda at: at.bandit.discard_arms(range(30)), "arm", "discarding 30 arms", "Add others"
    ),
    "a linear bandit of names": Mistake(
        lambda at: LinearTS(ids=["a", "b"], context=4), "features", "ids alone", "disjoint=True"
    ),
    "a linear bandit on ids": Mistake(
        lambda at: LinearTS(arms=ARMS, context=Ids(9)), "contexts", "Ids(count=9)", "Use Dense"
    ),
    "a ridge of text": Mistake(
        lambda at: LinearTS(arms=ARMS, context=4, ridge="1"),  # type: ignore[arg-type]
        "ridge",
        "'1'",
        "Try 1.0",
    ),
    "a width below zero": Mistake(
        lambda at: LinUCB(arms=ARMS, context=4, width=-1), "width", "-1", "Try 1.0"
    ),
    "a baseline without arms": Mistake(
        lambda at: RandomBandit(), "arms", "neither features nor ids", "Give one"
    ),
}

KEEPING = {
    "loading what is not there": Mistake(
        lambda at: Bandit.load(at.folder / "gone"), "manifest.json", "gone", "that save() wrote"
    ),
    "loading a frozen bandit as one that learns": Mistake(
        lambda at: (at.frozen.save(at.folder / "ice"), Bandit.load(at.folder / "ice")),
        "Bandit.load",
        "a frozen bandit",
        "Read it with FrozenBandit.load",
    ),
    "loading a bandit as a frozen one": Mistake(
        lambda at: (at.bandit.save(at.folder / "b"), FrozenBandit.load(at.folder / "b")),
        "FrozenBandit.load",
        "holds a bandit",
        "Read it with Bandit.load",
    ),
    "saving a frozen bandit over another kind": Mistake(
        lambda at: (at.bandit.save(at.folder / "one"), at.frozen.save(at.folder / "one")),
        "folder of its own",
        "holds a bandit",
        "Name another folder",
    ),
    "saving into a file": Mistake(
        lambda at: at.bandit.save(at.file("notes.txt", "mine")), "folder", "notes.txt", "another"
    ),
    "freezing a box": Mistake(
        lambda at: made(arms=Box([0.0], [1.0]))(at).freeze(), "arm space", "Box(", "Use a"
    ),
    "freezing into four bits": Mistake(
        lambda at: at.bandit.freeze(dtype="int4"), "numbers", "'int4'", "mean 'int8'"
    ),
}

JUDGING = {
    "the policy before the log": Mistake(
        lambda at: evaluate(at.frozen, logged()),  # type: ignore[arg-type]
        "log first",
        "FrozenBandit as log",
        "Swap them",
    ),
    "a log without propensities": Mistake(
        lambda at: logged(propensities=None), "propensities", "None", "1 / arms"
    ),
    "a propensity of zero": Mistake(
        lambda at: logged(propensities=np.where(ROWS == 3, 0, 0.5)),
        "propensities",
        "0 in round 3",
        "log that one",
    ),
    "propensities in percent": Mistake(
        lambda at: logged(propensities=100 * HALVES), "propensities", "50 in round 0", "by 100"
    ),
    "a log with ids for rows": Mistake(
        lambda at: logged(chosen=["tea"] * 20), "chosen", "['tea']", "the position of each arm"
    ),
    "a log of other arms": Mistake(
        lambda at: evaluate(logged(arms=7 + 20), at.frozen),
        "arms",
        "the log has 27, the policy 30",
        "Give the log arms=",
    ),
    "probabilities before rows": Mistake(
        lambda at: SparsePolicy([[0.5, 0.5]], [[1, 2]], arms=3),
        "rows",
        "float64",
        "SparsePolicy(rows, probabilities",
    ),
    "no draws": Mistake(
        lambda at: evaluate(logged(arms=30), at.frozen, draws=0), "draws", "got 0", "Use 16"
    ),
    "an estimator misspelt": Mistake(
        lambda at: evaluate(logged(), "uniform", estimators=["sips"]),
        "estimator",
        "'sips'",
        "Did you mean",
    ),
    "a log that is not there": Mistake(
        lambda at: evaluate(at.folder / "gone.csv", "uniform"), "log", "gone.csv", "Mend the path"
    ),
    "a table of arms with one twice": Mistake(
        lambda at: read_rounds(
            at.file("log.csv", "x_0,arm,reward,propensity\n1,a,1,0.5\n"),
            arms=at.file("arms.csv", "arm,price\na,1\na,2\n"),
        ),
        "column 'arm'",
        "'a' twice",
        "Drop or rename",
    ),
}

ELSEWHERE = {
    "DSJSON without a probability": Mistake(
        lambda at: read_dsjson(
            [json.dumps({"c": {"_multi": [{}]}, "_label_cost": 1, "_labelIndex": 0})]
        ),
        "'_label_probability'",
        "None in line 1",
        "drop that line",
    ),
    "feedback without rewards": Mistake(
        lambda at: from_feedback({"action": [0], "context": [[1.0]]}), "reward", "none", "Add it"
    ),
    "an action beyond the arms": Mistake(
        lambda at: ObpPolicy(at.bandit).update_params(30, 1, CONTEXTS[:1]),
        "action",
        "got 30",
        "the row of the arm",
    ),
    "a learner told half a reward": Mistake(
        lambda at: CobaLearner(reward="binary").learn([1.0], "tea", 0.5, None),
        "rewards",
        "0.5",
        "reward='real'",
    ),
    "a text for arms": Mistake(
        lambda at: MabwiserBandit("tea"), "Ids", "'tea'", "into a list of one"
    ),
    "an address without http": Mistake(
        lambda at: Client("localhost:8080"), "address", "'localhost:8080'", "begins with http://"
    ),
    "no time for an answer": Mistake(
        lambda at: Client("http://127.0.0.1:1", deadline_seconds=0),
        "deadline_seconds",
        "deadline_seconds=0",
        "Give the seconds",
    ),
    "a decision id that is none": Mistake(
        lambda at: Client("http://127.0.0.1:1").select([1.0], id=""), "id", "''", "Choose another"
    ),
    "a port beyond all": Mistake(
        configured("[server]\nport = 99999\n"), "server.port", "99999", "fastbandit.toml"
    ),
    "a setting misspelt": Mistake(
        configured("[server]\nprot = 80\n"), "[server]", "'prot'", "mean 'port'"
    ),
    "half of TLS": Mistake(
        configured('[server]\ntls_cert = "a.pem"\n'), "server.tls_key", "'a.pem'", "Set the other"
    ),
}

ON_A_BANDIT = DECIDING | LEARNING | KEEPING
MISTAKES = BUILDING | ON_A_BANDIT | JUDGING | ELSEWHERE


@pytest.fixture(scope="module")
def learned(little_training: None) -> Bandit:
    bandit = Bandit(arms=ARMS, context=4, seed=1, progress=False)
    bandit.update(contexts=CONTEXTS, arms=ROWS, rewards=ROWS % 2)
    return bandit


@pytest.fixture
def place(learned: Bandit, tmp_path: Path) -> Place:
    return Place(compiled(learned), learned.freeze(), tmp_path)


def next_decisions(at: Place) -> tuple[Decision, Decision]:
    return at.bandit.select(CONTEXTS), at.frozen.select(CONTEXTS)


def test_there_are_forty_at_least() -> None:
    assert len(MISTAKES) >= 40
    assert len(MISTAKES) == sum(map(len, (BUILDING, ON_A_BANDIT, JUDGING, ELSEWHERE)))


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_the_field_the_value_and_the_fix(name: str, place: Place) -> None:
    mistake = MISTAKES[name]

    with pytest.raises(FastbanditError) as raised:
        mistake.call(place)

    message = str(raised.value)
    for part in (mistake.field, mistake.value, mistake.fix):
        assert part in message
    assert len(message) < 500


@pytest.mark.parametrize("name", ON_A_BANDIT)
def test_a_refused_call_changes_nothing(name: str, place: Place, learned: Bandit) -> None:
    untouched = Place(compiled(learned), learned.freeze(), place.folder)

    with pytest.raises(FastbanditError):
        ON_A_BANDIT[name].call(place)

    assert (len(place.bandit), len(place.frozen)) == (30, 30)
    assert place.bandit.version == untouched.bandit.version
    pairs = zip(next_decisions(place), next_decisions(untouched), strict=True)
    assert all(same_decision(one, two) for one, two in pairs)


COMMANDS = {
    "an evaluation of nothing": (["evaluate"], "--log", "None", "Name them"),
    "a policy that is not there": (
        ["evaluate", "--log", "log.csv", "--policy", "gone"],
        "policy",
        "'gone'",
        "Save a bandit",
    ),
    "a log of another kind": (
        ["evaluate", "--log", "notes.txt", "--policy", "uniform"],
        "log",
        "notes.txt",
        "Save or export",
    ),
    "freezing what was never saved": (["freeze", "gone"], "manifest.json", "gone", "save() wrote"),
    "a report of nothing": (["lab", "report", "gone"], "Results", "gone", "experiment run"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_it_in_one_line_and_exits_with_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args, *parts = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "log.csv").write_text("x_0,arm,reward,propensity\n1,a,1,0.5\n")

    with pytest.raises(SystemExit) as left:
        run(laboratory if args[0] == "lab" else cli, args[args[0] == "lab" :], prog_name="it")

    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.count("\n") == 1
    assert all(part in said for part in parts)
