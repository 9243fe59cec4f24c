"""Numbers cut into bins: which columns, how many bins, where, and what they are called."""

import itertools
import json
import math
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import KBinsDiscretizer

import exanova
from exanova import FunctionalANOVA
from exanova.data import Encoding, Table, learn_encoding
from exanova.data.binning import bin_codes, cut_positions
from exanova.data.cutting import cut_numbers
from exanova.data.intervals import are_single, edges_between, interval_labels, number_text, round_between
from exanova.data.levels import shortest
from exanova.data.run_labels import run_label
from exanova.data.segments import join_lightest, join_nearest, room_around
from exanova.data.splits import ColumnSplits, edges_of
from exanova.errors import InputError, InputTypeError
from exanova.explain.cells import cell_text

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
ordinary = st.integers(-(10**6), 10**6).map(lambda k: k / 64)


def learned(column, **options):
    """The one feature of a table of one column."""
    return learn_encoding(Table.read(pd.DataFrame({"a": column})), **options).features[0]


def holds(label, number):
    """Whether a number lies in the interval that a label writes, read by eye: an independent reading."""
    if label == "(any value)":
        return True
    for sign, test in (("<= ", "le"), ("< ", "lt"), (">= ", "ge"), ("> ", "gt")):
        if label.startswith(sign):
            return getattr(float(number), f"__{test}__")(float(label.removeprefix(sign)))
    if label[0] not in "[(":
        return float(label) == number
    low, high = label[1:-1].split(", ")
    above = number >= float(low) if label[0] == "[" else number > float(low)
    return above and (number <= float(high) if label[-1] == "]" else number < float(high))


# --- which columns are cut ----------------------------------------------------------------------------------------


def test_numbers_with_more_than_twenty_values_are_cut_and_others_are_levels():
    rng = np.random.default_rng(0)
    n = 2000
    frame = pd.DataFrame(
        {
            "float": rng.normal(size=n),
            "integer": rng.integers(0, 500, n),
            "small": rng.integers(0, 20, n),
            "halves": rng.choice([0.0, 0.5, 1.0], n),
            "flag": rng.integers(0, 2, n).astype(bool),
            "name": rng.choice(list("uvw"), n),
            "category": pd.Categorical(rng.integers(0, 30, n)),
        }
    )
    encoding = learn_encoding(Table.read(frame))
    assert encoding.sizes == (32, 32, 20, 3, 2, 3, 30)
    assert [bool(feature.edges) for feature in encoding.features] == [True, True, *[False] * 5]
    assert encoding.ordered == (32, 32, 20, 3, 0, 0, 0)
    assert encoding.levels[2] == tuple(range(20))
    assert encoding.levels[3] == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("values", [np.arange(200), np.arange(200) / 4, np.repeat(np.arange(10), 20)])
@pytest.mark.parametrize("n_bins", ["auto", 5])
def test_one_missing_value_does_not_change_how_a_column_is_treated(values, n_bins):
    whole = learned(values, n_bins=n_bins)
    holed = learned(np.append(values.astype(float), np.nan), n_bins=n_bins)
    assert holed.levels == (*whole.levels, None)
    assert holed.edges == whole.edges
    assert holed.ordered == whole.ordered
    for native in (
        pd.DataFrame(
            {"a": pd.array([*values.tolist(), None], dtype="Int64" if values.dtype.kind == "i" else "Float64")}
        ),
        pl.DataFrame({"a": [*values.tolist(), None]}),
        pa.table({"a": [*values.tolist(), None]}),
        np.array([*values.tolist(), None], dtype=object)[:, None],
    ):
        table = Table.read(native)
        other = learn_encoding(table, n_bins=n_bins)
        assert other.levels[0] == holed.levels
        assert other.encode(table)[0, -1] == len(whole.levels)


def test_a_number_of_bins_is_for_integers_as_for_floats():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"i": np.arange(500) % 99, "f": rng.normal(size=500), "few": rng.integers(0, 12, 500)})
    assert learn_encoding(Table.read(frame), n_bins=5).sizes == (5, 5, 12)
    assert learn_encoding(Table.read(frame), n_bins={"few": 3, "i": None}).sizes[:2] == (99, 32)
    assert learn_encoding(Table.read(frame), n_bins={"few": 3}).sizes[2] == 3
    assert learn_encoding(Table.read(frame), n_bins={"few": 12}).features[2].edges == ()
    assert learn_encoding(Table.read(frame), n_bins={"f": "auto"}).sizes == (32, 32, 12)


def test_none_refuses_every_continuous_column_in_one_message_with_the_call_to_paste():
    frame = pd.DataFrame(
        {
            "price": np.linspace(0.1, 1, 60),
            "size": np.linspace(5, 7, 60),
            "day": pd.date_range("2024-01-01", periods=60),
            "kind": ["u", "v"] * 30,
            "whole": np.arange(60.0) % 30,
        }
    )
    with pytest.raises(InputError, match="3 column") as caught:
        learn_encoding(Table.read(frame), n_bins=None)
    message = str(caught.value)
    assert "'price' (60 different values), 'size' (60 different values), 'day' (60 different values)" in message
    assert "'kind'" not in message
    assert "'whole'" not in message
    pasted = eval(re.search(r"n_bins=(\{.*?\})", message)[1])
    assert learn_encoding(Table.read(frame), n_bins=pasted).sizes == (8, 8, 8, 2, 6)
    assert learn_encoding(Table.read(frame), n_bins="auto").sizes[:2] == (6, 6)
    assert learn_encoding(Table.read(frame[["kind", "whole"]]), n_bins=None).sizes == (2, 30)


def test_a_column_of_names_cannot_be_binned():
    frame = pd.DataFrame({"a": np.arange(30), "c": ["u", "v"] * 15})
    with pytest.raises(InputError, match="does not have: 'zz'"):
        learn_encoding(Table.read(frame), n_bins={"zz": 3})
    with pytest.raises(InputError, match="'c', which does not hold numbers or times"):
        learn_encoding(Table.read(frame), n_bins={"c": 3})
    encoding = learn_encoding(Table.read(frame), n_bins={"a": 3})
    with pytest.raises(InputTypeError, match="'a' is binned, but holds a value of type str"):
        encoding.encode(Table.read(frame.assign(a="text")))


@pytest.mark.parametrize("form", [lambda x: pa.table({"a": x}), lambda x: np.array(x, dtype=object)[:, None]])
def test_decimals_are_numbers(form):
    cells = [Decimal(k) / 4 for k in range(100)]
    table = Table.read(form(cells))
    encoding = learn_encoding(table)
    assert encoding.sizes == (10,)
    assert encoding.encode(table)[0].tolist() == sorted(encoding.encode(table)[0].tolist())
    assert encoding.encode(Table.read(form([Decimal("0.1")]))).tolist() == [[0]]


# --- identifiers --------------------------------------------------------------------------------------------------


def test_identifiers_are_left_out_with_one_warning():
    n = 60
    frame = pd.DataFrame(
        {
            "key": [f"id{i}" for i in range(n)],
            "customer_id": np.arange(1000, 1000 + n),
            "x": np.arange(n),
            "y": [1, 2] * 30,
        }
    )
    with pytest.warns(UserWarning, match=r"2 columns are left out.*'key' \(60 .*'customer_id' \(60") as caught:
        encoding = learn_encoding(Table.read(frame))
    assert len(caught) == 1
    assert "You may also drop them from the table" in str(caught[0].message)
    with pytest.warns(UserWarning, match="You may also drop it from the table"):
        learn_encoding(Table.read(frame.drop(columns="key")))
    assert encoding.sizes == (1, 1, 6, 2)
    new = pd.DataFrame({"key": ["never seen", None], "customer_id": [-5, 10**9], "x": [3, 4], "y": [1, 2]})
    assert encoding.encode(Table.read(new))[:2].tolist() == [[0, 0], [0, 0]]
    assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    assert not encoding.is_lossless
    assert encoding.ordered[:2] == (0, 0)


def test_what_repeats_or_was_asked_for_is_no_identifier():
    frame = pd.DataFrame({"key": [f"id{i}" for i in range(60)]})
    assert learn_encoding(Table.read(frame), min_frequency=2).sizes == (1,)
    assert learn_encoding(Table.read(frame), weights=np.full(60, 2)).sizes == (60,)
    assert learn_encoding(Table.read(pd.concat([frame, frame]))).sizes == (60,)
    assert learn_encoding(Table.read(frame[:50])).sizes == (50,)
    numbers = pd.DataFrame({"id": np.arange(60)})
    assert learn_encoding(Table.read(numbers), n_bins={"id": 4}).sizes == (4,)
    assert learned(np.arange(60)).edges


def test_the_model_receives_a_column_that_is_left_out(tmp_path):
    frame = pl.DataFrame({"id": [f"k{i}" for i in range(80)], "a": ["u", "v"] * 40})
    asked = []

    def model(rows):
        asked.append(rows.columns)
        return rows["a"].to_numpy() == "v"

    with pytest.warns(UserWarning, match="'id'"):
        anova = FunctionalANOVA(shrinkage=None).fit(frame, model)
    assert asked == [["id", "a"]] * 2  # on all rows, and on a few again
    assert anova.predict(pl.DataFrame({"id": ["new", "other"], "a": ["v", "u"]})) == pytest.approx([1.0, 0.0])
    anova.save(tmp_path / "m.exanova")
    assert exanova.load(tmp_path / "m.exanova").predict(frame).tolist() == anova.predict(frame).tolist()


# --- how many, and where ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "kmeans"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_fall_in_the_bins_of_scikit_learn(strategy, weighted):
    rng = np.random.default_rng(1)
    x = rng.gamma(2.0, size=101)
    weight = rng.integers(1, 5, size=101) if weighted else None
    options = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
    theirs = KBinsDiscretizer(4, encode="ordinal", strategy=strategy, **options)
    theirs.fit(x[:, None], sample_weight=weight)
    encoding = learn_encoding(Table.read(x[:, None]), weights=weight, n_bins=4, strategy=strategy)
    moved = encoding.encode(Table.read(x[:, None]))[0] != theirs.transform(x[:, None])[:, 0]
    total = 101 if weight is None else weight.sum()
    allowed = 3 * total / 4 / 50 if strategy == "quantile" else 0  # three cuts move a little, to round numbers
    assert (moved if weight is None else weight[moved]).sum() <= allowed
    ends = encoding.encode(Table.read(np.array([[-99.0], [99.0]])))[0].tolist()
    assert ends == [0, encoding.sizes[0] - 1]


@pytest.mark.parametrize("rows", [21, 60, 100, 250, 1000, 5000])
def test_few_rows_have_few_bins_and_every_bin_has_rows(rows):
    x = np.random.default_rng(rows).normal(size=rows)
    feature = learned(x)
    assert len(feature.levels) == max(2, min(32, rows // 10))
    assert np.bincount(feature.encode(Table.read(x[:, None]).column("x0"))).min() >= 5


def test_a_value_that_holds_many_rows_is_a_level_of_its_own():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(3000) < 0.86, 0, rng.integers(1, 60, 3000))
    for n_bins, size in (("auto", 32), (5, 5), (3, 3)):
        feature = learned(x, n_bins=n_bins)
        assert feature.labels[0] == "0"
        assert len(feature.levels) == size
        codes = feature.encode(Table.read(x[:, None]).column("x0"))
        assert ((codes == 0) == (x == 0)).all()
    money = np.where(x == 0, 0.0, x * 1.37)
    labels = learned(money, n_bins=4).labels
    assert labels[0] == "0"
    assert labels[1].startswith("(0, ")
    both = np.where(rng.random(3000) < 0.5, 0.0, rng.normal(size=3000))
    codes = learned(both).encode(Table.read(both[:, None]).column("x0"))
    assert len(set(codes[both == 0.0])) == 1
    assert (both[codes == codes[both == 0.0][0]] == 0.0).all()


def test_a_value_is_alone_from_the_share_of_a_bin_on():
    weight = np.ones(95, dtype=int)
    for heavy, is_alone in ((6, True), (4, False)):  # of 100 and 98 rows in 20 bins
        weight[50] = heavy
        starts, alone = cut_positions(np.arange(95.0), weight, 20, "quantile")
        assert (50 in starts[alone].tolist()) == is_alone


def test_a_column_with_as_many_values_as_bins_keeps_them_apart():
    days = np.repeat(np.arange(1, 32), 40)
    feature = learned(days)
    assert feature.labels == tuple(map(str, range(1, 32)))
    assert feature.ordered == 31


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 9)), min_size=6, max_size=60, unique_by=lambda t: t[0]),
    st.integers(2, 8),
    st.sampled_from(["uniform", "quantile"]),
    st.integers(0, 12),
)
@settings(deadline=None)
def test_cuts_depend_on_the_distribution_only_and_bins_are_neither_too_many_nor_too_light(
    pairs, n_bins, strategy, least
):
    values, weight = (np.array(part) for part in zip(*sorted(pairs), strict=True))
    values = values.astype(float)
    starts, alone = cut_positions(values, weight, n_bins, strategy, least)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert len(starts) <= n_bins
    again, _ = cut_positions(values, 7 * weight, n_bins, strategy, 7 * least)
    assert starts.tolist() == again.tolist()
    totals = np.add.reduceat(weight, starts)
    assert len(starts) == 1 or totals.min() >= least
    sizes = np.diff(np.append(starts, len(values)))
    assert (sizes[alone] == 1).all()
    heavy = weight * n_bins > weight.sum()
    if strategy == "quantile" and least == 0 and heavy.sum() == 1 and not heavy[[0, -1]].any() and n_bins > 2:
        assert np.flatnonzero(heavy)[0] in starts[alone]


@given(st.lists(st.integers(0, 50), min_size=30, max_size=80), st.data())
@settings(deadline=None, max_examples=40)
def test_a_weight_is_as_many_rows_also_for_bins(cells, data):
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(cells), max_size=len(cells))))
    weight[0] = max(weight[0], 1)
    table = Table.read(np.array(cells)[:, None])
    repeated = table.rows(np.repeat(np.arange(len(cells)), weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in ({}, {"n_bins": 4}):
            assert learn_encoding(table, weights=weight, **options) == learn_encoding(repeated, **options)


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=30), st.integers(2, 6), st.sampled_from([0.0, 0.02, 0.125, 0.4])
)
def test_a_cut_moves_by_no_more_than_a_share_of_either_bin(weight, n_bins, share):
    weight = np.array(weight)
    starts, _ = cut_positions(np.arange(len(weight)) + 0.0, weight, n_bins, "quantile")
    low, high = room_around(starts, weight, share)
    totals = np.add.reduceat(weight, starts)
    for k, p in enumerate(starts[1:]):
        room = share * min(totals[k], totals[k + 1])
        assert low[k] < p <= high[k]
        assert weight[low[k] + 1 : p].sum() <= room
        assert weight[p : high[k]].sum() <= room
        assert weight[low[k] : p].sum() > room  # and by as much as it may
    assert (low >= starts[:-1]).all()
    assert (high < np.append(starts[2:], len(weight))).all()


def test_edges_stay_short_in_a_large_table():
    feature = learned(np.random.default_rng(0).lognormal(10, 1, 200_000))
    assert max(len(number_text(edge).strip("0")) for edge in feature.edges[1:-1]) <= 3
    rows = np.bincount(feature.encode(Table.read(np.random.default_rng(0).lognormal(10, 1, (200_000, 1))).column("x0")))
    assert rows.min() > 0.7 * 200_000 / 32


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.integers(1, 6), st.integers(0, 9))
def test_joining_leaves_bins_that_are_heavy_and_few(weight, most, least):
    starts = join_lightest(np.arange(len(weight)), np.array(weight), most, least)
    totals = np.add.reduceat(weight, starts)
    assert starts[0] == 0
    assert len(starts) <= most
    assert len(starts) == 1 or totals.min() >= least


@given(st.lists(st.integers(0, 20), min_size=3, max_size=9), st.data())
@settings(deadline=None)
def test_neighbours_are_joined_at_the_least_loss(steps, data):
    place = np.cumsum(steps).astype(float)
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(steps), max_size=len(steps))), dtype=float)

    def loss(starts):
        parts = [np.arange(a, b) for a, b in zip(starts, [*starts[1:], len(place)], strict=True)]
        means = [np.average(place[part], weights=weight[part]) for part in parts]
        return sum((weight[p] * (place[p] - m) ** 2).sum() for p, m in zip(parts, means, strict=True))

    bins = [join_nearest(place, weight, most).tolist() for most in range(1, len(steps) + 1)]
    assert [len(starts) for starts in bins] == list(range(1, len(steps) + 1))
    for fewer, more in itertools.pairwise(bins):
        assert set(fewer) < set(more)  # one pair of neighbours is joined, and it is the cheapest
        cheapest = min(loss([s for s in more if s != gone]) for gone in more[1:])
        assert loss(fewer) == pytest.approx(cheapest, abs=1e-9)


# --- edges and labels ---------------------------------------------------------------------------------------------


round_numbers = st.integers(-500, 500).map(lambda k: k / 10)


@given(finite | round_numbers, finite | round_numbers)
@settings(max_examples=500)
def test_an_edge_separates_its_neighbours_and_nothing_shorter_does(a, b):
    low, high = min(a, b), max(a, b)
    if low == high:
        return
    edge = round_between(low, high)
    assert low < edge <= high
    digits = len(Decimal(repr(edge)).normalize().as_tuple().digits) if edge else 0
    for places in range(1, digits):  # no decimal with fewer digits lies between them
        for candidate in (float(f"{high:.{places - 1}e}"), float(f"{low:.{places - 1}e}")):
            assert not low < candidate <= high


@given(finite)
@settings(max_examples=300)
@example(295039.575)
def test_an_edge_is_found_between_neighbouring_floats(low):
    for high in (math.nextafter(low, math.inf), math.nextafter(math.nextafter(low, math.inf), math.inf)):
        if math.isfinite(high):
            assert low < round_between(low, high) <= high


extreme = st.one_of(
    finite,
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1).map(float),
    st.sampled_from([-0.0, 0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**53 + 2]),
)


@given(st.lists(extreme, min_size=21, max_size=60), st.sampled_from(["auto", 2, 5]), st.data())
@settings(deadline=None)
def test_numbers_of_any_size_lie_in_their_labels(cells, n_bins, data):
    near = data.draw(st.lists(st.sampled_from(cells), max_size=10))
    with np.errstate(over="ignore"):
        rows = np.array(cells + [math.nextafter(cell, data.draw(st.sampled_from([math.inf, 0.0]))) for cell in near])
    rows = rows[np.isfinite(rows)]
    feature = learned(rows, n_bins=n_bins)
    if not feature.edges:
        return
    codes = feature.encode(Table.read(rows[:, None]).column("x0"))
    single = not (rows == np.floor(rows)).all() and are_single(rows)
    for number, code in zip(rows, codes, strict=True):
        shown = shortest(float(number)) if single else number
        assert [k for k, label in enumerate(feature.labels) if holds(label, shown)] == [code]


@pytest.mark.parametrize("of", [np.float32, np.float64])
@pytest.mark.parametrize("strategy", ["quantile", "uniform", "model"])
@given(
    st.lists(st.integers(-9999, 9999), min_size=21, max_size=80, unique=True),
    st.sampled_from([10, 100, 1e6]),
    st.data(),
)
@settings(deadline=None, max_examples=15)
def test_single_precision_is_written_as_before_it_was_rounded(of, strategy, cells, unit, data):
    """Those who have 2.96 in a file, as do tables of other programs, read 2.96 and not 2.9600000381469727."""
    heavy = data.draw(st.sampled_from(cells))
    exact = np.array([*cells, *[heavy] * data.draw(st.sampled_from([0, 40]))]) / unit
    rows = exact.astype(np.float32).astype(of)
    near = data.draw(st.sampled_from(rows.astype(np.float32).tolist()))
    splits = ColumnSplits(
        edges_of(np.array([near, near * 1.1]), closed=data.draw(st.booleans()), single=True), np.ones(2)
    )
    column = Table.read(pd.DataFrame({"a": rows})).column("a")
    values, counts = np.unique(rows.astype(np.float64), return_counts=True)
    feature = cut_numbers(column, values.tolist(), counts, "auto", strategy, len(rows), splits)
    if not feature.edges:
        return
    codes = feature.encode(column)
    assert max(len(text) for label in feature.labels for text in label.strip("[]()<>= ").split(", ")) <= 14
    for number, code in zip(exact, codes, strict=True):
        assert [k for k, label in enumerate(feature.labels) if holds(label, number)] == [code]
        assert cell_text(rows[exact == number][0]) == number_text(float(number))
    for first, last in itertools.islice(itertools.combinations(range(len(feature.labels)), 2), 12):
        whole = run_label(feature, first, last)
        assert all(holds(whole, number) == (first <= code <= last) for number, code in zip(exact, codes, strict=True))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=21, max_size=60, unique=True), st.sampled_from(["auto", 4]))
@settings(deadline=None)
def test_integers_of_any_size_are_cut_in_order(cells, n_bins):
    column = Table.read(pd.DataFrame({"a": np.array(cells, dtype=np.int64)}))
    feature = learn_encoding(column, n_bins=n_bins).features[0]
    codes = feature.encode(column.column("a"))
    if feature.edges:
        assert (np.diff(codes[np.argsort(np.array(cells))]) >= 0).all()
        assert set(codes.tolist()) == set(range(len(feature.levels)))


@given(st.lists(ordinary, min_size=25, max_size=80, unique=True), st.sampled_from(["auto", 3, 7]), st.data())
@settings(deadline=None)
def test_every_row_lies_in_its_label_and_in_no_other(cells, n_bins, data):
    heavy = data.draw(st.sampled_from(cells))
    rows = np.array(cells + [heavy] * data.draw(st.sampled_from([0, 40])))
    feature = learned(rows, n_bins=n_bins)
    codes = feature.encode(Table.read(rows[:, None]).column("x0"))
    for number, code in zip(rows, codes, strict=True):
        assert [k for k, label in enumerate(feature.labels) if holds(label, number)] == [code]
    assert sorted(codes[np.argsort(rows, kind="stable")].tolist()) == codes[np.argsort(rows, kind="stable")].tolist()
    again = Encoding.from_json(json.loads(json.dumps(Encoding((feature,)).to_json())))
    assert again.features == (feature,)


@given(st.lists(finite, min_size=2, max_size=6, unique=True))
def test_labels_are_exact_for_any_edges(numbers):
    edges = sorted(numbers)
    if len(edges) < 3 or not all(a < b for a, b in itertools.pairwise(edges)):
        return
    labels = interval_labels(edges, [False] * (len(edges) - 1), whole=False)
    for number in [
        *edges,
        *(math.nextafter(e, math.inf) for e in edges),
        *(math.nextafter(e, -math.inf) for e in edges),
    ]:
        if math.isfinite(number):
            code = int(bin_codes(np.array([number]), np.array(edges))[0])
            assert [k for k, label in enumerate(labels) if holds(label, number)] == [code]


def test_money_is_written_in_full():
    rng = np.random.default_rng(0)
    feature = learned(np.exp(rng.normal(11, 1.5, 3000)).round(2), n_bins=6)
    assert all("e" not in label for label in feature.labels)
    assert max(map(len, feature.labels)) <= 16
    assert number_text(12_345_678.9) == "12345678.9"


def test_edges_are_round_numbers_between_the_data():
    values = np.array([18.7, 24.2, 33.1, 47.9, 51.3, 80.4])
    starts = np.array([0, 2, 4])
    edges = edges_between(values, starts, np.zeros(3, dtype=bool), False, (starts[1:] - 1, starts[1:]))
    assert edges == (18.7, 30.0, 50.0, 80.4)
    assert interval_labels(edges, [False] * 3, whole=False) == ("< 30", "[30, 50)", ">= 50")


def test_rows_beyond_the_range_fall_in_the_first_and_the_last_bin():
    feature = learned(np.arange(100.0) / 3)
    codes = feature.encode(Table.read(np.array([[-1e9], [1e9]])).column("x0"))
    assert codes.tolist() == [0, len(feature.levels) - 1]
    assert feature.labels[0].startswith("< ")
    assert feature.labels[-1].startswith(">= ")


def test_gaps_belong_to_a_bin():
    x = np.array([[0.0], [0.5], [1.0], [9.5], [10.0], [np.nan]])
    encoding = learn_encoding(Table.read(x), n_bins={"x0": 4}, strategy="uniform")
    assert encoding.labels == (("< 5", ">= 5", "(missing)"),)
    assert encoding.encode(Table.read(x)).tolist() == [[0, 0, 0, 1, 1, 2]]
    assert encoding.raw_codes(Table.read(x)).tolist() == [[0, 1, 2, 3, 4, -1]]
    assert encoding.encode(Table.read(np.array([[4.9], [5.0]]))).tolist() == [[0, 1]]


def test_bins_of_earlier_files_are_read_as_they_were():
    entry = {"name": "a", "levels": ["[0, 1)", "[2, 3]"], "labels": ["[0, 1)", "[2, 3]"], "values": []}
    encoding = Encoding.from_json({"features": [{**entry, "codes": [0, -1, 1], "edges": [0, 1.0, 2.0, 3.0]}]})
    numbers = Table.read(np.array([[0.5], [2.5], [9.0]]))
    assert encoding.encode(numbers, handle_unknown="ignore").tolist() == [[0, 1, 1]]
    assert encoding.encode(Table.read(np.array([[1.5]])), handle_unknown="ignore").tolist() == [[-1]]
    assert encoding.ordered == (2,)


def test_large_integers_are_cut_without_losing_their_order():
    cells = np.arange(100, dtype=np.int64) * 2**40 + 2**62
    feature = learned(cells)
    codes = feature.encode(Table.read(cells[:, None]).column("x0"))
    assert (np.diff(codes) >= 0).all()
    assert len(set(codes.tolist())) == len(feature.levels) == 10


def test_bins_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=400), "b": rng.integers(0, 300, 400), "c": rng.choice(list("uv"), 400)})
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(frame, rng.normal(size=400))
    anova.save(tmp_path / "m.exanova")
    loaded = exanova.load(tmp_path / "m.exanova")
    assert loaded.decomposition_.encoding == anova.decomposition_.encoding
    assert loaded.predict(frame).tolist() == anova.predict(frame).tolist()
    assert loaded.get_params()["n_bins"] == "auto"
