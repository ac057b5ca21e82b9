"""A learner reads the log once there is one, in pages, and notices new versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_service import LittleLog, little_config

from fastbandit.learning import service_data
from fastbandit.learning.service_data import ServiceData


def seqs(data: ServiceData, **limits: int) -> list[int]:
    return [event.seq for event in data.events(**limits)]


@pytest.fixture
def data(tmp_path: Path) -> ServiceData:
    return ServiceData(little_config(tmp_path))


def test_a_log_is_opened_once_it_is_there(data: ServiceData, tmp_path: Path) -> None:
    assert data.log is None
    assert seqs(data, after=0) == []

    LittleLog(tmp_path).let_pass(1)

    assert seqs(data, after=0) == [1]
    assert data.log is data.log
    data.close()


@pytest.mark.parametrize("page", [1, 3, 100])
def test_pages_make_up_the_log(
    data: ServiceData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(service_data, "_PAGE", page)
    LittleLog(tmp_path).decide(5)

    assert seqs(data, after=0) == list(range(1, 11))
    assert seqs(data, after=4) == list(range(5, 11))
    assert seqs(data, after=2, until=7) == [3, 4, 5, 6, 7]
    assert seqs(data, after=7, until=7) == []
    data.close()


def test_no_page_begins_after_so_many_events(
    data: ServiceData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_data, "_PAGE", 2)
    LittleLog(tmp_path).decide(5)

    assert seqs(data, after=0, most=3) == [1, 2, 3, 4]
    data.close()


def test_the_pointer_differs_once_it_is_written_again(data: ServiceData) -> None:
    assert data.pointer() is None
    path = data.store.pointer
    path.parent.mkdir()
    path.write_text("{}")
    first = data.pointer()

    beside = path.with_name("beside")
    beside.write_text("{}")
    beside.replace(path)

    assert first is not None
    assert data.pointer() not in (None, first)
