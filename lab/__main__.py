"""The laboratory's command line: `python -m lab ...`, from a checkout."""

from __future__ import annotations

import os

import click

from fastbandit.cli.main import Lazy, LazyGroup, run
from lab.faults.stopping import ending_by_signals

_COMMANDS: Lazy = {
    "architecture": (
        "lab.architecture",
        "architecture_command",
        "Draw the floors of the package from its imports.",
    ),
    "data": (
        "lab.experiments.datasets.command",
        "data_command",
        "List, fetch and check the files of datasets.",
    ),
    "figures": (
        "lab.published.command",
        "figures_command",
        "Sample the figures that README and docs show, and make them again.",
    ),
    "report": (
        "lab.experiments.report",
        "report_command",
        "Write result files as tables, figures and a page.",
    ),
    "routing": (
        "lab.experiments.model_routing",
        "routing_command",
        "Route prompts among language models within a budget, beside other routers.",
    ),
    "shop": (
        "lab.experiments.shop",
        "shop_command",
        "Sell in a synthetic shop with default settings, beside popularity.",
    ),
    "size": (
        "lab.size",
        "size_command",
        "Measure the shape of the package beside its bars.",
    ),
    "tune": (
        "lab.experiments.tune",
        "tune_command",
        "Search for settings that earn more, and write them as a file.",
    ),
}
_BENCHMARKS: Lazy = {
    "arm-effects": (
        "lab.benchmarks.arm_effects",
        "arm_effects_command",
        "Time one decision with arms' own constants and without, and audit what is found.",
    ),
    "batch": (
        "lab.benchmarks.batch",
        "batch_command",
        "Time batches, frozen and in torch, on one core and on all.",
    ),
    "before-after": (
        "lab.benchmarks.before_after",
        "before_after_command",
        "Time one decision of this tree beside that of another commit.",
    ),
    "deltas": (
        "lab.benchmarks.deltas",
        "deltas_command",
        "Time how soon decisions know a reward that was acknowledged.",
    ),
    "encode": (
        "lab.benchmarks.encode",
        "encode_command",
        "Time how named columns become numbers: one context, and a large table.",
    ),
    "engines": (
        "lab.benchmarks.engines",
        "engines_command",
        "Learn one log in one process and on workers of Ray, and compare.",
    ),
    "explain": (
        "lab.benchmarks.explain",
        "explain_command",
        "Time explanations of decisions, and add their parts up.",
    ),
    "gpu": (
        "lab.benchmarks.gpu",
        "gpu_command",
        "Time large batches on a GPU, beside the exhaustive search.",
    ),
    "index": (
        "lab.benchmarks.index",
        "index_command",
        "Compare our partitions and hops with the inverted lists of faiss.",
    ),
    "log": (
        "lab.benchmarks.log",
        "log_command",
        "Time appends to the event log, in PostgreSQL and in SQLite.",
    ),
    "named": (
        "lab.benchmarks.named",
        "named_command",
        "Time selects over HTTP by name, beside the same features as lists.",
    ),
    "peers": (
        "lab.benchmarks.peers",
        "peers_command",
        "Time one decision of other libraries beside ours.",
    ),
    "rank": (
        "lab.benchmarks.rank",
        "rank_command",
        "Time ranks of Personalizer over HTTP, with actions that they bring.",
    ),
    "score": (
        "lab.benchmarks.score",
        "score_command",
        "Score files of contexts with one worker and with two, and after kills.",
    ),
    "select": (
        "lab.benchmarks.select",
        "select_command",
        "Time one decision of a frozen bandit as arms grow, and audit it.",
    ),
    "years": (
        "lab.benchmarks.years",
        "years_command",
        "Learn, age and forget a log of many days.",
    ),
}
_EXPERIMENTS: Lazy = {
    "bakeoff": (
        "lab.bakeoff.command",
        "bakeoff_command",
        "Play the same rounds with fastbandit and with other libraries.",
    ),
    "equal-latency": (
        "lab.equal_latency.command",
        "equal_latency_command",
        "Play the same rounds with each system, and time one decision of each.",
    ),
    "multiple-plays": (
        "lab.experiments.multiple_plays",
        "multiple_plays_command",
        "Play as many arms a round as pay for their cost, beside fixed numbers of plays.",
    ),
    "per-request-actions": (
        "lab.experiments.per_request_actions",
        "per_request_actions_command",
        "Play classes as actions with features, beside Vowpal Wabbit on the same DSJSON.",
    ),
    "run": (
        "lab.experiments.suite",
        "run_command",
        "Play a suite of datasets and policies, one result file a run.",
    ),
    "runtime": (
        "lab.experiments.runtime",
        "runtime_command",
        "Time decisions and updates of neural policies, beside the paper's times.",
    ),
    "scaling": (
        "lab.experiments.scaling",
        "scaling_command",
        "Measure time and memory as the number of arms grows, or that of rounds.",
    ),
    "text-widths": (
        "lab.experiments.text_widths",
        "text_widths_command",
        "Compare held-out losses as texts become fewer numbers.",
    ),
}
_ESTIMATORS: Lazy = {
    "coverage": (
        "lab.estimators.command",
        "coverage_command",
        "Count how often intervals hold the truth, over synthetic logs.",
    ),
    "open-bandit": (
        "lab.estimators.command",
        "open_bandit_command",
        "Judge each policy of the Open Bandit data from the log of the other.",
    ),
    "speed": (
        "lab.estimators.command",
        "speed_command",
        "Time an evaluation of many rounds over many arms.",
    ),
}
_FAULTS: Lazy = {
    "behind": (
        "lab.faults.behind",
        "behind_command",
        "Let a learner be too slow, hang, or be killed faster than it trains.",
    ),
    "clock": (
        "lab.faults.clock",
        "clock_command",
        "Step the wall clock of a log ahead and back.",
    ),
    "cluster": (
        "lab.faults.cluster",
        "cluster_command",
        "Kill deciders, trainers and the database of a cluster under load.",
    ),
    "disk": (
        "lab.faults.disk",
        "disk_command",
        "Let the disk of a service be full, then read-only.",
    ),
    "flips": (
        "lab.faults.flips",
        "flips_command",
        "Flip a bit of the newest version, restart, and see an older one stand in.",
    ),
    "kills": (
        "lab.faults.kills",
        "kills_command",
        "Kill the processes of a service at random moments under load.",
    ),
    "learning": (
        "lab.faults.delayed",
        "learning_command",
        "Compare what a service earns with late rewards and the loop in one process.",
    ),
    "mutants": (
        "lab.faults.mutants",
        "mutants_command",
        "Change saved bandits, hashes made anew, and load and ask each.",
    ),
    "overload": (
        "lab.faults.overload",
        "overload_command",
        "Send a service five times what it can answer.",
    ),
    "power-cut": (
        "lab.faults.power_cut",
        "power_cut_command",
        "Cut the power of an event log at random moments.",
    ),
    "publish": (
        "lab.faults.publishing",
        "publish_command",
        "Publish versions to several deciders under load.",
    ),
    "ray": (
        "lab.faults.ray_kills",
        "ray_command",
        "Kill workers and whole nodes of a Ray cluster while it works.",
    ),
    "report": (
        "lab.faults.report",
        "report_command",
        "Write what campaigns measured into a page.",
    ),
    "requests": (
        "lab.faults.requests",
        "requests_command",
        "Send a service requests of every wrong kind.",
    ),
    "swaps": (
        "lab.faults.swaps",
        "swaps_command",
        "Swap the version that serves under load.",
    ),
    "throughput": (
        "lab.faults.throughput",
        "throughput_command",
        "Measure how many decisions a second a service makes, beside a bare handler.",
    ),
    "shared-log": (
        "lab.faults.shared_log",
        "shared_log_command",
        "Try a shared log and store at their worst: outages, large requests, damage.",
    ),
    "trainers": (
        "lab.faults.trainers",
        "trainers_command",
        "Kill the trainer of a cluster that works, and let another take over.",
    ),
    "unauthenticated": (
        "lab.faults.unauthenticated",
        "unauthenticated_command",
        "Throw headers, bodies and slow connections at a service without a key.",
    ),
    "workers": (
        "lab.faults.worker_costs",
        "workers_command",
        "Compare a service of one process with one of several workers.",
    ),
    "worst-request": (
        "lab.faults.worst_request",
        "worst_request_command",
        "Send the largest requests that a service permits, and time the others.",
    ),
}
_PLANS: Lazy = {
    "cluster": (
        "lab.planning.command",
        "cluster_command",
        "Count the machines that a load needs.",
    ),
    "search": (
        "lab.planning.command",
        "search_command",
        "Measure which search so many arms need on this machine.",
    ),
}


def with_one_thread() -> None:
    """Keep NumPy, which is not imported yet, to one thread: work is compared, not cores."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def cli() -> None:
    """Measure how good fastbandit is: what it earns, how fast it is, what it survives."""


@cli.group(cls=LazyGroup, lazy=_EXPERIMENTS)
def experiment() -> None:
    """Measure policies against data."""


@cli.group(cls=LazyGroup, lazy=_BENCHMARKS, before=with_one_thread)
def bench() -> None:
    """Measure how fast decisions are on this machine."""


@cli.group(cls=LazyGroup, lazy=_ESTIMATORS)
def estimators() -> None:
    """Check the estimators of a policy's value where the truth is known."""


@cli.group(cls=LazyGroup, lazy=_FAULTS)
def faults() -> None:
    """Try to break a service, and see what it keeps."""
    click.get_current_context().with_resource(ending_by_signals())


@cli.group(cls=LazyGroup, lazy=_PLANS)
def plan() -> None:
    """Plan for a load: its machines, and its search."""


if __name__ == "__main__":
    run(cli, None, prog_name="python -m lab")
