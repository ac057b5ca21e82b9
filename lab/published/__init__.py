"""Figures that pages show: which command made each, and whether it comes out again."""
