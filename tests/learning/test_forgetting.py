"""A subject that is forgotten leaves the log, the archive, the training data and later versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from little_service import SECOND, LittleLog, current_of, learn_all, learned_by, little_config
from msgspec import ValidationError, convert

from fastbandit.learning import candidate_checks, checkpoints
from fastbandit.learning.learner import Learner
from fastbandit.serving.personalizer.events import decision_id
from fastbandit.serving.schemas import DecisionId
from fastbandit.settings.service import Config, ContextConfig
from fastbandit.storage import forgetting
from fastbandit.storage.archive import Archive
from fastbandit.storage.backups import back_up
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.forgetting import Forgotten, forget, forget_archived, name_of
from fastbandit.storage.joined_rows import Bounds, joined_rows
from fastbandit.storage.retention import DAY, retain

FIRST = 20_000 * DAY
SECRET = 77.25


def write_of(log: LittleLog, subject: str, number: int) -> None:
    """Write a decision about a subject with three rewards of which one counts."""
    log.now += 100_000
    made = DecisionMade(
        id=f"{subject}-{number}",
        context=[SECRET, float(number)],
        arms=["arm 2", "arm 1"],
        scores=[0.5, 0.25],
        seed=3,
        version=0,
        catalogue=0,
        wait=10_000_000,
        eligible=["arm 1", "arm 2"],
        subject=subject,
    )
    log.write(made)
    for arm in ("arm 1", "arm 9"):
        log.write(RewardCame(made.id, SECRET, arm))
    log.write(RewardCame(made.id, SECRET + 1, "arm 1"))


@pytest.fixture
def service(tmp_path: Path) -> tuple[Config, LittleLog]:
    """Return one that knows a subject from its archive, from what was learned, and from today."""
    config, log = little_config(tmp_path, keep=1), LittleLog(tmp_path)
    for day in range(3):
        log.now = FIRST + day * DAY
        log.decide(25)
        write_of(log, "ann", day)
        write_of(log, "bob", day)
        log.let_pass(60)
    learn_all(Learner(config))
    left = retain(tmp_path, tmp_path / "events.db", days=2, is_archived=True, now=FIRST + 3 * DAY)
    assert left.days
    return config, log


def forgotten(folder: Path, subject: str = "ann") -> Forgotten:
    return forget(folder, folder / "events.db", subject, keep=5)


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_nothing_of_it_is_left(service: tuple[Config, LittleLog], tmp_path: Path) -> None:
    config, _ = service
    cut, before = current_of(config).cut, learned_by(config).history
    assert before is not None
    assert (
        b"ann-" in (tmp_path / "events.db").read_bytes() + (tmp_path / "events.db-wal").read_bytes()
    )

    made = forgotten(tmp_path)

    assert (made.decisions, made.rewards) == (2, 6)
    assert (made.archived_decisions, made.archived_rewards) == (1, 3)
    assert made.interactions == 4  # and two that were not learned yet
    assert made.versions == [current_of(config).version]
    after = learned_by(config).history
    assert after is not None
    assert len(after) == len(before) - 4
    back_up(tmp_path, tmp_path.with_name("a backup"))
    kept = [tmp_path / name for name in ("archive", "history", "receipts")]
    found = [bytes_in(path) for path in (*kept, tmp_path.with_name("a backup"))]
    assert not any(b"ann-" in content for content in found)
    archive = Archive(tmp_path / "archive")
    rows = [row for day in archive.days() for row in archive.rows(day, "decisions")]
    assert not any("ann" in map(str, row) for row in rows)
    assert b"ann-" not in (tmp_path / "events.db").read_bytes()
    assert b"ann-" not in (tmp_path / "events.db-wal").read_bytes()
    assert forgotten(tmp_path).decisions == 0
    assert current_of(config).cut == cut


def test_a_reward_that_comes_meanwhile_is_forgotten_too(
    service: tuple[Config, LittleLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, log = service

    def forget_while_rewards_come(*given: Any) -> tuple[int, int]:
        log.write(RewardCame("ann-2", SECRET, "arm 2"))  # counts
        log.write(RewardCame("ann-2", SECRET, "arm 9"))  # is of an arm that was not chosen
        return forget_archived(*given)

    monkeypatch.setattr(forgetting, "forget_archived", forget_while_rewards_come)

    assert forgotten(tmp_path).rewards == 8
    assert b"ann-" not in bytes_in(tmp_path)


def test_an_id_of_another_decision_does_not_keep_it(
    service: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    _, log = service
    number = next(one.seq for one in log._log.read() if getattr(one, "subject", None) == "ann")
    write_of(log, "forgotten", number)  # as anybody may call it

    assert forgotten(tmp_path).decisions == 2

    assert b"ann-" not in bytes_in(tmp_path)


def test_no_request_can_name_what_was_forgotten() -> None:
    with pytest.raises(ValidationError):
        convert(name_of(3), DecisionId)
    assert decision_id(name_of(3)) != name_of(3)


def test_the_log_counts_as_before_and_others_stay(
    service: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    _, log = service
    before = log._log.read()

    forgotten(tmp_path)

    after = log._log.read()
    assert [(one.seq, one.at) for one in after] == [(one.seq, one.at) for one in before]
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert len(pairs) == 8
    assert all(
        getattr(one, "subject", None) == "ann" or one.decision.startswith("ann-")  # type: ignore[union-attr]
        for one, _ in pairs
    )
    made, *rewards = [other for _, other in pairs][:4]
    assert isinstance(made, DecisionMade)
    assert (made.id, made.context, made.arms) == (name_of(made.seq), [], [0, 1])
    assert (made.subject, made.eligible) == (None, None)
    came = [one for one in rewards if isinstance(one, RewardCame)]
    assert [(one.arm, one.value, one.status) for one in came] == [
        (1, 0.0, "counted"),
        (None, 0.0, "unknown arm"),
        (1, 0.0, "conflicting"),
    ]
    assert log._log.append([RewardCame("ann-2", 1.0)])[0].status == "unknown"


def test_exports_leave_it_out(service: tuple[Config, LittleLog], tmp_path: Path) -> None:
    _, log = service
    forgotten(tmp_path)
    log.close()
    connection = apsw.Connection(str(tmp_path / "events.db"))

    rows = [row for some in joined_rows(connection, Bounds()) for row in some]

    assert {len(row.context) for row in rows} == {2}
    assert {row.decision for row in rows if row.context[0] == SECRET} == {"bob-1", "bob-2"}  # type: ignore[index]


def test_learning_goes_on_without_it(service: tuple[Config, LittleLog], tmp_path: Path) -> None:
    config, log = service
    write_of(log, "ann", 9)  # read by a learner, and not learned yet
    learner = Learner(config)
    assert learn_all(learner)[-1].did == "waited"
    cut = current_of(config).cut

    forgotten(tmp_path)
    log.decide(60)
    log.let_pass(60)
    learn_all(learner)

    current, history = current_of(config), learned_by(config).history
    assert history is not None
    assert history.contexts.dense is not None
    assert current.cut.interactions > cut.interactions
    secrets = history.contexts.dense[:, 0] == SECRET
    assert secrets.sum() == 6  # bob's
    assert current.cut.interactions - 8 <= len(history) < current.cut.interactions
    assert forgotten(tmp_path, "bob").interactions == 6


def learned_once(folder: Path) -> Config:
    """Return a service that learned of a subject, in one version."""
    folder.mkdir()
    config, log = little_config(folder), LittleLog(folder)
    log.decide(25)
    write_of(log, "ann", 1)
    log.let_pass(60)
    log.close()
    learn_all(Learner(config))
    return config


def test_a_version_without_it_is_made_once_though_no_reward_comes(tmp_path: Path) -> None:
    config = learned_once(tmp_path / "a")
    before, history = current_of(config), learned_by(config).history
    assert history is not None

    forgotten(tmp_path / "a")
    steps = learn_all(Learner(config))  # another one, as after a restart

    after = learned_by(config).history
    assert [step.did for step in steps] == ["published", "waited"]
    assert current_of(config).parent == before.version
    assert after is not None
    assert after.contexts.dense is not None
    assert SECRET not in after.contexts.dense[:, 0]
    assert learn_all(Learner(config))[0].did == "waited"


def test_names_that_nobody_else_had_leave_later_versions(tmp_path: Path) -> None:
    config, log = little_config(tmp_path), LittleLog(tmp_path)
    config = replace(config, context=ContextConfig(any_names=True))
    for number in range(60):
        log.now += 100_000
        who = "ann" if number % 6 == 0 else "bob"
        own = {"city": "Timbuktu", "anns": 7.125} if who == "ann" else {"city": "Berlin"}
        id, arms = f"d{number}", [f"arm {number % 3}"]
        log.write(DecisionMade(id, own, arms, [0.5], 3, 0, 0, 10 * SECOND, subject=who))
        log.write(RewardCame(id, float(number % 2)))
    log.let_pass(60)
    learn_all(Learner(config))
    assert b"Timbuktu" in bytes_in(current_of(config).folder)

    forgotten(tmp_path)
    steps = learn_all(Learner(config))

    found = bytes_in(current_of(config).folder)
    assert [step.did for step in steps] == ["published", "waited"]
    assert not any(one in found for one in (b"Timbuktu", b"anns", b"7.125"))
    assert b"Berlin" in found
    schema = learned_by(config).blueprint.context.schema
    kept = schema.encode_one({"city": "Berlin"})
    assert np.count_nonzero(kept) == 1


def test_who_was_not_learned_yet_makes_no_version_due(tmp_path: Path) -> None:
    config = learned_once(tmp_path / "a")
    log = LittleLog(tmp_path / "a")
    log.now = 100 * SECOND
    write_of(log, "bob", 1)
    log.close()

    assert forgotten(tmp_path / "a", "bob").decisions == 1

    assert learn_all(Learner(config))[0].did == "waited"


def test_a_version_without_it_that_is_refused_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = learned_once(tmp_path / "a")
    forgotten(tmp_path / "a")
    monkeypatch.setattr(candidate_checks, "is_finite", lambda policy: False)

    steps = learn_all(Learner(config))

    assert [step.did for step in steps] == ["refused", "waited"]


@pytest.mark.parametrize("step", ["joined", "trained", "saved frozen"])
def test_a_version_in_training_meanwhile_is_dropped_and_made_anew(
    tmp_path: Path, step: str
) -> None:
    config, expected = (ready_to_learn(tmp_path / name) for name in ("a", "b"))
    forgotten(tmp_path / "b")
    learn_all(Learner(expected))

    learn_all(Learner(config, reached=once_at(step, lambda: forgotten(tmp_path / "a"))))

    assert current_of(config).hash == current_of(expected).hash
    assert current_of(config).version == 1


def test_checkpoints_of_before_are_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_SHARE", 0.0)
    config, expected = (ready_to_learn(tmp_path / name) for name in ("a", "b"))
    forgotten(tmp_path / "b")
    learn_all(Learner(expected))

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_all(Learner(config, reached=once_at("checkpointed", die)))
    forgotten(tmp_path / "a")
    learn_all(Learner(config))

    assert current_of(config).hash == current_of(expected).hash


def ready_to_learn(folder: Path) -> Config:
    """Return a service with version 0 alone, and enough for another."""
    folder.mkdir()
    config, log = little_config(folder), LittleLog(folder)
    learn_all(Learner(config))
    write_of(log, "ann", 1)
    log.decide(25)
    log.close()
    return config


def once_at(wanted: str, work: Callable[[], object]) -> Callable[[str], None]:
    """Return what does something the first time that a step is reached."""
    done: list[str] = []

    def reached(step: str) -> None:
        if step == wanted and not done:
            done.append(step)
            work()

    return reached


def test_the_receipt_says_how_much_and_not_of_whom(
    service: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    (tmp_path / "events.db.version-5").write_text("an older one")

    made = forgotten(tmp_path)

    notes = json.loads(Path(made.receipt).read_text())
    assert notes["decisions"] == 2
    assert notes["copies"] == ["events.db.version-5"]
    assert "learn.keep = 5" in notes["until"]
    assert "ann" not in Path(made.receipt).read_text()
