"""Numbers that a search keeps to wherever it runs: in torch, compiled, or on a GPU."""

FEW = 1024
"""So few eligible arms are all scored, whatever the search."""
RERANKED = 8
"""So many arms that look best by a surrogate are scored by the score itself."""
AT_LEAST = 16
"""A partition of a large catalogue holds at least so many arms."""
BESIDE = 16
"""So many of the best arms by what points say are scored with their own part, too."""
AT_A_TIME = 32
"""So many arms of a list are scored before it is asked which of the others can still win."""
