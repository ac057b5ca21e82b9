"""What this checkout needs to be released."""
