"""Pairs in cells never observed: the posterior mean on the whole table of combinations, wherever it is read."""

from __future__ import annotations

import sqlite3
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor

import exanova
from exanova import FunctionalANOVA
from exanova.design.continuation import Continuation, completed, everywhere
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.errors import FileFormatError, OutsideSupportError, OutsideSupportWarning
from exanova.shrink import continued, cost
from exanova.shrink.cell_kernels import PairKernel
from exanova.shrink.fit import DETERMINED
from exanova.shrink.prior import level_kernel
from strategies import examples

pytestmark = [
    pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning"),
    pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning"),  # such rows are what is asked about
]

LEVELS = {"size": ["s", "m", "l", "xl"], "place": ["A", "B", "C"], "step": [1, 2, 3, 4, 5]}
ORDERED = {"size", "step"}


def table(seed: int, rows: int) -> pd.DataFrame:
    """Rows of three features, two of them ordered; some combinations never occur."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame({name: rng.choice(levels, rows) for name, levels in LEVELS.items()})
    holes = (found["size"] == "xl") & (found["place"] != "A") | (found["step"] > 4) & (found["place"] == "C")
    rest = found[~holes]
    firsts = pd.DataFrame({"size": LEVELS["size"], "place": ["A", "B", "A", "A"], "step": [1, 2, 5, 3]})
    last = pd.DataFrame({"size": ["s", "m"], "place": ["C", "A"], "step": [1, 4]})
    return typed(pd.concat([rest, firsts, last], ignore_index=True))


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    kinds = {name: pd.CategoricalDtype(LEVELS[name], ordered=True) for name in ORDERED}
    return rows.astype(kinds)


def outputs(rows: pd.DataFrame) -> np.ndarray:
    size, step = (rows[name].cat.codes.to_numpy(dtype=float) for name in ("size", "step"))
    place = rows["place"].map({"A": 0.0, "B": 1.0, "C": -1.0}).to_numpy()
    noise = np.random.default_rng(len(rows)).normal(size=len(rows))
    return size * step / 4 + place * size + 0.3 * step + 0.3 * noise


def every_combination() -> pd.DataFrame:
    return typed(pd.DataFrame(list(product(*LEVELS.values())), columns=list(LEVELS)))


def fitted(rows: pd.DataFrame, **options: object) -> FunctionalANOVA:
    return FunctionalANOVA(sampled=True, **options).fit(rows, outputs(rows))


# The oracle: the same prior on dense tables of all combinations, by definition


def kernel(p: np.ndarray, ordered: bool) -> np.ndarray:
    """The covariance of the levels of one feature: a random walk or independent levels, centred, of mean one."""
    n = len(p)
    steps = np.tril(np.ones((n, n)))
    plain = steps @ steps.T if ordered else np.eye(n)
    centring = np.eye(n) - np.outer(np.ones(n), p)
    found = centring @ plain @ centring.T
    return found / (p @ np.diag(found))


def dense_posterior(anova: FunctionalANOVA, rows: pd.DataFrame) -> np.ndarray:
    """(combinations,) the fitted part at every combination of levels: mean, main effects and pairs."""
    posterior = anova.decomposition_.uncertainty.fitted.posterior
    names = list(LEVELS)
    codes = np.stack([[LEVELS[n].index(v) for v in rows[n]] for n in names])
    grid = np.array(list(product(*(range(len(LEVELS[n])) for n in names)))).T
    distinct, inverse = np.unique(codes, axis=1, return_inverse=True)
    copies = np.bincount(inverse.ravel())
    y = np.bincount(inverse.ravel(), outputs(rows)) / copies
    levels = [np.bincount(codes[i], minlength=len(LEVELS[n])) / len(rows) for i, n in enumerate(names)]
    kernels = [kernel(p, n in ORDERED) for p, n in zip(levels, names, strict=True)]
    (part,), family = posterior.parts, anova.decomposition_.family
    at_rows, at_grid = np.diag(1.0 / copies), np.zeros((grid.shape[1], len(copies)))
    for s, ratio in zip(posterior.prior.subsets, part.ratio, strict=True):
        subset = family.subsets[s]
        both = pure_covariance(subset, codes, kernels)
        sizes = [len(LEVELS[names[i]]) for i in subset]
        r, g = (np.ravel_multi_index(tuple(found[list(subset)]), sizes) for found in (distinct, grid))
        at_rows = at_rows + ratio * both[np.ix_(r, r)]
        at_grid = at_grid + ratio * both[np.ix_(g, r)]
    mean = float(copies @ y / copies.sum())
    return mean + at_grid @ np.linalg.solve(at_rows, y - mean)


def pure_covariance(subset: tuple[int, ...], codes: np.ndarray, kernels: list[np.ndarray]) -> np.ndarray:
    """Covariance of an effect in all combinations of its levels: of a pair, less what a + b fit in observed cells."""
    if len(subset) == 1:
        return kernels[subset[0]]
    (i, j), (n, k) = subset, (len(kernels[subset[0]]), len(kernels[subset[1]]))
    share = np.bincount(codes[i] * k + codes[j], minlength=n * k) / codes.shape[1]
    design = np.hstack([np.kron(np.eye(n), np.ones((k, 1))), np.kron(np.ones((n, 1)), np.eye(k))])
    root = np.sqrt(share)[:, None]
    fit = design @ np.linalg.pinv(root * design) @ np.diag(root[:, 0])
    whole = np.eye(n * k) - fit
    return whole @ np.kron(kernels[i], kernels[j]) @ whole.T


WAYS = {"rows": 24, "functions": 400, "leading": 24}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("seed", range(3))
def test_the_fitted_part_is_the_dense_posterior_mean_at_every_combination(monkeypatch, way, seed):
    """By rows, by functions, and by the leading functions where these are all of them."""
    rows = table(seed, WAYS[way])
    if way == "leading":
        monkeypatch.setattr(cost, "MOST_ROWS", 0)
    used = []
    monkeypatch.setattr(cost, "way", lambda *given, plain=cost.way: used.append(plain(*given)) or used[-1])
    anova = fitted(rows)
    assert set(used) == {way}
    grid = every_combination()
    wanted, found = dense_posterior(anova, rows), anova.predict(grid)
    assert anova.components(grid).outside.any()
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.ptp(wanted))
    zero = replace(anova.decomposition_, continuation=None).predict(grid)
    assert np.abs(zero - wanted).max() > 1e-3 * np.ptp(wanted)  # it matters


@st.composite
def pair_kernels(draw) -> PairKernel:
    """A pair with some cells, in one connected part or in several, and kernels of either kind."""
    n, k = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    seen = np.array(draw(st.lists(st.booleans(), min_size=n * k, max_size=n * k))).reshape(n, k)
    seen[np.arange(n), np.arange(n) % k] = True
    seen[np.arange(k) % n, np.arange(k)] = True
    weight = np.array(draw(st.lists(st.integers(1, 9), min_size=n * k, max_size=n * k)), dtype=float)
    codes = np.stack(np.nonzero(seen))
    p = weight.reshape(n, k)[seen] / weight.reshape(n, k)[seen].sum()
    sides = [np.bincount(own, p, size) for own, size in zip(codes, (n, k), strict=True)]
    ordered = [draw(st.sampled_from([0, size])) for size in (n, k)]
    return PairKernel(codes, p, *(level_kernel(side, o) for side, o in zip(sides, ordered, strict=True)))


@examples(60)
@given(pair=pair_kernels(), seed=st.integers(0, 99))
def test_in_observed_cells_an_effect_and_its_continuation_are_the_same(pair, seed):
    """Of the kernel and of the leading functions; and all of these together are the kernel."""
    v = np.random.default_rng(seed).normal(size=(pair.codes.shape[1], 2))
    whole = pair.continued(v)
    at = tuple(pair.codes)
    np.testing.assert_allclose(whole[at], pair.apply(v), atol=1e-9)
    functions = pair.leading()
    np.testing.assert_allclose(pair.continued_leading(functions.T @ v), whole, atol=1e-7)
    some = pair.leading(2)
    np.testing.assert_allclose(pair.continued_leading(some.T @ v)[at], some @ (some.T @ v), atol=1e-9)


@pytest.mark.parametrize("order", [2, 3])
def test_a_completed_family_keeps_cells_their_order_and_their_weights(order):
    rng = np.random.default_rng(order)
    codes = rng.integers(0, [[3], [4], [2]], (3, 14)).astype(np.uint8)
    codes[:, :4] = [[0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 0, 1]]
    weight = rng.uniform(0.5, 2.0, 14)
    family = build_family(codes, weight, [3, 4, 2], up_to_order(range(3), order))
    pairs = [s for s, subset in enumerate(family.subsets) if len(subset) == 2]
    for chosen in (pairs, pairs[1:], []):
        whole, number = completed(family, chosen)
        assert whole.subsets == family.subsets
        for s in range(len(family.subsets)):
            own, old = whole.cells_of(s), family.cells_of(s)
            kept = number[own]
            assert kept[kept >= 0].tolist() == list(range(old.start, old.stop))
            np.testing.assert_array_equal(whole.codes_of(s)[:, kept >= 0], family.codes_of(s))
            np.testing.assert_array_equal(whole.weight[own][kept >= 0], family.weight[old])
            assert not whole.weight[own][kept < 0].any()
            assert len(kept) == (np.prod(family.sizes_of(s)) if s in chosen else old.stop - old.start)
        values = rng.normal(size=(family.n_cells, 2))
        unseen = rng.normal(size=(int((number < 0).sum()), 2))
        read = everywhere(family, values, Continuation(np.array(chosen, dtype=np.int64), unseen))
        np.testing.assert_array_equal(read.values[read.number >= 0], values)
        np.testing.assert_array_equal(read.values[read.number < 0], unseen)


@pytest.fixture(scope="module")
def anova() -> FunctionalANOVA:
    return fitted(table(1, 60))


def test_every_answer_about_rows_reads_the_same_continuation(anova, tmp_path):
    """Components, Shapley values, indices, reasons, differences, SQL and a saved file."""
    grid = every_combination()
    wanted = anova.predict(grid)
    parts, explained = anova.components(grid), anova.explain(grid)
    outside = parts.outside
    assert 0 < outside.sum() < len(grid)
    np.testing.assert_allclose(parts.values.sum(axis=1), wanted)
    np.testing.assert_allclose(explained.base_values + explained.values.sum(axis=1), wanted)
    np.testing.assert_allclose(anova.interactions(grid, index="STII").values.sum(axis=1) + parts.values[:, 0], wanted)
    why = anova.reasons(grid, n=3, direction="both", stderr=False)
    np.testing.assert_allclose([row.fitted for row in why], wanted)
    np.testing.assert_allclose([sum(r.contribution for r in row.reasons) + row.compared for row in why], wanted)
    split = anova.difference(grid, by=outside, stderr=False)[0]
    assert split.total[0] == pytest.approx(abs(split.means[0, 0] - split.means[1, 0]) * np.sign(split.total[0]))
    assert abs(split.total[0]) == pytest.approx(abs(wanted[outside].mean() - wanted[~outside].mean()))
    anova.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    np.testing.assert_array_equal(again.predict(grid), wanted)
    np.testing.assert_allclose(scored(anova, grid, tmp_path), wanted)


def scored(anova: FunctionalANOVA, rows: pd.DataFrame, folder) -> np.ndarray:
    anova.export(folder / "q.sql", dialect="sqlite")
    with sqlite3.connect(":memory:") as database:
        rows.astype({"size": str, "step": int}).to_sql("rows", database, index=False)
        return pd.read_sql((folder / "q.sql").read_text(encoding="utf-8"), database)["fitted"].to_numpy()


def test_values_with_a_continued_part_have_no_standard_error(anova):
    grid = every_combination()
    parts = anova.components(grid)
    effects = anova.effects_
    unseen = np.array(
        [
            [len(subset) == 2 and tuple(map(str, grid.loc[k, list(subset)])) not in effects[subset].levels
             for subset in parts.subsets]
            for k in range(len(grid))
        ]
    )  # fmt: skip
    assert (unseen.any(axis=1) == parts.outside).all()
    shapley = anova.explain(grid, stderr=True).stderr
    for i, name in enumerate(LEVELS):
        touched = unseen[:, [name in subset for subset in parts.subsets]].any(axis=1)
        assert (np.isnan(shapley[:, i]) == touched).all()
    pairs = anova.interactions(grid, index="Moebius", stderr=True)
    assert (np.isnan(pairs.stderr) == unseen[:, 1:]).all()
    why = anova.reasons(grid, n=3, direction="both")
    for k, row in enumerate(why):
        told = {r.feature: np.isnan(r.stderr) for r in row.reasons}
        assert all(told[name] == np.isnan(shapley[k, i]) for i, name in enumerate(LEVELS) if name in told)
    split = anova.difference(grid[parts.outside], grid[~parts.outside])[0]
    assert np.isnan(split.by_subset_stderr[unseen.any(axis=0)]).all()
    assert np.isfinite(split.by_subset_stderr[~unseen.any(axis=0)]).all()


def test_effects_on_observed_cells_are_those_without_a_continuation(monkeypatch, anova):
    rows = table(1, 60)
    monkeypatch.setattr(continued, "MOST_NUMBERS", 0)
    without = fitted(rows)
    assert not len(without.decomposition_.continuation.values)
    np.testing.assert_array_equal(without.decomposition_.values, anova.decomposition_.values)
    np.testing.assert_array_equal(without.predict(rows), anova.predict(rows))
    for name in ("reconstruction", "orthogonality"):
        assert getattr(without.certificate_, name) == getattr(anova.certificate_, name)
    exact = fitted(rows, shrinkage=None)
    assert exact.decomposition_.continuation is None


def test_the_smallest_tables_are_continued_first(monkeypatch):
    """Of three pairs with cells never observed, those whose values fit; larger subsets count with the pairs."""
    rows = table(1, 60)
    family = fitted(rows).decomposition_.family
    pairs = [s for s, subset in enumerate(family.subsets) if len(subset) == 2]
    sizes = {s: int(np.prod(family.sizes_of(s))) - int(np.diff(family.cell_start)[s]) for s in pairs}
    order = sorted(pairs, key=sizes.__getitem__)
    for count in range(4):
        monkeypatch.setattr(continued, "MOST_NUMBERS", 2 * sum(sizes[s] for s in order[:count]))
        found = continued.pairs_to_continue(family, range(len(family.subsets)), 2)
        assert found.tolist() == sorted(order[:count])
    monkeypatch.setattr(continued, "MOST_NUMBERS", max(sizes.values()))
    with_triple = build_family(np.zeros((3, 1), np.uint8), np.ones(1), [4, 3, 5], up_to_order(range(3), 3))
    assert continued.pairs_to_continue(with_triple, range(len(with_triple.subsets)), 1).tolist() == []
    monkeypatch.setattr(continued, "MOST_NUMBERS", 10**9)
    assert len(continued.pairs_to_continue(with_triple, range(len(with_triple.subsets)), 1)) == 3


@pytest.mark.parametrize(
    ("options", "most", "said"),
    [
        ({}, 10**7, "is extrapolated by the prior of the fit"),
        ({}, 0, "counts as 0"),
        ({"shrinkage": None}, 10**7, "counts as 0"),
        ({}, 1, "is extrapolated by the prior of the fit in 1 pair and counts as 0 in other subsets"),
        (
            {"max_order": 3},
            10**7,
            "is extrapolated by the prior of the fit in 2 pairs and counts as 0 in other subsets",
        ),
    ],
)
def test_messages_say_what_is_done_with_combinations_never_observed(monkeypatch, options, most, said, tmp_path):
    rows, grid = table(1, 400 if "max_order" in options else 60), every_combination()
    monkeypatch.setattr(continued, "MOST_NUMBERS", most)
    found = fitted(rows, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideSupportWarning)
        with pytest.raises(OutsideSupportWarning, match=f"such a combination {said}\\. With"):
            found.predict(grid)
        strict = found.decomposition_.with_settings(replace(found.decomposition_.settings, strict=True))
        with pytest.raises(OutsideSupportError, match=f"it {said}"):
            strict.predict(grid)
    assert f"its effect {said}" in str(found.reasons(grid[::-1], stderr=False))
    found.export(tmp_path / "q.sql")
    assert f"never observed: its effect {said}." in (tmp_path / "q.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda pairs, values: (pairs[:-1], values),
        lambda pairs, values: (pairs, values[:-1]),
        lambda pairs, values: (pairs - 4, values),
        lambda pairs, values: (pairs[::-1].copy(), values),
        lambda pairs, values: (pairs + 100, values),
        lambda pairs, values: (pairs, np.where(values == values[0], np.nan, values)),
        lambda pairs, values: (pairs.astype(float), values),
        lambda pairs, values: (pairs[:, None], values),
    ],
)
def test_a_file_with_another_continuation_is_refused(anova, change, tmp_path):
    from exanova.effects import storage

    anova.save(tmp_path / "a.exanova")
    document, arrays = storage.read(tmp_path / "a.exanova")
    changed = change(arrays["continued.pairs"], arrays["continued.values"])
    storage.write(
        tmp_path / "b.exanova",
        document,
        arrays | dict(zip(("continued.pairs", "continued.values"), changed, strict=True)),
    )
    with pytest.raises(FileFormatError):
        exanova.load(tmp_path / "b.exanova")
    storage.write(tmp_path / "c.exanova", document, {k: v for k, v in arrays.items() if not k.startswith("continued")})
    assert exanova.load(tmp_path / "c.exanova").decomposition_.continuation is None


def test_a_row_left_out_alone_in_a_cell_is_predicted_by_the_continuation():
    """Against the posterior mean of the other rows on the same functions, ratios kept, by dense matrices."""
    rows = table(2, 40).drop_duplicates(ignore_index=True)
    found = fitted(rows)
    posterior = found.decomposition_.uncertainty.fitted.posterior
    left = found.decomposition_.certificate.mse_eval
    y, n = outputs(rows), len(rows)
    names = list(LEVELS)
    codes = np.stack([[LEVELS[name].index(v) for v in rows[name]] for name in names])
    share = [np.bincount(codes[i], minlength=len(LEVELS[name])) / n for i, name in enumerate(names)]
    kernels = [kernel(p, name in ORDERED) for p, name in zip(share, names, strict=True)]
    between = np.zeros((n, n))
    for s, ratio in zip(posterior.prior.subsets, posterior.parts[0].ratio, strict=True):
        subset = found.decomposition_.family.subsets[s]
        at = np.ravel_multi_index(tuple(codes[list(subset)]), [len(kernels[i]) for i in subset])
        between += ratio * pure_covariance(subset, codes, kernels)[np.ix_(at, at)]
    assert min(np.bincount(own).min() for own in codes) > 1  # a level of one row would not be known without it
    assert min(np.unique(codes[[0, 2]], axis=1, return_counts=True)[1]) == 1
    errors = []
    for i in range(n):
        kept = np.arange(n) != i
        weights = np.linalg.inv(between[np.ix_(kept, kept)] + np.eye(n - 1))
        # The mean is fitted without a penalty, around that of all rows as effects are centred under all of them.
        ones = np.ones(n - 1)
        mean = ones @ weights @ y[kept] / (ones @ weights @ ones)
        errors.append(y[i] - mean - between[i, kept] @ weights @ (y[kept] - mean))
    assert left[0] == pytest.approx(np.mean(np.square(errors)), rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_determined_fit_is_judged_on_other_rows_as_it_answers_them(seed):
    """Where the rows determine every function the fit is exact; new rows are still answered by the continuation."""
    rng = np.random.default_rng(seed)

    def drawn(n: int) -> pd.DataFrame:
        numbers = {"income": rng.lognormal(10, 1, n), "age": rng.integers(18, 80, n), "place": rng.integers(0, 4, n)}
        return pd.DataFrame(numbers)

    rows = drawn(500)
    target = np.log(rows["income"]) + 0.05 * rows["age"] + (rows["place"] == 2) + rng.normal(0, 0.3, 500)
    model = GradientBoostingRegressor(n_estimators=15, max_depth=2, random_state=seed).fit(rows, target)
    anova = FunctionalANOVA(strategy="model").fit(rows, model)
    certificate = anova.certificate_
    assert certificate.shrinkage == DETERMINED
    assert certificate.r2_eval[0] == pytest.approx(anova.score(drawn(2000), model), abs=0.02)
