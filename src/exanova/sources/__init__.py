"""Rows that are not in memory: files, datasets, lazy frames and relations, read in blocks and counted.

``opening`` turns the input into a ``Source``: parts that can be read more than once. ``files`` reads the parts of files
(``finding`` lists them, ``same_columns`` compares their columns, ``text_cells`` decides what the cells of CSV are),
``engines`` those of polars, DuckDB, Ibis, PySpark and Dask (``blame`` finds the file that these could not read). Two
passes follow. The first counts the values of every column (``value_counts``), from which the levels are learned as in
memory, and estimates how many rows are distinct (``sketch``). The second turns every block into codes and counts equal
rows (``tally``); rows beyond the memory limit go to disk (``disk``, ``runs``). ``passes`` defines both passes for one
part, and ``reading`` runs them, locally or on a cluster (``cluster``). ``observed`` turns the counts, a piece at a time
(``pieces``), into the same result as ``data.observe`` for a table. ``further`` reads rows that were not fitted.
"""
