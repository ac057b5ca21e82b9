"""What would a policy have earned on a log that another one made?"""

from fastbandit.evaluation.diagnostics import Diagnostics
from fastbandit.evaluation.estimators import ESTIMATORS
from fastbandit.evaluation.readers import read_rounds
from fastbandit.evaluation.report import Estimate, Evaluation
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy

__all__ = [
    "ESTIMATORS",
    "Diagnostics",
    "Estimate",
    "Evaluation",
    "LoggedRounds",
    "SparsePolicy",
    "evaluate",
    "read_rounds",
]
