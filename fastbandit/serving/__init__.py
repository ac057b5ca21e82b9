"""A policy behind HTTP: decides, remembers, and shows what it does."""
