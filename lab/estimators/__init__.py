"""How far the estimators of a policy's value can be trusted, and how fast they are."""
