"""Predicts rewards, and knows how unsure it is."""
