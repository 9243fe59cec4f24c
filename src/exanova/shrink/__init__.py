"""Shrinkage to what the rows support: effects as random tables, their variances by likelihood, the shrunken fit."""
