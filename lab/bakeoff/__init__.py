"""The bake-off: fastbandit and other libraries play the same rounds of the same sets."""
