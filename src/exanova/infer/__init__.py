"""Sampling uncertainty of a decomposition: influence of every row, standard errors, bands, identified effects."""
