"""Time, memory and growth, measured against the reference and against the machine."""
