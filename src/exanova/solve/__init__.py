"""From functions and model values to coefficients: three routes to the same tables, each with its evidence."""
