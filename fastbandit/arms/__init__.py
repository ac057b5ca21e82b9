"""What may be chosen: a catalogue or a box, and ways to find arms."""
