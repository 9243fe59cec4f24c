"""What the solve means: effect tables by name, contributions of rows, and the certificate of the result."""
