"""A decomposition and rows it was not fitted to: the fit there, and a warning where it does not hold."""
