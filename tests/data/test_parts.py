"""A sample in parts gives what the same sample in one piece gives, whatever the parts, in every number of a fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.data import sample as samples
from exanova.data.observe import read_rows
from exanova.data.sample import Sample
from exanova.effects.certificate import measure_fit
from exanova.errors import InputError
from exanova.fitting import fit_sample, plan_fit
from exanova.phi import gram
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.solve.request import Request

ROWS = 2500


def made(weights: str = "counts") -> Sample:
    """Rows with holes and a repeated column, two outputs."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, (3, 4, 2, 5, 3), (4000, 5))
    X[:, 4] = X[:, 0]
    y = np.column_stack([X @ [1, 2, 3, 4, 5], np.sin(X[:, 0] * X[:, 1] + X[:, 3])])
    weight = rng.integers(1, 9, 4000) if weights == "counts" else rng.uniform(0.5, 2.0, 4000)
    read = read_rows(X, sample_weight=weight)
    found = read.sampled(read.model_values(y)).sample
    more = np.tile(found.codes, ROWS)[:, :ROWS]  # rows repeat: nothing here asks that they be distinct
    return replace(
        found,
        codes=np.ascontiguousarray(more),
        weight=np.resize(found.weight, ROWS),
        values=np.resize(found.values, (ROWS, 2)),
        within=None,
        parts=(),
    )


def cut(sample: Sample, count: int) -> Sample:
    bounds = np.linspace(0, sample.n_rows, count + 1).astype(int).tolist()
    return replace(sample, parts=tuple(slice(a, b) for a, b in pairwise(bounds)))


def in_files(sample: Sample, folder) -> Sample:
    """The same with codes, weights and values in memory maps."""
    maps = {}
    for name in ("codes", "weight", "values"):
        np.save(folder / f"{name}.npy", getattr(sample, name))
        maps[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
    return replace(sample, **maps)


def effects_of(sample: Sample, **parameters):
    request = Request(memory_limit=10**9, **{"max_order": 2, "shrinkage": False, "sampled": False, **parameters})
    plan, survey = plan_fit(request, sample, sample.n_outputs)
    return fit_sample(sample, request, plan, survey, Progress(False))[0]


@pytest.mark.parametrize("count", [7, 1000])
@pytest.mark.parametrize("weights", ["counts", "real"])
def test_passes_and_counts_of_parts_are_those_of_the_whole(monkeypatch, weights, count):
    sample = made(weights)
    found = effects_of(sample, route="moments")
    monkeypatch.setattr(gram, "MARGINS", 1e12)
    whole, parts = (Phi(found.family, s) for s in (sample, cut(sample, count)))
    assert np.array_equal(whole.gram(found.basis), parts.gram(found.basis))  # counted row by row in the same order
    assert np.array_equal(whole.synthesise(found.values), parts.synthesise(found.values))
    np.testing.assert_allclose(parts.analyse(sample.values), whole.analyse(sample.values), rtol=1e-12, atol=1e-12)
    whole_numbers = np.round(8 * sample.values)
    assert np.array_equal(parts.analyse(whole_numbers), whole.analyse(whole_numbers))


@pytest.mark.parametrize("route", ["moments", "matrix-free", "dense"])
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_effects_do_not_depend_on_parts(tmp_path, route, count):
    sample = made()
    whole, parts = effects_of(sample, route=route), effects_of(in_files(cut(sample, count), tmp_path), route=route)
    assert np.array_equal(parts.family.weight, whole.family.weight)
    assert parts.solution.rank == whole.solution.rank
    np.testing.assert_allclose(parts.values, whole.values, rtol=0, atol=1e-12)


def test_temporary_arrays_of_blocks_change_nothing(monkeypatch):
    """From the table to the certificate, with standard errors and rows left out, in blocks of nine rows."""
    rng = np.random.default_rng(0)
    X, noise = rng.integers(0, 3, (400, 4)), rng.normal(size=400)
    y = X[:, 0] * X[:, 1] + noise

    def everything() -> list[np.ndarray]:
        anova = FunctionalANOVA(max_order=2, n_jobs=1).fit(X, y)
        c = anova.certificate_
        numbers = [c.r2, c.r2_eval, c.mse, c.within_variance, c.cancellation, c.loss.total, np.array(c.reconstruction)]
        pair = anova.effects_["x0", "x1"]
        return [*numbers, pair.values, pair.stderr]

    before = everything()
    monkeypatch.setattr(samples, "PART_ROWS", 9)
    for mine, theirs in zip(everything(), before, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def test_the_measures_of_a_fit_are_those_of_their_definitions():
    rng = np.random.default_rng(1)
    values, fitted, within = rng.normal(size=(3, 50, 2))
    p, within = rng.dirichlet(np.ones(50)), within**2
    fit = measure_fit(values, fitted, p, within)
    mse = p @ ((values - fitted) ** 2 + within)
    np.testing.assert_allclose(fit.mse, mse, rtol=1e-13)
    np.testing.assert_allclose(fit.squared, p @ (values - fitted) ** 2, rtol=1e-13)
    np.testing.assert_allclose(fit.r2, 1 - mse / (p @ ((values - p @ values) ** 2 + within)), rtol=1e-12)
    np.testing.assert_allclose(fit.relative_mse, mse / (p @ (values**2 + within)), rtol=1e-12)
    np.testing.assert_allclose(fit.largest, np.abs(values - fitted).max(axis=0))


@pytest.mark.parametrize("parts", [(slice(0, 3),), (slice(0, 2), slice(3, 4)), (slice(1, 4),)])
def test_parts_have_to_cover_the_rows(parts):
    with pytest.raises(InputError, match="4 rows have to follow each other"):
        Sample(np.zeros((1, 4), dtype=np.uint8), np.ones(4), (1,), np.zeros((4, 1)), 4, parts=parts)
