"""Families of subsets, their cells on the support, and the two passes between rows and cells."""
