"""Contracts that any part, log or engine must pass: for your own, too."""
