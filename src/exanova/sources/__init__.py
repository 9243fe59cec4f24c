"""Rows that are not in memory: files, datasets, lazy frames and relations, read in blocks and counted.

``opening`` sees what was given as a ``Source``: parts that can be read more than once. ``files`` reads the parts of
files (``text_cells`` decides what the cells of CSV are), ``engines`` those of polars, DuckDB, Ibis, PySpark and Dask.
Two passes follow. The first counts the values of every column (``value_counts``), from which the levels are learned as
in memory, and estimates how many rows are distinct (``sketch``). The second turns every block into codes and counts
equal rows (``tally``); what takes too much memory goes to disk (``disk``, ``runs``). ``passes`` says what both do with
a part, and ``reading`` runs them, here or on a cluster (``cluster``). ``observed`` makes of the counts, a piece at a
time (``pieces``), what ``data.observe`` makes of a table. ``further`` reads rows that were not fitted.
"""
