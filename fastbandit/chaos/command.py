"""The commands of `fastbandit chaos`, each imported only when it is run."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str, str]] = {
    "cluster": (
        "fastbandit.chaos.cluster",
        "cluster_command",
        "Kill deciders, trainers and the database of a cluster under load.",
    ),
    "disk": (
        "fastbandit.chaos.disk",
        "disk_command",
        "Let the disk of a service be full, then read-only.",
    ),
    "kills": (
        "fastbandit.chaos.kills",
        "kills_command",
        "Kill a service and its learner at random moments under load.",
    ),
    "learning": (
        "fastbandit.chaos.delayed",
        "learning_command",
        "Compare what a service earns with late rewards and the loop in one process.",
    ),
    "overload": (
        "fastbandit.chaos.overload",
        "overload_command",
        "Send a service five times what it can answer.",
    ),
    "power-cut": (
        "fastbandit.chaos.power_cut",
        "power_cut_command",
        "Cut the power of an event log at random moments.",
    ),
    "publish": (
        "fastbandit.chaos.publishing",
        "publish_command",
        "Publish versions to several deciders under load.",
    ),
    "ray": (
        "fastbandit.chaos.ray_kills",
        "ray_command",
        "Kill workers and whole nodes of a Ray cluster while it works.",
    ),
    "report": (
        "fastbandit.chaos.report",
        "report_command",
        "Write what campaigns measured into a page.",
    ),
    "requests": (
        "fastbandit.chaos.requests",
        "requests_command",
        "Send a service requests of every wrong kind.",
    ),
    "swaps": (
        "fastbandit.chaos.swaps",
        "swaps_command",
        "Swap the version that serves under load.",
    ),
    "throughput": (
        "fastbandit.chaos.throughput",
        "throughput_command",
        "Measure how many decisions a second a service makes, beside a bare handler.",
    ),
    "trainers": (
        "fastbandit.chaos.trainers",
        "trainers_command",
        "Kill the trainer of a cluster that works, and let another take over.",
    ),
}
"""Commands by name: the module and the attribute that hold each, and what its help says."""
