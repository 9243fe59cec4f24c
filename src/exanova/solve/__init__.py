"""From functions and model values to coefficients: five routes to the same tables, each with its evidence."""
