"""How far other rows could move the result: influence of every row, standard errors, bands, what is identified."""
