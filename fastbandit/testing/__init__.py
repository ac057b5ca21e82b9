"""Contracts that parts, logs, estimators and engines must pass: for your own, too.

The docstring of each check is the law. What breaks it raises an AssertionError that says what was
seen.
"""
