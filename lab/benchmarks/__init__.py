"""How fast decisions are: ours over the number of arms, and beside those of others."""
