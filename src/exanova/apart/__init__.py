"""Fits from moments: what rows in different places say together, without the rows."""
