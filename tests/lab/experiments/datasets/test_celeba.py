"""Faces in the layout of CelebA become a bandit; a sample of drawn ones says what it is."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from fastbandit.errors import DataError, SettingError
from fastbandit.features.kinds import Image
from lab.experiments.datasets import celeba, load
from lab.experiments.environment import Tabled
from lab.experiments.results import REAL_FACES


def write_faces(data: Path, counts: dict[int, int]) -> Path:
    """Write plain gray pictures in the real layout; person p is p times 20 bright."""
    home = data / "celeba"
    (home / "img_align_celeba").mkdir(parents=True)
    people = [person for person, count in counts.items() for _ in range(count)]
    lines = []
    for row, person in enumerate(people[::-1], start=1):
        picture = Pillow.new("RGB", (178, 218), (20 * person,) * 3)
        picture.save(home / "img_align_celeba" / f"{row:06d}.jpg")
        lines.append(f"{row:06d}.jpg {person}\n")
    (home / "identity_CelebA.txt").write_text("".join(lines))
    return home


def faces(data: Path, **options: int) -> Tabled:
    environment = load("celeba", data=data, **options)
    assert isinstance(environment, Tabled)
    return environment


def test_every_picture_is_worth_its_own_identity(tmp_path: Path) -> None:
    write_faces(tmp_path, {3: 2, 7: 3})

    environment = faces(tmp_path, least_images=2)

    assert environment.context == Image(84, 64)
    assert (environment.rounds, environment.size, environment.arms, environment.ids) == (
        5,
        2,
        None,
        ["3", "7"],
    )
    shown = np.rint(environment.contexts(0, 5).mean(axis=(1, 2)) * 255 / 20)
    arms = np.where(shown == 3, 0, 1)
    assert environment.expected(0, arms).tolist() == [1.0] * 5
    assert environment.observed(0, 1 - arms).tolist() == [0.0] * 5


def test_contexts_are_gray_float32_between_zero_and_one(tmp_path: Path) -> None:
    write_faces(tmp_path, {3: 2, 12: 2})

    contexts = faces(tmp_path, least_images=2).contexts(0, 4)

    assert contexts.dtype == np.float32
    assert contexts.shape == (4, 84, 64)
    assert contexts.max() == pytest.approx(240 / 255, abs=0.01)


def test_identities_with_few_pictures_are_left_out(tmp_path: Path) -> None:
    write_faces(tmp_path, {1: 3, 2: 1, 5: 3, 9: 4})

    assert faces(tmp_path, least_images=3).ids == ["1", "5", "9"]
    assert faces(tmp_path, least_images=3, identities=2).ids == ["1", "5"]


def test_a_zip_is_read_without_unpacking_it(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})
    before = faces(tmp_path, least_images=2).contexts(0, 5)
    with zipfile.ZipFile(home / "img_align_celeba.zip", "w") as archive:
        for path in sorted((home / "img_align_celeba").iterdir()):
            archive.write(path, f"img_align_celeba/{path.name}")
            path.unlink()
    (home / "img_align_celeba").rmdir()

    assert np.array_equal(faces(tmp_path, least_images=2).contexts(0, 5), before)
    assert not (home / "img_align_celeba").exists()


def test_what_was_read_once_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_faces(tmp_path, {3: 2, 7: 3})
    before = faces(tmp_path, least_images=2).contexts(0, 5)
    monkeypatch.setattr(celeba, "read_gray", None)

    assert np.array_equal(faces(tmp_path, least_images=2).contexts(0, 5), before)


def test_a_damaged_cache_is_read_past(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})
    before = faces(tmp_path, least_images=2).contexts(0, 5)
    (cache,) = home.glob("faces_*.npz")
    cache.write_bytes(cache.read_bytes()[:50])

    assert np.array_equal(faces(tmp_path, least_images=2).contexts(0, 5), before)


def test_a_picture_that_is_missing_is_named(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})
    (home / "img_align_celeba" / "000002.jpg").unlink()

    with pytest.raises(DataError, match=r"needs the picture 000002\.jpg"):
        faces(tmp_path, least_images=2)


def test_a_picture_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})
    (home / "img_align_celeba" / "000002.jpg").write_bytes(b"no picture")

    with pytest.raises(DataError, match="whole JPEG or PNG"):
        faces(tmp_path, least_images=2)


def test_a_line_of_another_form_is_named(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})
    (home / "identity_CelebA.txt").write_text("000001.jpg 3\n000002.jpg\n")

    with pytest.raises(DataError, match=r"line 2 has '000002\.jpg'"):
        faces(tmp_path)


def test_pictures_need_to_lie_beside_the_list(tmp_path: Path) -> None:
    home = tmp_path / "celeba"
    home.mkdir()
    (home / "identity_CelebA.txt").write_text("000001.jpg 3\n000002.jpg 4\n")

    with pytest.raises(DataError, match=r"img_align_celeba\.zip beside identity_CelebA\.txt"):
        faces(tmp_path, least_images=1)


def test_too_few_identities_are_refused(tmp_path: Path) -> None:
    write_faces(tmp_path, {3: 2, 7: 3})

    with pytest.raises(DataError, match="two identities with 30 pictures or more: found 0"):
        faces(tmp_path)


def test_missing_data_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"celeba/identity_CelebA\.txt"):
        faces(tmp_path)


# -- the sample


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    celeba.write_sample(data / "celeba", identities=4, images=6, seed=1)
    return data


def test_a_sample_has_the_layout_of_the_real_data(sample: Path) -> None:
    lines = (sample / "celeba" / "identity_CelebA.txt").read_text().splitlines()
    pictures = sorted((sample / "celeba" / "img_align_celeba").iterdir())

    assert [line.split()[0] for line in lines] == [path.name for path in pictures]
    assert len({line.split()[1] for line in lines}) == 4
    with Pillow.open(pictures[0]) as picture:
        assert (picture.size, picture.mode, picture.format) == ((178, 218), "RGB", "JPEG")


def test_a_sample_says_that_it_is_generated(sample: Path) -> None:
    environment = faces(sample, least_images=2)

    assert environment.notes == ("a generated sample: drawn faces, not CelebA",)
    assert "GENERATED" in (sample / "celeba" / "README.txt").read_text()


def test_real_data_is_not_said_to_be_generated(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})
    (home / "README.txt").write_text("as downloaded")

    assert faces(tmp_path, least_images=2).notes == (REAL_FACES,)


def test_pictures_of_a_person_are_alike_but_not_the_same(sample: Path) -> None:
    environment = faces(sample, least_images=2)
    pictures = environment.contexts(0, 24).reshape(24, -1)
    worth = np.array([environment.expected(0, np.full(24, arm)) for arm in range(4)])
    whom = worth.argmax(axis=0)

    away = np.linalg.norm(pictures[:, None] - pictures[None], axis=2)
    same = whom[:, None] == whom[None]
    assert away[same & (away > 0)].min() > 1.0
    assert away[same].sum() / (same.sum() - 24) < away[~same].mean()


def test_the_same_seed_draws_the_same_sample(sample: Path, tmp_path: Path) -> None:
    again = celeba.write_sample(tmp_path / "celeba", identities=4, images=6, seed=1)

    for file in ("identity_CelebA.txt", "img_align_celeba/000007.jpg"):
        assert (again / file).read_bytes() == (sample / "celeba" / file).read_bytes()


def test_a_sample_never_replaces_real_data(tmp_path: Path) -> None:
    home = write_faces(tmp_path, {3: 2, 7: 3})

    with pytest.raises(DataError, match="not generated"):
        celeba.write_sample(home)


@pytest.mark.parametrize("place", ["img_align_celeba", "Img/img_align_celeba.zip"])
def test_a_sample_never_joins_pictures_that_have_no_list(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)

    with pytest.raises(DataError, match=rf"holds {place} already.*Name another folder"):
        celeba.write_sample(tmp_path, identities=2, images=1)

    assert not (tmp_path / "README.txt").exists()
    assert not any((tmp_path / place).iterdir())


def test_a_sample_may_take_the_place_of_another(tmp_path: Path) -> None:
    for identities in (3, 2):
        celeba.write_sample(tmp_path / "celeba", identities=identities, images=2)

    assert faces(tmp_path, least_images=2).size == 2


def test_settings_out_of_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="identities=1"):
        faces(tmp_path, identities=1)
    with pytest.raises(SettingError, match="identities=1"):
        celeba.write_sample(tmp_path, identities=1)
