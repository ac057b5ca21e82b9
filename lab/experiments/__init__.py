"""A policy against data: environments, runs and their results."""
