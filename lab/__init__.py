"""How we know that the product is good: experiments, benchmarks, faults, baselines, plans."""
