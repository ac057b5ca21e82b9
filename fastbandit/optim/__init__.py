"""What training a network takes: first weights, a schedule of rates, a group of processes."""
