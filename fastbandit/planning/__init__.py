"""Which search a catalogue needs on this machine."""
