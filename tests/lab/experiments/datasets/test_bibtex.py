"""Bibtex reads the same from both of its layouts, and a damaged row names its line."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import DataError
from fastbandit.features.kinds import Sparse
from lab.experiments.datasets import bibtex, load
from lab.experiments.environment import Tabled

REAL = Path(os.environ.get("FASTBANDIT_DATA") or Path(__file__).parents[4] / "shared" / "data")

HEADER = """@relation little
% a comment
@attribute one {0,1}
@ATTRIBUTE 'word two' numeric
@attribute TAG_a {0,1}
@attribute three {0,1}
@attribute TAG_b {0,1}

@data
"""
SPARSE = HEADER + "{0 1,1 2.5,4 1}\n{}\n{2 1, 3 1, 4 1}\n"
DENSE = HEADER + "1,2.5,0,0,1\n0,0,0,0,0\n0,0,1,1,1\n"
TEXT = "3 3 2\n1 0:1.0 1:2.5\n\n0,1 2:1\n"

WORDS = [[1.0, 2.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
TAGS = [[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


def read(folder: Path, name: str, text: str) -> Tabled:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return bibtex.load(name="bibtex", data=folder, seed=0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bibtex.arff", SPARSE),
        ("bibtex.arff", DENSE),
        ("bibtex.arff", SPARSE.replace("\n", "\r\n")),
        ("Bibtex_data.txt", TEXT),
        ("Bibtex_data.txt.gz", TEXT),
        ("Bibtex_data.txt", TEXT + "\n\n"),
    ],
)
def test_every_layout_gives_the_same_words_and_tags(name: str, text: str, tmp_path: Path) -> None:
    env = read(tmp_path, name, text)

    assert env.instances.sparse is not None
    assert env.instances.sparse.toarray().tolist() == WORDS
    assert env.expected_rewards.toarray().tolist() == TAGS
    assert (env.context, env.arms, env.size, env.rounds) == (Sparse(3), None, 2, 3)


def test_tags_without_a_mark_are_the_last_attributes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bibtex, "_LABELS", 2)

    env = read(tmp_path, "bibtex.arff", SPARSE.replace("TAG_", ""))

    assert env.ids == ["three", "b"]
    assert env.expected_rewards.toarray().tolist() == [[0, 1], [0, 0], [1, 1]]


def test_a_row_without_tags_may_start_with_its_words(tmp_path: Path) -> None:
    env = read(tmp_path, "Bibtex_data.txt", "2 3 2\n 0:1 2:1\n1:1\n")

    assert env.expected_rewards.nnz == 0
    assert env.instances.sparse is not None
    assert env.instances.sparse.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]


def test_a_tag_earns_one_where_it_was_given(tmp_path: Path) -> None:
    env = read(tmp_path, "bibtex.arff", SPARSE)

    earned = np.array([env.expected(first, [1])[0] for first in range(3)])

    assert sorted(earned) == [0.0, 1.0, 1.0]
    assert np.array_equal(earned, [env.observed(first, [1])[0] for first in range(3)])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bibtex.arff", HEADER + "{0 1}\n{0 x}\n", "line 11: could not convert"),
        ("bibtex.arff", HEADER + "{0 1,4}\n", "line 10: pairs"),
        ("bibtex.arff", HEADER + "{0 1,5 1}\n", "line 10: indices go from 0 to 4"),
        ("bibtex.arff", HEADER + "{0 1,0 1}\n", "line 10: an index is named twice"),
        ("bibtex.arff", HEADER + "{0 1,1 1", "line 10: 5 numbers are needed, 2 came"),
        ("bibtex.arff", HEADER + "1,0,0,?,1\n", "line 10: could not convert"),
        ("bibtex.arff", HEADER + "1,0,0,nan,1\n", "line 10: pairs"),
        ("bibtex.arff", HEADER, "needs rows after @data"),
        ("bibtex.arff", "@relation little\n", "needs a line @data"),
        ("bibtex.arff", SPARSE.replace("TAG_", ""), "159 for tags: it has 5"),
        ("Bibtex_data.txt", "", "in its first line: got ''"),
        ("Bibtex_data.txt", "1 3\n0 1:1\n", "in its first line: got '1 3'"),
        ("Bibtex_data.txt", "2 3 2\n1 0:1\n1 0:1 2\n", "line 3: words are needed as index:number"),
        ("Bibtex_data.txt", "1 3 2\n1 3:1\n", "line 2: indices go from 0 to 2"),
        ("Bibtex_data.txt", "1 3 2\n2 0:1\n", "line 2: indices go from 0 to 1"),
        ("Bibtex_data.txt", "1 3 2\n0,,1 0:1\n", "line 2: invalid literal"),
        ("Bibtex_data.txt", "3 3 2\n1 0:1\n", "needs 3 rows, by its first line: it has 1"),
        ("Bibtex_data.txt", "1 3 2\n1 0:1\n1 0:1\n", "needs 1 rows, by its first line: it has 2"),
    ],
)
def test_damage_is_named_with_its_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, name, text)


@pytest.mark.skipif(not (REAL / "bibtex" / "bibtex.arff").exists(), reason="needs the real files")
def test_the_real_files_agree_and_have_the_published_sizes(tmp_path: Path) -> None:
    arff = load("bibtex", data=REAL)

    assert isinstance(arff, Tabled)
    assert arff.instances.sparse is not None
    assert arff.instances.sparse.shape == (7395, 1836)
    assert arff.expected_rewards.shape == (7395, 159)
    assert arff.expected_rewards.nnz / 7395 == pytest.approx(2.4019, abs=1e-4)
    if (REAL / "bibtex" / "Bibtex_data.txt.gz").exists():
        shutil.copy(REAL / "bibtex" / "Bibtex_data.txt.gz", tmp_path)
        text = load("bibtex", data=tmp_path)
        assert isinstance(text, Tabled)
        assert (arff.instances.sparse != text.instances.sparse).nnz == 0
        assert (arff.expected_rewards != text.expected_rewards).nnz == 0
