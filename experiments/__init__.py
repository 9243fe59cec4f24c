"""The experiments of the paper, run again: ``python -m experiments NAME --data DIR``."""
