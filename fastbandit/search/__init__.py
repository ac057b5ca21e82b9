"""Finds the arm with the highest score."""
