"""The queries of a decomposition: at rows, about sets of rows, about effects."""
