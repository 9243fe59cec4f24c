"""Rows that are not in memory: files, datasets, lazy frames and relations, read in blocks and counted.

``opening`` sees what was given as a ``Source``: parts that can be read more than once. ``files`` reads the parts of
files (``text_cells`` decides what the cells of CSV are), ``engines`` those of polars, DuckDB, Ibis, PySpark and Dask.
Two passes follow. The first counts the values of every column (``value_counts``), from which the levels are learned as
in memory. The second turns every block into codes and counts equal rows (``tally``). ``passes`` runs both over the
parts, here or on a cluster (``cluster``), and ``reading`` makes of the counts what ``data.observe`` makes of a table.
"""
