"""A demonstration: a synthetic environment, a comparison of policies, simulated visitors."""
