"""Drawings in arrays, folders or zips become the same bandit."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from fastbandit.errors import DataError, SettingError
from fastbandit.features.kinds import Image
from lab.experiments.datasets import load
from lab.experiments.datasets.images import read_gray, shrink
from lab.experiments.environment import Tabled

PARTS = {
    "images_background": [("Greek", "character01"), ("Greek", "character02")],
    "images_evaluation": [("Tengwar", "character01")],
}


def paper(part: str) -> np.ndarray:
    """Return drawings (classes, 20, 105, 105), True where there is no ink."""
    numbers = np.random.default_rng(len(part))
    return numbers.random((len(PARTS[part]), 20, 105, 105)) < 0.8


def write_arrays(data: Path) -> Path:
    home = data / "omniglot"
    home.mkdir(parents=True)
    lines = ["split,char_id,alphabet,character"]
    for part, characters in PARTS.items():
        np.savez_compressed(home / f"{part}.npz", images=paper(part))
        lines += [f"{part},{len(lines) + i},{a},{c}" for i, (a, c) in enumerate(characters)]
    (home / "classes.csv").write_text("\n".join(lines))
    return home


def write_folders(data: Path) -> Path:
    home, number = data / "omniglot", 0
    for part, characters in PARTS.items():
        for row, (alphabet, character) in enumerate(characters):
            number += 1
            folder = home / part / alphabet / character
            folder.mkdir(parents=True)
            for person in range(20):
                bits = np.where(paper(part)[row, person], 255, 0).astype(np.uint8)
                picture = Pillow.fromarray(bits).convert("1")
                picture.save(folder / f"{number:04d}_{person + 1:02d}.png")
    return home


def zip_part(home: Path, part: str, *, name: str | None = None) -> None:
    with zipfile.ZipFile(home / f"{name or part}.zip", "w") as archive:
        for path in sorted((home / part).rglob("*.png")):
            archive.write(path, Path(name or part) / path.relative_to(home / part))


def drawings(data: Path, **options: Any) -> Tabled:
    environment = load("omniglot", data=data, **options)
    assert isinstance(environment, Tabled)
    return environment


def test_every_drawing_is_worth_its_own_character(tmp_path: Path) -> None:
    write_arrays(tmp_path)

    environment = drawings(tmp_path)

    assert environment.context == Image(28, 28)
    assert (environment.rounds, environment.size, environment.arms) == (60, 3, None)
    assert environment.ids == ["Greek/character01", "Greek/character02", "Tengwar/character01"]
    assert np.array_equal(
        environment.expected_rewards.sum(axis=0).ravel().tolist()[0], [20, 20, 20]
    )
    assert environment.ceiling(0, 60).tolist() == [1.0] * 60


def test_ink_is_one_and_paper_zero(tmp_path: Path) -> None:
    home = write_arrays(tmp_path)
    blank = np.ones((2, 20, 105, 105), dtype=bool)
    blank[1] = False
    np.savez_compressed(home / "images_background.npz", images=blank)

    environment = drawings(tmp_path, alphabet="Greek")

    pictures = np.asarray(environment.instances.dense)
    assert pictures.dtype == np.float32
    assert np.all(pictures[:20] == 0.0)
    assert np.all(pictures[20:] == 1.0)


def test_folders_and_zips_give_the_same_as_arrays(tmp_path: Path) -> None:
    write_arrays(tmp_path / "arrays")
    home = write_folders(tmp_path / "folders")
    other = tmp_path / "mixed" / "omniglot"
    other.mkdir(parents=True)
    zip_part(home, "images_background")
    (home / "images_background.zip").rename(other / "images_background.zip")
    (other / "images_evaluation").symlink_to(home / "images_evaluation")

    environments = [drawings(tmp_path / kind) for kind in ("arrays", "folders", "mixed")]

    for environment in environments[1:]:
        assert environment.ids == environments[0].ids
        assert np.array_equal(environment.contexts(0, 60), environments[0].contexts(0, 60))


def test_the_small_sets_are_joined_and_what_they_share_counts_once(tmp_path: Path) -> None:
    home = write_folders(tmp_path / "whole")
    small = tmp_path / "omniglot"
    small.mkdir()
    for number in (1, 2):
        zip_part(home, "images_background", name=f"images_background_small{number}")
        name = f"images_background_small{number}.zip"
        (home / name).rename(small / name)

    environment = drawings(tmp_path)

    assert (environment.rounds, environment.size) == (40, 2)
    assert "images_background_small2.zip" in environment.notes[0]


def test_the_first_part_alone_will_do(tmp_path: Path) -> None:
    home = write_arrays(tmp_path)
    (home / "images_evaluation.npz").unlink()

    assert drawings(tmp_path).size == 2


@pytest.mark.parametrize("write", [write_arrays, write_folders])
def test_an_alphabet_or_a_number_of_classes_makes_it_smaller(tmp_path: Path, write: Any) -> None:
    write(tmp_path)

    assert drawings(tmp_path, alphabet="Tengwar").ids == ["Tengwar/character01"]
    assert drawings(tmp_path, classes=2).rounds == 40
    assert drawings(tmp_path, classes=2, size=14).context == Image(14, 14)


def test_an_unknown_alphabet_names_the_known_ones(tmp_path: Path) -> None:
    write_arrays(tmp_path)

    with pytest.raises(SettingError, match="one of Greek, Tengwar: got 'Grek'"):
        drawings(tmp_path, alphabet="Grek")


@pytest.mark.parametrize("options", [{"size": 7}, {"classes": 1}])
def test_settings_out_of_range_are_refused(tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(SettingError, match="at least 8 pixels and at least 2 classes"):
        drawings(tmp_path, **options)


def test_arrays_need_the_names_of_their_classes(tmp_path: Path) -> None:
    (write_arrays(tmp_path) / "classes.csv").unlink()

    with pytest.raises(DataError, match=r"need classes\.csv beside them"):
        drawings(tmp_path)


def test_a_damaged_array_is_an_error(tmp_path: Path) -> None:
    (write_arrays(tmp_path) / "images_background.npz").write_bytes(b"no array")

    with pytest.raises(DataError, match="needs an array 'images'"):
        drawings(tmp_path)


def test_arrays_that_do_not_belong_to_the_names_are_refused(tmp_path: Path) -> None:
    home = write_arrays(tmp_path)
    np.savez_compressed(home / "images_background.npz", images=np.ones((5, 20, 9, 9), dtype=bool))

    with pytest.raises(DataError, match=r"shape \(2, 20, h, w\)"):
        drawings(tmp_path)


def test_a_folder_without_drawings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "omniglot" / "images_background").mkdir(parents=True)

    with pytest.raises(DataError, match=r"Alphabet/characterNN/CCCC_SS\.png: found none"):
        drawings(tmp_path)


def test_a_damaged_zip_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "omniglot").mkdir()
    (tmp_path / "omniglot" / "images_background.zip").write_bytes(b"no zip")

    with pytest.raises(DataError, match="whole zip file"):
        drawings(tmp_path)


def test_missing_data_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="python -m lab data fetch omniglot"):
        drawings(tmp_path)


# -- resizing


def test_shrinking_takes_the_mean_of_the_area() -> None:
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 4)

    assert np.allclose(shrink(image, height=3, width=2), [[[0.5, 2.5], [4.5, 6.5], [8.5, 10.5]]])
    assert np.allclose(shrink(image, height=2, width=4)[0, 0], (2 * image[0, 0] + image[0, 1]) / 3)


def test_shrinking_keeps_the_mean(numbers: np.random.Generator) -> None:
    images = numbers.random((3, 105, 105)).astype(np.float32)

    small = shrink(images, height=28, width=28)

    assert np.allclose(small.mean(axis=(1, 2)), images.mean(axis=(1, 2)), atol=1e-5)


def test_a_picture_is_read_from_a_file_or_from_bytes(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    Pillow.new("RGB", (20, 30), (51, 51, 51)).save(path)

    from_file = read_gray(path, height=10, width=8)

    assert from_file.shape == (10, 8)
    assert np.allclose(from_file, 0.2)
    assert np.array_equal(from_file, read_gray(path.read_bytes(), height=10, width=8))
