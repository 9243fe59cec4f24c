"""``python -m exanova``: the command ``exanova``."""

from exanova.cli import main

if __name__ == "__main__":
    main()
