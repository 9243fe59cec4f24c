"""``Phi``, the operator between cells and rows, and the Gram matrices of functions and of indicators."""
