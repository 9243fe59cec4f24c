"""Choosing the family: the right few thousand functions out of millions."""
