"""Sufficient statistics of the rows: cell weights, cell sums and the Gram matrix of indicators, all additive."""
