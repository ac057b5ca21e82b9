"""Peers at equal latency: what systems earn in the same rounds, beside what a decision costs."""
