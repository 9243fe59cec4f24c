"""Effect tables by name, contributions at rows, and the certificate of a decomposition."""
