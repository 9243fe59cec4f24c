"""shap and shapiq, imported without the warnings of their own dependencies; figures drawn on no screen."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager

import matplotlib

matplotlib.use("Agg")


def quietly(name):
    """Import a peer; matplotlib warns of what it will deprecate, and shap still uses it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=PendingDeprecationWarning, message=".*with_extremes")
        return __import__(name)


shap = quietly("shap")
shapiq = quietly("shapiq")


def interpreted(patch):
    """shap's own compiled loops as plain Python: compiling them takes longer than a few small tables do."""
    for name, module in list(sys.modules.items()):
        if name.startswith("shap.") and not name.startswith("shap.plots"):
            for key, value in vars(module).copy().items():
                if hasattr(value, "py_func"):
                    patch.setattr(module, key, value.py_func)


@contextmanager
def figures():
    """Draw inside; every figure is rendered and closed, and there must be one."""
    import matplotlib.pyplot as plt

    plt.close("all")
    try:
        yield
        assert plt.get_fignums(), "nothing was drawn"
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")
