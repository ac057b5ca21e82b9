"""Turns Python into machine code, once a machine, and keeps it where the next process finds it."""
