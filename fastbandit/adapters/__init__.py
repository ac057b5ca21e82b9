"""fastbandit in the words of other libraries, and its data in their formats."""
