"""fastbandit with the calls of other libraries, and its data in their formats."""
