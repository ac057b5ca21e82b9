"""A policy frozen to arrays: the fast path, without torch."""
