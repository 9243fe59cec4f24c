"""The same jobs by exanova and by other libraries, side by side: ``python -m benchmarks.peers``."""
