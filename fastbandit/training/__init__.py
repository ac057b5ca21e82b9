"""Makes a better policy from a policy and what happened."""
