"""The learning loop: joins decisions with rewards, trains, checks and publishes."""
