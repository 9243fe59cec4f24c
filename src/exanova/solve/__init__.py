"""From functions and model values to coefficients: four routes to the same tables, each with its evidence."""
