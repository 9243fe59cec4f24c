"""``score.sql`` returns what ``predict`` returns: in DuckDB and SQLite, for every kind of level and of row."""

from __future__ import annotations

import datetime
import decimal
import math
import sqlite3
import struct
import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.errors import InputError, OutsideSupportWarning, UnknownLevelError
from exanova.export import score_sql, sql_codes
from exanova.export.sql_literals import DIALECTS, identifier, literal, real

SAME = 1e-12
"""Of the spread of the model: both sides add up the same numbers, in another order."""


def script(anova, tmp_path, **options):
    path = tmp_path / "score.sql"
    anova.export(path, **options)
    return path.read_text("utf-8")


def in_duckdb(query, rows):
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("rows", rows)
        return fetched(connection.execute(query))


def fetched(cursor):
    """A result as a table; duckdb's own conversion calls what pandas is about to drop."""
    names = [column[0] for column in cursor.description]
    return pd.DataFrame(cursor.fetchall(), columns=names)


def in_sqlite(query, rows):
    connection = sqlite3.connect(":memory:")
    try:
        rows.to_sql("rows", connection, index=False)
        return pd.read_sql(query.rstrip().removesuffix(";"), connection)
    finally:
        connection.close()


ENGINES = {"duckdb": in_duckdb, "sqlite": in_sqlite, "standard": in_duckdb}


def predicted(anova, rows):
    """(n, m) fitted values and (n,) rows outside the support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)
        values = anova.predict(rows)
        return values.reshape(len(rows), -1), anova.components(rows).outside


def agrees(anova, rows, tmp_path, dialect):
    """The query scores rows with a key ``id`` as ``predict`` does, and marks the same ones."""
    found = ENGINES[dialect](script(anova, tmp_path, dialect=dialect, keep=["id"]), rows).sort_values("id")
    values, outside = predicted(anova, rows)
    columns = [name for name in found if name.endswith("fitted")]
    assert len(found) == len(rows)
    scale = np.abs(values).max() or 1.0
    assert np.abs(found[columns].to_numpy(dtype=float) - values).max() <= SAME * scale
    assert found["outside_support"].to_numpy(dtype=bool).tolist() == outside.tolist()
    return found


def mixed_table(n, seed=0):
    rng = np.random.default_rng(seed)
    day = np.datetime64("2023-01-01", "us")
    table = pd.DataFrame(
        {
            "id": np.arange(n),
            "job": rng.choice(["it's", 'a "b"', "c; DROP TABLE rows --", "日本", "", " x "], n),
            "age": np.round(rng.normal(40, 12, n), 3),
            "children": rng.integers(0, 4, n),
            "rate": rng.choice([0.1, 0.25, 1 / 3, -2.5], n),
            "flag": rng.random(n) < 0.4,
            "when": day + rng.integers(0, 400 * 86400, n).astype("m8[s]"),
            "size": pd.Categorical(rng.choice(["small", "mid", "large"], n), ["small", "mid", "large"], ordered=True),
        }
    )
    table.loc[rng.random(n) < 0.05, "age"] = np.nan
    table.loc[rng.random(n) < 0.05, "job"] = None
    table.loc[table["job"] == "日本", "children"] = 0  # combinations that never occur
    return table


def model(table):
    known = table["age"].fillna(20.0)
    return 0.01 * known * (table["children"] > 1) + table["flag"] * 1.0 + (table["rate"] > 0.2) * table["job"].isna()


FITTED = mixed_table(3000)
FEATURES = FITTED.drop(columns="id")


@pytest.fixture(scope="module")
def mixed():
    return FunctionalANOVA(max_order=2).fit(FEATURES, model(FEATURES))


@pytest.mark.parametrize("dialect", ENGINES)
def test_a_hundred_thousand_rows_score_as_predict_says(mixed, tmp_path, dialect):
    rng = np.random.default_rng(5)
    rows = mixed_table(100_000, seed=9)
    rows["job"] = FITTED["job"].to_numpy()[rng.integers(0, len(FITTED), len(rows))]  # now with combinations never seen
    found = agrees(mixed, rows, tmp_path, dialect)
    assert found["outside_support"].sum() > 100
    assert found["fitted"].std() > 0.1


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_an_unknown_level_is_null_where_predict_raises_and_counts_as_zero_where_it_is_ignored(mixed, tmp_path, dialect):
    rows = FITTED.head(6).copy()
    rows["children"] = [0, 99, 1, 2, 3, 0]
    with pytest.raises(UnknownLevelError):
        mixed.predict(rows)
    found = ENGINES[dialect](script(mixed, tmp_path, dialect=dialect, keep=["id"]), rows).sort_values("id")
    assert found["fitted"].isna().tolist() == [False, True, False, False, False, False]
    mixed.set_params(handle_unknown="ignore")
    try:
        found = agrees(mixed, rows, tmp_path, dialect)
        assert found["outside_support"].tolist()[1] == 1
    finally:
        mixed.set_params(handle_unknown="error")


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_strict_rows_are_null(tmp_path, dialect):
    X = pd.DataFrame({"a": ["u", "u", "v"], "b": ["x", "y", "x"]})
    anova = FunctionalANOVA(strict=True, sampled=False).fit(X, np.array([0.0, 1.0, 5.0]))
    rows = pd.DataFrame({"a": ["u", "v"], "b": ["x", "y"]})
    found = ENGINES[dialect](script(anova, tmp_path, dialect=dialect), rows).sort_values("a")
    assert found["fitted"].isna().tolist() == [False, True]
    assert found["outside_support"].tolist() == [0, 1]


@pytest.mark.parametrize("handle", ["error", "ignore"])
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_infinity_in_a_column_of_bins_is_null_since_predict_refuses_it(mixed, tmp_path, dialect, handle):
    rows = FITTED.head(3).copy()
    rows["age"] = [math.inf, 30.0, -math.inf]
    with pytest.raises(InputError, match="infinite"):
        mixed.predict(rows)
    mixed.set_params(handle_unknown=handle)
    try:
        found = ENGINES[dialect](script(mixed, tmp_path, dialect=dialect, keep=["id"]), rows).sort_values("id")
    finally:
        mixed.set_params(handle_unknown="error")
    assert found["fitted"].isna().tolist() == [True, False, True]


def test_text_in_a_column_of_bins_is_null_in_sqlite(mixed, tmp_path):
    query = script(mixed, tmp_path, dialect="sqlite", keep=["id"])
    connection = sqlite3.connect(":memory:")
    rows = FITTED.head(2).drop(columns="age")
    rows.to_sql("others", connection, index=False)
    ages = "CASE id WHEN 0 THEN 'young' ELSE 30.0 END AS age"
    connection.execute(f"CREATE VIEW rows AS SELECT *, {ages} FROM others")
    found = pd.read_sql(query.rstrip().removesuffix(";"), connection).sort_values("id")
    connection.close()
    assert found["fitted"].isna().tolist() == [True, False]


def test_nan_is_a_missing_value_in_duckdb(mixed, tmp_path):
    rows = FITTED.head(2).copy()
    rows["age"] = [np.nan, 30.0]
    query = script(mixed, tmp_path, dialect="duckdb", keep=["id"])
    with duckdb.connect() as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        connection.execute("UPDATE rows SET age = CAST('NaN' AS DOUBLE) WHERE age IS NULL")
        found = fetched(connection.execute(query)).sort_values("id")
    assert np.abs(found["fitted"] - mixed.predict(rows)).max() <= SAME


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=12)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=10) | st.sampled_from(["'", "''", '"', "--", "/*", "\0", ";"])
LEVELS = st.lists(TEXTS, min_size=2, max_size=6, unique=True)


@settings(max_examples=25, deadline=None)
@given(names=st.lists(NAMES, min_size=2, max_size=3, unique_by=str.casefold), levels=LEVELS, seed=st.integers(0, 99))
def test_hostile_names_and_levels_score_as_predict_says(tmp_path_factory, names, levels, seed):
    # What a database folds together is refused by it; so are names that the query needs for itself.
    names = [f"{name}{k}" for k, name in enumerate(names)]
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.choice(np.array(levels, dtype=object), 30) for name in names})
    X.loc[::7, names[0]] = None
    anova = FunctionalANOVA(shrinkage=None, handle_unknown="ignore").fit(X, rng.normal(size=30))
    rows = X.sample(frac=1, random_state=seed).reset_index(drop=True)
    rows[names[1]] = rows[names[1]].to_numpy()[::-1]
    rows.loc[0, names[1]] = "a level never learned"
    rows["id"] = range(30)
    for dialect in ("duckdb", "sqlite"):
        agrees(anova, rows, tmp_path_factory.mktemp("sql"), dialect)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_exactly(value):
    for name in ("sqlite", "duckdb"):
        query = f"SELECT {real(value, DIALECTS[name])}"
        found = sqlite3.connect(":memory:").execute(query) if name == "sqlite" else duckdb.execute(query)
        (row,) = found.fetchall()  # to the end: an unfinished result keeps the connection busy for other tests
        assert struct.pack("d", row[0] + 0.0) == struct.pack("d", value + 0.0)


@pytest.mark.parametrize("value", [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1 + 0.2, 1 / 3, -1e22])
def test_numbers_at_the_ends_are_written_exactly_for_sqlite(value):
    assert sqlite3.connect(":memory:").execute(f"SELECT {real(value, DIALECTS['sqlite'])}").fetchone()[0] == value


KINDS = {
    "date": [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1), datetime.date(1999, 12, 31)],
    "datetime": [datetime.datetime(2024, 2, 29, 10, 30), datetime.datetime(2024, 2, 29, 10, 30, 0, 5)],
    "time": [datetime.time(10, 30), datetime.time(23, 59, 59, 999999)],
    "whole": [-(2**63), -5, 0, 2**63 - 1],
    "real": [0.1, 1 / 3, -1e-300, 12345.678901234567],
    "flag": [True, False],
    "bytes": [b"\x00\xff", b"a"],
    "text": ["1", "2", "NULL"],
}


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_level_is_found(tmp_path, kind, dialect):
    values = KINDS[kind] * 4
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "z": ["u", "v"] * (len(values) // 2)})
    frame["id"] = range(len(frame))
    anova = FunctionalANOVA(shrinkage=None, n_bins=None).fit(frame[["x", "z"]], np.arange(len(frame)) ** 1.5)
    query = script(anova, tmp_path, dialect=dialect, keep=["id"])
    expected = anova.predict(frame)
    if dialect == "duckdb":
        types = {"date": "DATE", "datetime": "TIMESTAMP", "time": "TIME", "whole": "BIGINT", "real": "DOUBLE"}
        kind_of = types.get(kind, {"flag": "BOOLEAN", "bytes": "BLOB"}.get(kind, "VARCHAR"))
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE rows (x {kind_of}, z VARCHAR, id INTEGER)")
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", frame.to_numpy().tolist())
            found = fetched(connection.execute(query))
    else:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE rows (x, z TEXT, id INTEGER)")
        texts = [v.isoformat(" ") if isinstance(v, datetime.datetime) else v for v in values]
        texts = [v.isoformat() if isinstance(v, datetime.date | datetime.time) else v for v in texts]
        lines = zip(texts, frame["z"], range(len(frame)), strict=True)
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", lines)
        found = pd.read_sql(query.rstrip().removesuffix(";"), connection)
        connection.close()
    np.testing.assert_allclose(found.sort_values("id")["fitted"].to_numpy(dtype=float), expected, atol=1e-9)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_numbers_of_single_precision_are_shown_short_and_scored_exactly(tmp_path, dialect):
    rng = np.random.default_rng(0)
    numbers = np.array([0.1, 0.2, 0.7], dtype=np.float32)
    cut = np.where(rng.random(200) < 0.3, np.float32(0.3), rng.normal(size=200).astype(np.float32))
    frame = pd.DataFrame({"x": rng.choice(numbers, 200), "z": cut, "id": range(200)})
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(frame[["x", "z"]], np.arange(200) ** 1.5)
    assert [level for (level,) in anova.effects_["x"].levels] == ["0.1", "0.2", "0.7"]
    agrees(anova, frame, tmp_path, dialect)
    anova.save(tmp_path / "m.exanova")
    again = exanova.load(tmp_path / "m.exanova")
    assert again.effects_["x"].levels == anova.effects_["x"].levels
    np.testing.assert_array_equal(again.predict(frame), anova.predict(frame))


def test_decimals_and_offsets_are_written_for_duckdb(tmp_path):
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moments = [datetime.datetime(2024, 5, 1, 12, tzinfo=zone), datetime.datetime(2024, 5, 2, 12, tzinfo=zone)]
    prices = pd.Series([decimal.Decimal("1.50"), decimal.Decimal("2.25")] * 2, dtype=object)
    X = pd.DataFrame({"d": prices, "t": pd.Series([moments[k] for k in (0, 1, 1, 0)], dtype=object)})
    anova = FunctionalANOVA(shrinkage=None).fit(X, np.array([0.0, 1.0, 2.0, 5.0]))
    query = script(anova, tmp_path, dialect="duckdb", keep=["id"])
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows (d DECIMAL(5, 2), t TIMESTAMPTZ, id INTEGER)")
        lines = [(d, t, k) for k, (d, t) in enumerate(X.to_numpy().tolist())]
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", lines)
        found = connection.execute(f"SELECT fitted FROM ({query.rstrip().removesuffix(';')}) ORDER BY id").fetchall()
    np.testing.assert_allclose([line[0] for line in found], anova.predict(X), atol=1e-12)
    with pytest.raises(InputError, match="times with an offset"):
        script(anova, tmp_path, dialect="sqlite")


def test_few_moments_stored_by_pandas_are_found_in_sqlite(tmp_path):
    moments = pd.DatetimeIndex(
        np.array(["2024-02-29", "2024-02-29T10:30", "2024-03-01T23:59:59.000001"], dtype="M8[us]")
    )
    rows = pd.DataFrame({"t": moments.repeat(4), "z": list("uv") * 6, "id": range(12)})
    anova = FunctionalANOVA(shrinkage=None).fit(rows[["t", "z"]], np.arange(12) ** 1.5)
    agrees(anova, rows, tmp_path, "sqlite")
    agrees(anova, rows, tmp_path, "duckdb")


@pytest.mark.parametrize(("dialect", "joins"), [("duckdb", 50), ("sqlite", 50), ("sqlite", 0)])
def test_many_levels_many_bins_and_higher_orders(tmp_path, monkeypatch, dialect, joins):
    monkeypatch.setattr(score_sql, "MOST_JOINS", joins)
    monkeypatch.setattr(sql_codes, "JOINED_FROM", 5)
    monkeypatch.setattr(sql_codes, "BRANCHES", 3)
    monkeypatch.setattr(score_sql, "BRANCHES", 3)
    rng = np.random.default_rng(3)
    n = 4000
    X = pd.DataFrame(
        {
            "shop": rng.choice([f"s{k}" for k in range(40)], n),
            "age": rng.normal(size=n),
            "kind": rng.choice(list("abc"), n),
        }
    )
    anova = FunctionalANOVA(max_order=3, n_bins=20, min_frequency=100).fit(X, rng.normal(size=(n, 2)))
    assert any(len(set(f.codes)) < len(f.codes) for f in anova.decomposition_.encoding.features)  # merged levels
    rows = X.sample(frac=1, random_state=1).reset_index(drop=True)
    rows["age"] = rng.normal(size=n) * 2
    rows["id"] = range(n)
    found = agrees(anova, rows, tmp_path, dialect)
    assert ("exanova_levels_1" in script(anova, tmp_path, dialect=dialect)) == bool(joins)
    assert sum(name.endswith(":fitted") for name in found) == 2


def test_a_wide_family_is_not_too_deep_for_any_engine(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (400, 60)).astype(str), columns=[f"f{k}" for k in range(60)])
    anova = FunctionalANOVA(max_order=2, max_terms=900, shrinkage=None).fit(X, rng.normal(size=400))
    assert len(anova.effects_) > 100
    rows = X.assign(id=range(400))
    for dialect in ("duckdb", "sqlite"):
        agrees(anova, rows, tmp_path, dialect)


def test_dates_cut_by_the_calendar_score_whether_stored_as_dates_or_moments(tmp_path):
    days = pd.date_range("2022-03-01", "2024-02-28", freq="D")
    X = pd.DataFrame({"day": days.repeat(2).date, "z": ["u", "v"] * len(days)})
    anova = FunctionalANOVA().fit(X, np.sin(np.arange(len(X)) / 60))
    rows = X.assign(id=range(len(X)))
    for dialect in ("duckdb", "sqlite"):
        agrees(anova, rows, tmp_path, dialect)


def test_features_that_no_effect_uses_still_refuse_unknown_levels(tmp_path):
    X = pd.DataFrame({"a": ["u", "v"] * 10, "b": ["x", "x", "y", "y"] * 5, "still": ["one"] * 20})
    anova = FunctionalANOVA(subsets=[("a",)], shrinkage=None).fit(X, np.arange(20.0))
    rows = pd.DataFrame({"a": ["u", "u", "u"], "b": ["x", "new", "x"], "still": ["one", "one", "two"], "id": range(3)})
    found = in_duckdb(script(anova, tmp_path, dialect="duckdb", keep=["id"]), rows).sort_values("id")
    assert found["fitted"].isna().tolist() == [False, True, True]
    anova.set_params(handle_unknown="ignore")
    agrees(anova, rows, tmp_path, "sqlite")


def test_what_sql_cannot_hold_is_refused(tmp_path):
    y = np.arange(4.0)
    cases = [
        (pd.DataFrame({"a": ["x", 1, "x", 1]}, dtype=object), {}, "levels of several kinds"),
        (pd.DataFrame({"A": list("xyxy"), "a": list("uuvv")}), {"dialect": "duckdb"}, "ignores case"),
        (pd.DataFrame({"a": ["x\0", "y"] * 2}), {}, "code 0"),
        (pd.DataFrame({"a": [2**70, 1] * 2}, dtype=object), {"dialect": "sqlite"}, "whole numbers of SQLite"),
        (pd.DataFrame({"": list("xyxy")}), {}, "a name that a file of SQL cannot hold"),
        (pd.DataFrame({"exanova_1": list("xyxy")}), {}, "exanova_1"),
        (pd.DataFrame({"a": list("xyxy")}), {"dialect": "oracle"}, "dialect='oracle' was given"),
        (pd.DataFrame({"a": list("xyxy")}), {"keep": "id"}, "keep='id' was given"),
        (pd.DataFrame({"a": list("xyxy")}), {"table": ""}, "table='' was given"),
    ]
    for X, options, words in cases:
        anova = FunctionalANOVA(shrinkage=None, n_bins=None).fit(X, y)
        with pytest.raises(InputError, match=words):
            anova.export(tmp_path / "score.sql", **options)
        assert not (tmp_path / "score.sql").exists()


def test_durations_are_refused_by_sqlite(tmp_path):
    X = pd.DataFrame({"a": pd.Series([datetime.timedelta(1), datetime.timedelta(2)] * 2, dtype=object)})
    anova = FunctionalANOVA(shrinkage=None).fit(X, np.arange(4.0))
    with pytest.raises(InputError, match="durations"):
        anova.export(tmp_path / "score.sql", dialect="sqlite")
    found = script(anova, tmp_path, dialect="duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows AS SELECT INTERVAL '1 day' AS a UNION ALL SELECT INTERVAL '2 days'")
        assert sorted(fetched(connection.execute(found))["fitted"]) == pytest.approx([1.0, 2.0])


def test_literals_of_postgres():
    dialect = DIALECTS["postgres"]
    assert literal(b"\x01", dialect) == "'\\x01'::bytea"
    assert literal(datetime.timedelta(seconds=1), dialect) == "INTERVAL '1000000 microseconds'"
    assert literal(math.inf, dialect) == "CAST('Infinity' AS DOUBLE PRECISION)"
    assert identifier("a") == '"a"'


def test_no_name_or_level_ends_the_comment_at_the_top(tmp_path):
    X = pd.DataFrame({"a": list("xyxy")})
    anova = FunctionalANOVA(shrinkage=None).fit(X, np.arange(4.0))
    query = script(anova, tmp_path, about={"Note\n; DROP TABLE rows; --": "a\nb\r\u2028c"})
    head = query.partition("WITH")[0]
    assert all(line.startswith("--") for line in head.strip().splitlines())
