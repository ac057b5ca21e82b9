"""Which policies have played which datasets, in seeds, and why the others have not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lab.experiments.comparison import DATASETS, Standing, longest
from lab.experiments.policies import NINE
from lab.experiments.report_tables import Table, plainest
from lab.experiments.results import DRAWN_FACES
from lab.experiments.sections import Notes, Section
from lab.experiments.suite_file import read_suite

_RELATED = (
    *("Learned best arm", "LinUCB", "GLOC", "GLOC-TS", "QGLOC", "GLM-UCB", "KernelUCB"),
    *("NeuralLinear", "Bootstrapped heads", "Variational layer"),
    *("Default TS by scan", "Default TS by ascent", "Default TS by generator"),
    *("Default UCB by scan", "Default UCB by ascent", "Default UCB by generator"),
    "Default TS by spanner",
)
_SHARED_ALONE = ("GLOC", "GLOC-TS", "QGLOC", "GLM-UCB", "KernelUCB")
_FEW_WITHOUT_FEATURES = ("bibtex", "omniglot")
_NEW, _LICENCE, _SHARED = "a", "b", "c"
_REASONS = {
    _NEW: "not played by code whose rows are kept: on two shared cores the hours went to what is "
    "counted. `{}` adds rows (`run continuum` those of a box); "
    "[older code](results-older.md) has figures of most of the paper's policies.",
    _LICENCE: "CelebA's pictures are for research that is not commercial, and were not had; drawn "
    "faces stand in their place, under that name.",
    _SHARED: "it shares what it learns by features of arms, which these few arms have not.",
}
_TIMES = (
    "Run times (single, batch, training, Thompson sampling and UCB) are not kept as rows: those of "
    "[older code](results-older.md#run-time) stand, `python -m lab experiment runtime` makes them "
    "anew on a quiet machine. A GPU could not be had since, so what it measured is older, too."
)


def empty_cells(standings: Iterable[Standing]) -> Iterator[Section]:
    """Return a section of the seeds of all policies on the paper's datasets and on a continuum."""
    known = [s for s in longest(standings) if s.preset == "default"]
    settings = plainest(standing.setting for standing in known)
    seeds = {
        (s.setting.dataset, s.policy): str(len(s.by_seed)) for s in known if s.setting in settings
    }
    if not seeds:
        return
    catalogues = _columns("paper")
    text = (
        "Seeds that each policy played with the default preset; a letter is the reason why there "
        "are none. A continuum has its own policies."
    )
    tables = [
        _table(catalogues, (*NINE, *_RELATED), seeds),
        _table(_columns("continuum"), read_suite("continuum").parts[0].policies, seeds),
    ]
    played = 'python -m lab experiment run paper --datasets … --policies "…" --seeds 10 --keep '
    played += "docs/results/paper.jsonl"
    lines = tuple(f"{letter}: {why.format(played)}" for letter, why in _REASONS.items())
    yield Section("What was played, and what was not", (text, *tables, Notes((*lines, _TIMES))))


def _columns(suite: str) -> tuple[str, ...]:
    """Return the datasets of a suite, drawn faces beside the real ones."""
    names = dict.fromkeys(part.dataset for part in read_suite(suite).parts)
    both = {"celeba": ("celeba", DRAWN_FACES)}
    return tuple(each for name in names for each in both.get(name, (name,)))


def _table(
    columns: tuple[str, ...], policies: tuple[str, ...], seeds: dict[tuple[str, str], str]
) -> Table:
    rows = [
        (policy, *(seeds.get((name, policy), _reason(policy, name)) for name in columns))
        for policy in policies
    ]
    headings = ("seeds", *(DATASETS.get(name, name) for name in columns))
    return Table(headings, tuple(rows))


def _reason(policy: str, dataset: str) -> str:
    if dataset == "celeba":
        return _LICENCE
    return _SHARED if policy in _SHARED_ALONE and dataset in _FEW_WITHOUT_FEATURES else _NEW
