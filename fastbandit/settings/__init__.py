"""One declaration a part: what a bandit is made of, its presets, TOML files, and the service."""
