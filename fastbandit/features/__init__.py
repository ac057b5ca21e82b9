"""What a column means, and how rewards are read."""
