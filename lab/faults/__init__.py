"""Trials that break what the service stands on, and count what is lost."""
