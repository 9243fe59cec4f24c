"""The one module that owns threads: how many, for our kernels and for BLAS.

Policy: ``n_jobs`` is a number of threads, ``None`` and ``-1`` mean every core this process may use, other
negative numbers count back from there as in scikit-learn. Work is split so that each sum of our own is made by one
thread in an order that does not depend on their number: counts and moments are the same to the last bit. BLAS
splits its products as it likes, so that effects agree to rounding.

Threads of BLAS wait for each other by spinning, once for each product, and for each column or panel of columns of a
factorisation. Where another process holds a core, every such wait lasts until the scheduler takes that core away from
it, some milliseconds, so that a factorisation of 600 columns on two threads takes seconds instead of a tenth of one.
Hence two rules (:func:`suitable_blas`): products, and factorisations made of products (Cholesky), get threads from
``BLAS_WORK`` multiplications on; orthogonal factorisations (QR, SVD, eigenvalues), which wait at every column, never.
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
"""Multiplications of one product, or of one factorisation by products, from which several threads of BLAS gain more on
an idle machine than they lose on a busy one. Measured with two cores and two other processes on them: a product of
600 x 600 matrices takes 1.4 times as long on two threads as on one, of 1,200 x 1,200 half as long; Cholesky of 1,200
columns 5 times, of 2,400 as long; QR of 600 columns 24 times, of 2,400 still 7 times."""


def available_cores() -> int:
    """Cores this process may run on."""
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
        raise InputError.given("n_jobs", n_jobs, "a positive number of threads, or -1 for every core")
    return int(n_jobs) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))


def run(task: Callable[[T], R], pieces: Sequence[T], threads: int) -> list[R]:
    """Apply ``task`` to every piece, at most ``threads`` at a time; results in the order of the pieces."""
    if threads <= 1 or len(pieces) <= 1:
        return [task(piece) for piece in pieces]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(task, pieces))


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """Hold BLAS to ``threads`` threads inside the block, or to fewer where it is held to fewer already.

    An outer block, or an environment variable such as ``OMP_NUM_THREADS``, is a limit that stays.
    """
    controller = _blas(len(sys.modules))
    held = min((library["num_threads"] for library in controller.info()), default=threads)
    with controller.limit(limits=min(threads, held)):
        yield


def suitable_blas(work: float, threads: int | None = None) -> AbstractContextManager[None]:
    """Threads of BLAS that suit products (or Cholesky factorisations) of ``work`` multiplications each.

    One thread below ``BLAS_WORK``; from there on ``threads``, or as many as it is held to already. Work of 0 stands
    for orthogonal factorisations: one thread, whatever their size.
    """
    if work < BLAS_WORK:
        return blas_threads(1)
    return nullcontext() if threads is None else blas_threads(threads)


@lru_cache(maxsize=1)
def _blas(modules: int) -> Any:
    """What holds the libraries of BLAS; looking for them takes longer than a small fit.

    They are looked for again when more ``modules`` have been imported, which may have brought another.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def split(length: int, pieces: int) -> list[slice]:
    """Cut ``range(length)`` in at most ``pieces`` contiguous slices of nearly equal size.

    >>> split(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    pieces = max(1, min(pieces, length))
    bounds = [length * k // pieces for k in range(pieces + 1)]
    return [slice(a, b) for a, b in pairwise(bounds) if b > a]
