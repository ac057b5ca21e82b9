"""What would a policy have earned on a log that another one made?"""

from fastbandit.evaluation.diagnostics import Diagnostics
from fastbandit.evaluation.drawn_policies import Draws
from fastbandit.evaluation.estimators import (
    DR,
    IPS,
    MIPS,
    SNIPS,
    Contributions,
    DirectMethod,
    Estimator,
    PreparedRounds,
    Replay,
    SwitchDR,
)
from fastbandit.evaluation.expected import CrossFit
from fastbandit.evaluation.intervals import Interval
from fastbandit.evaluation.readers import read_rounds
from fastbandit.evaluation.report import Estimate, Evaluation
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy

__all__ = [
    "DR",
    "IPS",
    "MIPS",
    "SNIPS",
    "Contributions",
    "CrossFit",
    "Diagnostics",
    "DirectMethod",
    "Draws",
    "Estimate",
    "Estimator",
    "Evaluation",
    "Interval",
    "LoggedRounds",
    "PreparedRounds",
    "Replay",
    "SparsePolicy",
    "SwitchDR",
    "evaluate",
    "read_rounds",
]
