"""Threads of BLAS: how many a piece of work gets, and that the small pieces of a fit get one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exanova import FunctionalANOVA, assembly, parallel
from exanova.basis import pure
from exanova.basis.functions import build_basis
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.effects.certificate import certify
from exanova.phi.gram import common_rows
from exanova.phi.projection import projected
from exanova.typing import FloatArray


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A BLAS of eight threads that remembers how many it is held to, whatever the machine has."""
    library = SimpleNamespace(threads=8, limits=[])

    @contextmanager
    def limit(limits: int) -> Iterator[None]:
        before, library.threads = library.threads, limits
        library.limits.append(limits)
        yield
        library.threads = before

    held = SimpleNamespace(get_num_threads=lambda: library.threads)
    controller = SimpleNamespace(lib_controllers=[held], limit=limit)
    monkeypatch.setattr(parallel, "_blas", lambda modules: controller)
    return library


@pytest.mark.parametrize(
    ("work", "threads", "held"),
    [
        (0, None, 1),
        (0, 4, 1),
        (parallel.BLAS_WORK - 1, 4, 1),
        (parallel.BLAS_WORK, None, 8),
        (parallel.BLAS_WORK, 4, 4),
        (parallel.BLAS_WORK, 64, 8),
    ],
)
def test_only_large_products_are_shared(blas: SimpleNamespace, work: float, threads: int | None, held: int) -> None:
    with parallel.suitable_blas(work, threads):
        assert blas.threads == held
    assert blas.threads == 8


def test_large_products_stay_within_an_outer_limit(blas: SimpleNamespace) -> None:
    with parallel.blas_threads(2):
        with parallel.suitable_blas(parallel.BLAS_WORK):
            assert blas.threads == 2
        with parallel.suitable_blas(parallel.BLAS_WORK, 4):
            assert blas.threads == 2


def test_products_with_the_gram_matrix_are_shared_by_their_size(
    blas: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (4, 200)).astype(np.uint8)
    family = build_family(codes, np.ones(200), (3, 3, 3, 3), up_to_order(range(4), 2))
    common = common_rows(family, codes, np.ones(200, dtype=np.int64))
    basis = build_basis(family)

    def gamma() -> FloatArray:
        return projected(family, common.indicators, common.gram.astype(np.float64), basis)

    blas.limits.clear()
    expected = gamma()
    assert blas.limits == [1]
    monkeypatch.setattr(parallel, "BLAS_WORK", 0)
    blas.limits.clear()
    np.testing.assert_allclose(gamma(), expected, atol=1e-12)
    assert blas.limits == []


@pytest.mark.parametrize(("levels", "limits"), [(4, []), (20, [1])])
def test_local_problems_are_factorised_on_one_thread(blas: SimpleNamespace, levels: int, limits: list[Any]) -> None:
    codes = np.array([c for c in np.ndindex(levels, levels) if c != (0, 0)]).T
    pure.pure_tables(codes, (levels, levels), np.full((1, codes.shape[1]), 1 / codes.shape[1]))
    assert blas.limits == limits


@pytest.mark.parametrize("ties", ["share", "first"])
@pytest.mark.parametrize("route", ["dense", "moments"])
def test_orthogonal_factorisations_of_a_fit_are_made_on_one_thread(
    blas: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, route: str, ties: str
) -> None:
    """With a pair of equal columns, and with more dependences than rank: the two ways to write redundancy down."""
    seen: list[tuple[str, int]] = []
    for name in ("qr", "svd", "eigh"):
        monkeypatch.setattr(np.linalg, name, remembering(getattr(np.linalg, name), name, blas, seen))
    rng = np.random.default_rng(0)
    for copies in (1, 3):
        X = rng.integers(0, 3, (60, 3))
        rows = np.hstack([X] + [X[:, :1]] * copies)
        FunctionalANOVA(shrinkage=None, route=route, ties=ties, max_order=2).fit(rows, X.sum(axis=1))
    assert len(seen) >= 2
    assert {threads for _, threads in seen} == {1}


def remembering(function: Any, name: str, blas: SimpleNamespace, seen: list[tuple[str, int]]) -> Any:
    """The function, with a note of the threads it had; stacks of tiny matrices are not split among threads."""

    def called(a: Any, *arguments: Any, **options: Any) -> Any:
        if np.ndim(a) == 2:
            seen.append((name, blas.threads))
        return function(a, *arguments, **options)

    return called


@pytest.mark.parametrize("route", ["dense", "moments", "grid"])
def test_a_fit_with_one_job_measures_with_one_thread_too(
    blas: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    seen = []

    def measure(*arguments: Any) -> Any:
        seen.append(blas.threads)
        return certify(*arguments)

    monkeypatch.setattr(assembly, "certify", measure)
    rows = np.array(list(np.ndindex(3, 3, 2)))
    for jobs in (1, 2):
        FunctionalANOVA(shrinkage=None, route=route, max_order=None, n_jobs=jobs).fit(rows, rows.sum(axis=1))
    assert seen == [1, 2]
    assert blas.threads == 8
