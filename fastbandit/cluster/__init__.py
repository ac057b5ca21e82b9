"""Work on many workers: processes of one machine, or of a Ray cluster."""

from fastbandit.cluster.engine import Engine, HereEngine, News, make_engine
from fastbandit.cluster.scoring import Scored, score_contexts

__all__ = ["Engine", "HereEngine", "News", "Scored", "make_engine", "score_contexts"]
