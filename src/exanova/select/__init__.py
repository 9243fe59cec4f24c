"""Selecting a family: a few thousand functions out of millions, under a budget."""
