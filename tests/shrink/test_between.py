"""Numbers never observed: read between the levels that were, by the random walk under which effects are shrunk."""

from __future__ import annotations

import sqlite3
import warnings
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.data.between import MOST_PLACES, MOST_STEPS, between
from exanova.errors import OutsideSupportError, OutsideSupportWarning, OverfitWarning, UnknownLevelError
from exanova.report.explorer import GivenRows
from exanova.report.live_rows import live_rows
from exanova.shrink import cost
from strategies import examples

pytestmark = [
    pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning"),
    pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning"),  # such rows are what is asked about
]

STEPS, RATES, NAMES = [1, 2, 4, 5, 8], [0.5, 1.0, 2.5, 3.0], ["u", "v", "w"]
NEW_STEPS, NEW_RATES = [3, 6, 7, 0, 30], [1.5, 2.0, 0.1, 9.0]
WAYS = {"rows": 40, "functions": 400, "leading": 40}


def table(seed: int, rows: int) -> pd.DataFrame:
    """Rows of two columns of numbers and one of names; every level occurs, some combinations do not."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {"step": rng.choice(STEPS, rows), "rate": rng.choice(RATES, rows), "name": rng.choice(NAMES, rows)}
    )
    found = found[(found["step"] < 8) | (found["rate"] < 2)]
    every = pd.DataFrame({"step": STEPS, "rate": [*RATES, 0.5], "name": [*NAMES, "u", "v"]})
    return pd.concat([found, every], ignore_index=True)


def outputs(rows: pd.DataFrame) -> np.ndarray:
    noise = np.random.default_rng(len(rows)).normal(size=len(rows))
    by_name = rows["name"].map({"u": 1.0, "v": -1.0, "w": 0.0}).to_numpy()
    return np.sqrt(rows["step"]) * rows["rate"] + by_name * rows["step"] / 3 + 0.2 * noise


def fitted(rows: pd.DataFrame, **options: object) -> FunctionalANOVA:
    options = {"sampled": True, "handle_unknown": "ignore"} | options
    return FunctionalANOVA(**options).fit(rows, outputs(rows))


def new_rows() -> pd.DataFrame:
    """Every combination with numbers that were observed and others."""
    kinds = ([*STEPS, *NEW_STEPS], [*RATES, *NEW_RATES], NAMES)
    return pd.DataFrame(list(product(*kinds)), columns=["step", "rate", "name"])


# The oracle: the prior of a Gaussian process on the line of numbers, on dense tables of all combinations


def places(levels: list[float], new: list[float]) -> np.ndarray:
    """Where numbers lie on the line of the random walk: levels one step apart, others in proportion between them."""
    line = np.arange(1.0, len(levels) + 1)
    inside = np.interp(np.array([*levels, *new]), levels, line)
    values = np.array([*levels, *new])
    return np.where(values < levels[0], 0.5, np.where(values > levels[-1], len(levels) + 3.0, inside))


def centred(plain: np.ndarray, p: np.ndarray) -> np.ndarray:
    centring = np.eye(len(p)) - np.outer(np.ones(len(p)), p)
    found = centring @ plain @ centring.T
    return found / (p @ np.diag(found))


def indicators(levels: int, place: np.ndarray) -> np.ndarray:
    """(levels and new, levels) how functions of one feature, known at its levels, go on between them and beyond."""
    at = np.clip(place, 1, levels)
    return np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(1.0, levels + 1)))


def dense_posterior(anova: FunctionalANOVA, rows: pd.DataFrame) -> np.ndarray:
    """The fitted part of ``new_rows``: posterior mean of main effects and pairs."""
    posterior = anova.decomposition_.uncertainty.fitted.posterior
    known: list[list] = [STEPS, RATES, NAMES]
    every = [[*STEPS, *NEW_STEPS], [*RATES, *NEW_RATES], NAMES]
    at = [places(STEPS, NEW_STEPS), places(RATES, NEW_RATES)]
    plain = [*(np.minimum.outer(p, p) for p in at), np.eye(3)]
    design = [*(indicators(len(k), p) for k, p in zip(known, at, strict=False)), np.eye(3)]
    codes = np.stack([[every[i].index(v) for v in rows[c]] for i, c in enumerate(rows)])
    shares = [np.bincount(own, minlength=len(e)) / len(rows) for own, e in zip(codes, every, strict=True)]
    kernels = [centred(k, p) for k, p in zip(plain, shares, strict=True)]
    distinct, inverse = np.unique(codes, axis=1, return_inverse=True)
    copies = np.bincount(inverse.ravel())
    y = np.bincount(inverse.ravel(), outputs(rows)) / copies
    grid = np.array(list(product(*(range(len(e)) for e in every)))).T
    (part,), family = posterior.parts, anova.decomposition_.family
    at_rows, at_grid = np.diag(1.0 / copies), np.zeros((grid.shape[1], len(copies)))
    for s, ratio in zip(posterior.prior.subsets, part.ratio, strict=True):
        subset = family.subsets[s]
        both = kernels[subset[0]] if len(subset) == 1 else pair_covariance(subset, codes, kernels, design)
        sizes = [len(every[i]) for i in subset]
        r, g = (np.ravel_multi_index(tuple(found[list(subset)]), sizes) for found in (distinct, grid))
        at_rows = at_rows + ratio * both[np.ix_(r, r)]
        at_grid = at_grid + ratio * both[np.ix_(g, r)]
    mean = float(copies @ y / copies.sum())
    return mean + at_grid @ np.linalg.solve(at_rows, y - mean)


def pair_covariance(subset: tuple[int, ...], codes: np.ndarray, kernels: list, design: list) -> np.ndarray:
    """Covariance of a pair in all combinations, less the a + b that fit it best in observed cells, continued."""
    i, j = subset
    n, k = len(kernels[i]), len(kernels[j])
    share = np.bincount(codes[i] * k + codes[j], minlength=n * k) / codes.shape[1]
    additive = np.hstack([np.kron(design[i], np.ones((k, 1))), np.kron(np.ones((n, 1)), design[j])])
    root = np.sqrt(share)[:, None]
    whole = np.eye(n * k) - additive @ np.linalg.pinv(root * additive) @ np.diag(root[:, 0])
    return whole @ np.kron(kernels[i], kernels[j]) @ whole.T


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_number_never_observed_has_the_posterior_mean_of_a_dense_gaussian_process(way, seed, monkeypatch):
    rows = table(seed, WAYS[way])
    if way == "leading":  # every kernel in whole, over functions
        monkeypatch.setattr(cost, "MOST_ROWS", 1)
    anova = fitted(rows)
    expected = dense_posterior(anova, rows)
    np.testing.assert_allclose(anova.predict(new_rows()), expected, atol=1e-6 * np.ptp(expected))


# The fit on other rows: refits without a row, or a cluster, meet numbers that they never observed


def sparse_numbers(seed: int, rows: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers of which many occur in one row alone, and outputs that grow with them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.choice([1, 2, 4, 5, 8, 9, 12, 15], rows),
            "b": rng.integers(0, 60, rows),
            "g": rng.choice(NAMES, rows),
        }
    )
    X.loc[:1, "a"] = [6, 20]
    return X, X["a"] * 0.5 + np.sqrt(X["b"]) + (X["g"] == "u") + 0.2 * rng.normal(size=rows)


def r2_of_refits(X: pd.DataFrame, y: np.ndarray, **options: object) -> float:
    """R2 of every row predicted by a fit to all the others, through the public interface."""
    errors = []
    for i in range(len(X)):
        others = FunctionalANOVA(handle_unknown="ignore", **options).fit(X.drop(index=i), np.delete(np.asarray(y), i))
        errors.append(y[i] - others.predict(X.iloc[[i]])[0])
    return 1.0 - float(np.mean(np.square(errors)) / np.var(y))


@pytest.mark.parametrize("n_bins", ["auto", {"b": 60}], ids=["bins", "numbers"])
@pytest.mark.parametrize(("seed", "order"), [(0, 1), (1, 1), (2, 2)])
def test_rows_left_out_are_read_between_their_neighbours_as_by_refits(seed, order, n_bins):
    X, y = sparse_numbers(seed)
    options = {"max_order": order, "n_bins": n_bins}
    anova = FunctionalANOVA(**options).fit(X, y)
    assert anova.certificate_.r2_eval[0] == pytest.approx(r2_of_refits(X, y, **options), abs=0.02)


def test_a_fit_that_the_rows_determine_holds_on_rows_with_numbers_of_their_own():
    X, _ = sparse_numbers(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfitWarning)
        anova = FunctionalANOVA(max_order=1, n_bins={"b": 60}).fit(X, 2.0 * X["a"] - X["b"])
    assert anova.certificate_.r2_eval[0] > 0.98


@pytest.mark.parametrize("seed", [0, 1])
def test_clusters_with_numbers_of_their_own_are_read_between_those_of_the_others(seed):
    X, y = sparse_numbers(seed)
    found = FunctionalANOVA(max_order=1, n_bins={"b": 60}).fit(X, y, clusters=X["b"].to_numpy())
    unrelated = FunctionalANOVA(max_order=1, n_bins={"b": 60}).fit(
        X.assign(b=X["b"].map(dict(zip(range(60), np.random.default_rng(0).permutation(60), strict=True)))),
        y,
        clusters=X["b"].to_numpy(),
    )
    assert found.certificate_.r2_eval[0] > 0.9
    assert unrelated.certificate_.r2_eval[0] < 0.8


# Wherever new rows are read


def corners(row: pd.Series, levels: dict[str, list[float]]) -> list[tuple[float, dict]]:
    """The rows of known numbers around a row, with their weights."""
    found: list[tuple[float, dict]] = [(1.0, {})]
    for name, value in row.items():
        ends = [(1.0, value)]
        if name in levels and value not in levels[name]:
            known = levels[name]
            k = int(np.searchsorted(known, value))
            share = 1.0 if not 0 < k < len(known) else (value - known[k - 1]) / (known[k] - known[k - 1])
            ends = [(share, known[min(k, len(known) - 1)]), (1.0 - share, known[max(k - 1, 0)])]
        found = [(w * u, at | {name: end}) for w, at in found for u, end in ends if u]
    return found


@examples(20)
@given(seed=st.integers(0, 10_000), order=st.sampled_from([1, 2, 3]), count=st.sampled_from([15, 60, 500]))
def test_every_query_interpolates_between_the_rows_of_known_numbers(seed, order, count):
    rows = table(seed % 7, count)
    anova = fitted(rows, max_order=order)
    chosen = new_rows().sample(6, random_state=seed).reset_index(drop=True)
    around = [corners(row, {"step": STEPS, "rate": RATES}) for _, row in chosen.iterrows()]
    owner = np.repeat(np.arange(6), [len(own) for own in around])
    weight = np.array([w for own in around for w, _ in own])
    at = pd.DataFrame([row for own in around for _, row in own])

    def mixed(values: np.ndarray) -> np.ndarray:
        out = np.zeros((6, *values.shape[1:]))
        np.add.at(out, owner, values * weight.reshape(-1, *[1] * (values.ndim - 1)))
        return out

    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(anova.predict(chosen), mixed(anova.predict(at)), **close)
    np.testing.assert_allclose(anova.components(chosen).values, mixed(anova.components(at).values), **close)
    np.testing.assert_allclose(anova.explain(chosen).values, mixed(anova.explain(at).values), **close)
    many = pd.concat([chosen] * 300, ignore_index=True)
    np.testing.assert_allclose(anova.predict(many).reshape(300, 6)[-1], mixed(anova.predict(at)), **close)
    pairs = [anova.interactions(X, index="SII", order=2).values for X in (chosen, at)]
    np.testing.assert_allclose(pairs[0], mixed(pairs[1]), **close)
    groups = {"numbers": ["step", "rate"]}
    both = [anova.explain(X, groups=groups).values for X in (chosen, at)]
    np.testing.assert_allclose(both[0], mixed(both[1]), **close)
    found = anova.difference(chosen, rows)
    gap = anova.predict(chosen).mean() - anova.predict(rows).mean()
    np.testing.assert_allclose(found.contrasts[0].total, [gap], **close)
    outside = anova.explain(chosen).outside
    new = ~chosen["step"].isin(STEPS) | ~chosen["rate"].isin(RATES)
    assert outside[new].all()


def test_reasons_name_the_number_and_what_it_lies_between():
    anova = fitted(table(0, 300))
    row = pd.DataFrame({"step": [3], "rate": [1.0], "name": ["u"]})
    values = anova.explain(row).values[0]
    found = {r.feature: r for r in anova.reasons(row, direction="both").rows[0].reasons}
    assert (found["step"].value, found["step"].level) == ("3", "between 2 and 4")
    for k, name in enumerate(row):
        assert name not in found or found[name].contribution == pytest.approx(values[k])
    against = anova.reasons(table(0, 300).head(3), against=row, direction="both")
    assert against.rows[0].compared == pytest.approx(float(anova.predict(row)[0]))


def test_an_explanation_shows_where_a_number_lies():
    anova = fitted(table(0, 300))
    rows = pd.DataFrame({"step": [2, 3, 7, 0, 30], "rate": [1.0] * 5, "name": ["u"] * 5})
    shown = anova.explain(rows, stderr=True)
    assert shown.display_data[:, 0].tolist() == ["2", "between 2 and 4", "between 5 and 8", "below 1", "above 8"]
    np.testing.assert_allclose(shown.data[:, 0], [1, 1.5, 3 + 2 / 3, 0, 4])
    assert np.isfinite(shown.stderr[0]).all()
    assert np.isnan(shown.stderr[1:, 0]).all()
    assert shown.outside[1:].all()
    assert anova.plot.beeswarm(rows) is not None


def test_the_warning_counts_such_rows_and_strict_refuses_them():
    anova = fitted(table(0, 300))
    rows = pd.DataFrame({"step": [2, 3], "rate": [1.0, 1.0], "name": ["u", "u"]})
    with pytest.warns(OutsideSupportWarning, match=r"extrapolated by the prior.*1 row of these: numbers"):
        anova.predict(rows)
    with pytest.raises(OutsideSupportError):
        anova.set_params(strict=True).predict(rows)


def test_by_default_such_a_number_is_refused_with_what_helps():
    anova = fitted(table(0, 300), handle_unknown="error")
    with pytest.raises(UnknownLevelError, match=r"'step' .*: 3 .*handle_unknown='ignore', which reads numbers"):
        anova.predict(pd.DataFrame({"step": [3], "rate": [1.0], "name": ["u"]}))
    with pytest.raises(UnknownLevelError, match=r"handle_unknown='ignore'\.?$"):
        anova.predict(pd.DataFrame({"step": [2], "rate": [1.0], "name": ["z"]}))


def score(anova: FunctionalANOVA, rows: pd.DataFrame, path, dialect: str) -> pd.DataFrame:
    anova.export(path, dialect=dialect)
    query = path.read_text(encoding="utf-8").rstrip().removesuffix(";")
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
        rows.to_sql("rows", connection, index=False)
        found = pd.read_sql(query, connection)
        connection.close()
        return found
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.execute(query).df()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("order", [1, 3])
def test_a_database_reads_the_same_between_levels(tmp_path, dialect, order):
    anova = fitted(table(2, 60), max_order=order)
    rows = new_rows()
    found = score(anova, rows, tmp_path / "score.sql", dialect).sort_values(list(rows)).reset_index(drop=True)
    rows = rows.sort_values(list(rows)).reset_index(drop=True)
    np.testing.assert_allclose(found["fitted"], anova.predict(rows), rtol=1e-9)
    assert (found["outside_support"].to_numpy() == anova.explain(rows).outside).all()


def test_a_saved_file_reads_the_same_between_levels(tmp_path):
    anova = fitted(table(0, 60))
    anova.save(tmp_path / "fit.exanova")
    loaded = exanova.load(tmp_path / "fit.exanova")
    np.testing.assert_array_equal(loaded.predict(new_rows()), anova.predict(new_rows()))


def test_rows_given_to_evaluate_are_read_the_same_in_memory_and_from_a_file(tmp_path):
    rows, new = table(0, 300), new_rows()
    target = np.sqrt(new["step"]) * new["rate"]
    found = FunctionalANOVA(sampled=True, handle_unknown="ignore").fit(rows, outputs(rows), eval_set=(new, target))
    assert found.certificate_.r2_eval[0] == pytest.approx(found.score(new, target))
    rows.assign(target=outputs(rows)).to_parquet(tmp_path / "rows.parquet")
    new.assign(target=target).to_parquet(tmp_path / "new.parquet")
    own = FunctionalANOVA(sampled=True, handle_unknown="ignore")
    own.fit(str(tmp_path / "rows.parquet"), "target", eval_set=(str(tmp_path / "new.parquet"), "target"))
    assert own.certificate_.r2_eval[0] == pytest.approx(found.certificate_.r2_eval[0])


def test_a_page_leaves_out_rows_that_it_cannot_read_and_says_so():
    anova = fitted(table(0, 300))
    rows = pd.concat([table(0, 20), pd.DataFrame({"step": [3], "rate": [1.0], "name": ["u"]})], ignore_index=True)
    live = live_rows(anova.decomposition_, GivenRows(rows))
    assert len(live.numbers) == len(rows) - 1
    assert len(rows) - 1 not in live.numbers
    assert "1 row with numbers never observed" in live.note


# What is not read between levels


def test_an_exact_fit_knows_nothing_there():
    rows = table(0, 300)
    anova = fitted(rows, shrinkage=None)
    new = pd.DataFrame({"step": [3], "rate": [1.0], "name": ["u"]})
    alone = anova.components(new)
    touched = ["step" in subset for subset in alone.subsets]
    assert not alone.values[0, touched].any()


def test_names_that_are_written_as_numbers_have_no_order():
    rows = table(0, 300).astype({"step": "category"})
    anova = FunctionalANOVA(sampled=True, handle_unknown="ignore").fit(rows, outputs(rows.astype({"step": int})))
    parts = anova.components(pd.DataFrame({"step": [3], "rate": [1.0], "name": ["u"]}))
    assert not parts.values[0, ["step" in subset for subset in parts.subsets]].any()


@pytest.mark.parametrize("value", ["3", np.inf, -np.inf, None])
def test_what_is_no_number_stays_unknown(value):
    rows = table(0, 300).astype({"step": object})
    anova = FunctionalANOVA(sampled=True, handle_unknown="ignore").fit(rows, outputs(rows.astype({"step": int})))
    new = pd.DataFrame({"step": pd.Series([value], dtype=object), "rate": [1.0], "name": ["u"]})
    parts = anova.components(new)
    assert not parts.values[0, ["step" in subset for subset in parts.subsets]].any()


# Places


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=12, unique=True), st.integers(-1100, 1100))
def test_a_whole_number_lies_where_it_is_unless_gaps_are_very_uneven(levels, number):
    levels = sorted(levels)
    found = between(levels, list(map(str, levels)))
    gaps = np.diff(levels)
    if number in levels:
        return
    k = int(found.find(np.array([number]))[0])
    at = levels[found.lower[k]] + found.share[k] * (levels[found.upper[k]] - levels[found.lower[k]])
    if number < levels[0] or number > levels[-1]:
        assert at == (levels[0] if number < levels[0] else levels[-1])
    elif gaps.min() == 1 and gaps.max() <= MOST_STEPS + 1:
        assert at == pytest.approx(number)
    else:
        gap = levels[found.upper[k]] - levels[found.lower[k]]
        assert levels[found.lower[k]] < number < levels[found.upper[k]]
        assert abs(at - number) <= gap / 2


def test_places_are_few_and_need_an_order():
    assert between([1, 2], ["1", "2"]) is None
    assert between([2, 1, 3], ["2", "1", "3"]) is None
    assert between([1, 2, float("inf")], ["1", "2", "inf"]) is None
    assert between([10**16, 10**16 + 1, 10**17], ["a", "b", "c"]) is None  # the same numbers in double precision
    wide = np.cumsum(np.tile([1, 100], 100)).tolist()
    assert len(between(wide, list(map(str, wide)))) == len(wide) + 1 <= MOST_PLACES + 1
    some = between([Decimal("0.5"), Decimal("1.5"), 3], ["0.5", "1.5", "3"])
    assert some.share.tolist() == [0.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("smallest", [5e-324, 1e-320, 1e-300])
def test_numbers_of_very_different_sizes_are_fitted_without_a_warning(smallest):
    """The ratio of two gaps need not be a number."""
    rows = pd.DataFrame({"x": [0.0, smallest, 0.3, 1e10] * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        anova = FunctionalANOVA(sampled=False).fit(rows, np.tile([1.0, 2.0, 3.0, 5.0], 20))
    assert anova.predict(rows[:4]).round(9).tolist() == [1, 2, 3, 5]
