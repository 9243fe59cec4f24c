"""Reading a decomposition: Shapley values, interaction indices, importances, and two decompositions side by side."""
