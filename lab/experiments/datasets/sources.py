"""Where the files of each dataset come from, and on what terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Download:
    """One file to fetch; of a zip, the folder `inside` becomes `to` (below the data folder)."""

    url: str
    to: str
    inside: str | None = None


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from; `files` are paths where its main file may lie.

    `rounds` and `arms` are those of the usual file with the usual options, where known.
    """

    name: str
    what: str
    terms: str
    page: str
    files: tuple[str, ...]
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    rounds: int | None = None
    arms: int | None = None


def _movielens(version: str, name: str | None = None, *, ending: str = "csv") -> Source:
    short = version.removeprefix("ml-")
    inside = {"ml-10m": "ml-10M100K"}.get(version, version)
    folders = [f"movielens/{version}", f"movielens-{short}/{version}", version, inside]
    if version == "ml-latest-small":
        folders.append("movielens")
    zipped = f"https://files.grouplens.org/datasets/movielens/{version}.zip"
    return Source(
        name or version,
        f"MovieLens ratings ({version})",
        "research with citation; no commercial use without permission",
        f"https://grouplens.org/datasets/movielens/{short.removesuffix('-small')}/",
        tuple(f"{folder}/ratings.{ending}" for folder in dict.fromkeys(folders)),
        (Download(zipped, f"movielens/{version}", inside),),
    )


_OMNIGLOT = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
_OPEN_BANDIT = "https://raw.githubusercontent.com/st-tech/zr-obp/master/obd"
_LOGS = [
    f"{policy}/{campaign}/{file}.csv"
    for policy in ("random", "bts")
    for campaign in ("all", "men", "women")
    for file in (campaign, "item_context")
]

_TABLE = (
    Source(
        "bibtex",
        "tags of bibliography entries (Mulan, or the Extreme Classification Repository)",
        "none stated; from BibSonomy, ECML/PKDD 2008 discovery challenge",
        "https://mulan.sourceforge.net/datasets-mlc.html",
        tuple(
            f"{folder}{file}"
            for folder in ("bibtex/", "Bibtex/", "")
            for file in ("bibtex.arff", "Bibtex_data.txt", "Bibtex_data.txt.gz")
        ),
        by_hand="Get bibtex.rar at https://mulan.sourceforge.net/datasets-mlc.html and unpack "
        "bibtex.arff, or get Bibtex_data.txt at "
        "http://manikvarma.org/downloads/XC/XMLRepository.html",
        rounds=7_395,
        arms=159,
    ),
    Source(
        "celeba",
        "pictures of celebrities' faces, and whose they are",
        "non-commercial research only",
        "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        tuple(
            f"{home}{folder}identity_CelebA.txt"
            for home in ("celeba/", "CelebA/", "")
            for folder in ("", "Anno/")
        ),
        by_hand="Get identity_CelebA.txt (folder Anno) and img_align_celeba.zip (folder Img) at "
        "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        rounds=70_838,
        arms=2_360,
    ),
    Source(
        "omniglot",
        "handwritten characters of 50 alphabets",
        "MIT",
        "https://github.com/brendenlake/omniglot",
        tuple(
            f"{home}images_background{ending}"
            for ending in (".npz", "", ".zip", "_small1", "_small1.zip")
            for home in ("omniglot/", "omniglot/python/", "omniglot-py/", "")
        ),
        tuple(
            Download(f"{_OMNIGLOT}/{part}.zip", f"omniglot/{part}", part)
            for part in ("images_background", "images_evaluation")
        ),
        rounds=32_460,
        arms=1_623,
    ),
    Source(
        "openbandit",
        "logged recommendations of a fashion shop (Open Bandit Dataset, small version)",
        "Apache-2.0 for the repository, cite the paper",
        "https://github.com/st-tech/zr-obp",
        tuple(
            f"{home}/random/all/all.csv"
            for home in ("openbandit/obd", "obd", "openbandit", "open_bandit_dataset")
        ),
        tuple(Download(f"{_OPEN_BANDIT}/{log}", f"openbandit/obd/{log}") for log in _LOGS),
        rounds=10_000,
        arms=80,
    ),
    replace(_movielens("ml-latest-small", "movielens"), rounds=6_100, arms=9_724),
    *(_movielens(version) for version in ("ml-latest", "ml-32m", "ml-25m")),
    *(_movielens(version, ending="dat") for version in ("ml-10m", "ml-1m")),
    Source(
        "the-movies",
        "ratings, metadata and keywords of movies (The Movies Dataset)",
        "see the page; the ratings are MovieLens data",
        "https://www.kaggle.com/datasets/rounakbanik/the-movies-dataset",
        tuple(
            f"{folder}/{ratings}.csv"
            for folder in ("the-movies", "the-movies-dataset")
            for ratings in ("ratings_small", "ratings")
        ),
        by_hand="Get ratings_small.csv, links_small.csv, movies_metadata.csv and keywords.csv at "
        "https://www.kaggle.com/datasets/rounakbanik/the-movies-dataset",
        rounds=6_710,
        arms=9_066,
    ),
)
SOURCES: Mapping[str, Source] = MappingProxyType({source.name: source for source in _TABLE})
