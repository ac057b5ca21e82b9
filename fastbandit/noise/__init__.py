"""All that is random, from seeds: numbers, draws for each arm, first weights of layers."""
