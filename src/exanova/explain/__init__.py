"""Explanations from a decomposition: Shapley values, interaction indices, importances, comparisons."""
