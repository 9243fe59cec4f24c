"""Threads: how many to use, for our own kernels and for BLAS. No other module starts threads.

Policy: ``n_jobs`` is a number of threads; ``None`` and ``-1`` mean every core this process may use; other negative
numbers count back from there as in scikit-learn. Work is split so that each of our own sums is computed by one thread
in an order that does not depend on the number of threads: counts and moments are the same to the last bit. BLAS splits
its products in its own way, so that effects agree up to rounding.

BLAS threads wait for each other by spinning, once per product, and once per column or panel of a factorisation. If
another process uses a core, every such wait lasts until the scheduler interrupts that process, some milliseconds, so
that a factorisation of 600 columns on two threads takes seconds instead of a tenth of one. Hence two rules
(:func:`suitable_blas`): products, and factorisations made of products (Cholesky), use several threads from
``BLAS_WORK`` multiplications on; orthogonal factorisations (QR, SVD, eigenvalues), which wait at every column, use one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeVar

from exanova.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

BLAS_WORK = 4e9
"""Multiplications of one product, or of one factorisation by products, from which several BLAS threads gain more on an
idle machine than they lose on a busy one. Measured on two cores shared with two other processes, the time on two
threads relative to one is 1.4 for a product of 600 x 600 matrices and 0.5 for 1,200 x 1,200; 5 for Cholesky of 1,200
columns and 1 for 2,400; 24 for QR of 600 columns and 7 for 2,400."""


def available_cores() -> int:
    """Number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)


def thread_count(n_jobs: int | None) -> int:
    """Resolve ``n_jobs`` to a number of threads.

    >>> thread_count(3)
    3
    >>> thread_count(-1) == thread_count(None)
    True
    """
    if n_jobs is None:
        n_jobs = -1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError.given("n_jobs", n_jobs, "a positive number of threads, or None (or -1) for every core")
    return int(n_jobs) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))


def run(task: Callable[[T], R], pieces: Sequence[T], threads: int) -> list[R]:
    """Apply ``task`` to every piece, at most ``threads`` at a time; results in the order of the pieces."""
    if threads <= 1 or len(pieces) <= 1:
        return [task(piece) for piece in pieces]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(task, pieces))


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """Limit BLAS to ``threads`` threads inside the block, or to an existing lower limit.

    Limits set by an outer block, or by an environment variable such as ``OMP_NUM_THREADS``, remain in force.
    """
    controller = _blas(len(sys.modules))
    held = [library.get_num_threads() for library in controller.lib_controllers]
    if max(held, default=1) <= threads:  # setting a limit that is in force takes longer than a small product
        yield
        return
    with controller.limit(limits=min(threads, *held)):
        yield


def suitable_blas(work: float, threads: int | None = None) -> AbstractContextManager[None]:
    """Limit BLAS to the threads that suit products (or Cholesky factorisations) of ``work`` multiplications each.

    One thread below ``BLAS_WORK``; from there on ``threads``, by default as many as are allowed already. Use a work of
    0 for orthogonal factorisations, which get one thread whatever their size.
    """
    if work < BLAS_WORK:
        return blas_threads(1)
    return nullcontext() if threads is None else blas_threads(threads)


@lru_cache(maxsize=1)
def _blas(modules: int) -> Any:
    """Controller of the loaded BLAS libraries, cached because discovery takes longer than a small fit.

    It is created again when more ``modules`` have been imported, which may have loaded another library.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def split(length: int, pieces: int) -> list[slice]:
    """Split ``range(length)`` into at most ``pieces`` contiguous slices of nearly equal size.

    >>> split(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    pieces = max(1, min(pieces, length))
    bounds = [length * k // pieces for k in range(pieces + 1)]
    return [slice(a, b) for a, b in pairwise(bounds) if b > a]
