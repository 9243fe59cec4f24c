"""Fits from moments of rows in different places, without the rows."""
