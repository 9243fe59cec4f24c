"""Functions for each subset: pure (orthogonal to every proper subset, on any support), or the paper's own."""
