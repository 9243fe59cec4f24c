"""Dates and times cut into periods: by the calendar or in intervals, in time order, whatever library holds them."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.data import Encoding, Table, learn_encoding
from exanova.data.periods import UNITS
from exanova.data.times import time_place, time_places
from exanova.errors import InputTypeError

START = datetime.datetime(2021, 3, 5)


def moments(n, step, start=START):
    return [start + k * step for k in range(n)]


def every_form(cells):
    """The same times in every library."""
    yield pd.DataFrame({"a": pd.Series(cells)})
    yield pl.DataFrame({"a": cells})
    yield pa.table({"a": cells})
    yield np.array(cells, dtype=object)[:, None]


SPANS = {
    "hours": (moments(300, datetime.timedelta(minutes=6)), 30, "[2021-03-05 01:00, 2021-03-05 02:00)"),
    "six hours": (moments(480, datetime.timedelta(minutes=20)), 27, "[2021-03-05 06:00, 2021-03-05 12:00)"),
    "days of a month": (moments(700, datetime.timedelta(hours=1)), 30, "2021-03-06"),
    "weeks": (moments(1000, datetime.timedelta(hours=4)), 25, "2021-03-08 to 2021-03-14"),
    "months": (moments(800, datetime.timedelta(days=1)), 27, "2021-04"),
    "quarters": (moments(800, datetime.timedelta(days=3)), 27, "2021 Q2"),
    "years": (moments(900, datetime.timedelta(days=12)), 30, "2022"),
    "five years": (moments(900, datetime.timedelta(days=40)), 20, "2025 to 2029"),
}


@pytest.mark.parametrize("name", SPANS)
def test_the_calendar_unit_fits_the_span(name):
    cells, size, second = SPANS[name]
    seen = set()
    for native in every_form(cells):
        table = Table.read(native)
        feature = learn_encoding(table).features[0]
        assert len(feature.levels) == size
        assert feature.labels[1] == second
        assert feature.ordered == len(feature.levels)
        codes = feature.encode(table.column(table.names[0]))
        assert codes.tolist() == sorted(codes.tolist())  # the cells are in time order
        seen.add((feature.levels, feature.labels, tuple(codes.tolist())))
        again = Encoding.from_json(json.loads(json.dumps(Encoding((feature,)).to_json(), allow_nan=False)))
        assert again.features == (feature,)
        assert again.features[0].has_increasing_edges
    assert len(seen) == 1


def test_days_are_the_days_of_the_calendar():
    cells = moments(700, datetime.timedelta(hours=1))
    table = Table.read(pl.DataFrame({"a": cells}))
    encoding = learn_encoding(table)
    days = [cell.date() for cell in cells]
    assert encoding.encode(table)[0].tolist() == [(day - days[0]).days for day in days]
    assert encoding.labels[0][0] == "2021-03-05 or before"
    assert encoding.labels[0][-1] == f"{days[-1]} or later"


def test_few_different_dates_are_levels_and_few_rows_have_few_periods():
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=k % 20) for k in range(100)]
    assert learn_encoding(Table.read(pl.DataFrame({"a": dates}))).sizes == (20,)
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=3 * k) for k in range(100)]
    labels = learn_encoding(Table.read(pl.DataFrame({"a": dates}))).labels[0]
    assert labels == tuple(
        [
            "2024-01 or before",
            *(f"2024-{month:02d}" for month in range(2, 10)),
            "2024-10 or later",
        ]
    )


@pytest.mark.parametrize("n_bins", [4, {"a": 4}])
@pytest.mark.parametrize("strategy", ["quantile", "uniform", "kmeans"])
def test_a_number_of_bins_is_for_dates_too(n_bins, strategy):
    cells = [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(366)]
    for native in every_form(cells):
        table = Table.read(native)
        own = {table.names[0]: 4} if isinstance(n_bins, dict) else n_bins
        encoding = learn_encoding(table, n_bins=own, strategy=strategy)
        assert encoding.sizes == (4,)
        day = "01" if strategy == "quantile" else "02"  # a quantile moves a little to the first day of a month
        assert encoding.labels[0] == (
            f"before 2024-04-{day}",
            f"[2024-04-{day}, 2024-07-{day})",
            f"[2024-07-{day}, 2024-10-01)",
            "2024-10-01 or later",
        )


def test_edges_are_round_times_between_the_data():
    sparse = [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=17.3 * k) for k in range(60)]
    edges = learn_encoding(Table.read(pl.DataFrame({"a": sparse})), n_bins=5).features[0].edges
    assert all(edge.hour == edge.minute == edge.second == 0 for edge in edges[1:-1])
    assert sum(edge.day == 1 for edge in edges[1:-1]) >= 1


def test_missing_times_are_a_level_beside_the_periods():
    cells = [*moments(300, datetime.timedelta(days=2)), None]
    whole = learn_encoding(Table.read(pl.DataFrame({"a": cells[:-1]}))).levels[0]
    for native in list(every_form(cells))[:3]:
        table = Table.read(native)
        encoding = learn_encoding(table)
        assert encoding.levels[0] == (*whole, None)
        assert encoding.encode(table)[0, -1] == len(whole)
        assert encoding.ordered == (len(whole),)


def test_times_with_an_offset_are_counted_by_their_own_clock():
    paris = pl.datetime_range(
        datetime.datetime(2024, 1, 1), datetime.datetime(2024, 12, 31), "3h", eager=True, time_zone="Europe/Paris"
    )
    natives = [
        pl.DataFrame({"a": paris}),
        pl.DataFrame({"a": paris}).to_arrow(),
        pl.DataFrame({"a": paris}).to_pandas(),
    ]
    months = [moment.month - 1 for moment in paris.to_list()]
    for native in natives:
        table = Table.read(native)
        encoding = learn_encoding(table, n_bins="auto")
        assert encoding.sizes == (12,)
        assert encoding.encode(table)[0].tolist() == months


def test_hours_that_a_clock_repeats_stay_in_order():
    night = pl.datetime_range(
        datetime.datetime(2024, 10, 27, 0),
        datetime.datetime(2024, 10, 27, 5),
        "1m",
        eager=True,
        time_zone="Europe/Paris",
    )
    table = Table.read(pl.DataFrame({"a": night}))
    encoding = learn_encoding(table)
    codes = encoding.encode(table)[0]
    assert (np.diff(codes) >= 0).all()
    assert len(set(codes.tolist())) == encoding.sizes[0]
    assert len(set(encoding.labels[0])) == encoding.sizes[0]


def test_clocks_of_several_zones_stay_in_order():
    zones = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (0, 10)]
    start = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    cells = [(start + datetime.timedelta(hours=k)).astimezone(zones[k % 2]) for k in range(600)]
    table = Table.read(np.array(cells, dtype=object)[:, None])
    encoding = learn_encoding(table)
    codes = encoding.encode(table)[0]
    assert (np.diff(codes) >= 0).all()
    assert encoding.sizes[0] == len(set(codes.tolist())) == 26  # days, by whichever clock shows them first
    assert encoding.labels[0][1] == "2024-05-02"


def test_nanoseconds_are_cut_where_they_differ():
    counts = np.arange(100, dtype=np.int64) * 7 + 1729989000 * 10**9
    for native in (pa.table({"a": counts.astype("M8[ns]")}), pd.DataFrame({"a": counts.astype("M8[ns]")})):
        table = Table.read(native)
        encoding = learn_encoding(table)
        assert encoding.sizes == (10,)
        assert encoding.encode(table)[0].tolist() == [k // 10 for k in range(100)]
        assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding


def test_durations_and_times_of_day_are_cut():
    spans = [datetime.timedelta(hours=k, minutes=7) for k in range(300)]
    for native in (pl.DataFrame({"a": spans}), pa.table({"a": spans}), pd.DataFrame({"a": spans})):
        table = Table.read(native)
        encoding = learn_encoding(table, n_bins=4)
        assert encoding.encode(table)[0].tolist() == [k // 75 for k in range(300)]
        assert encoding.labels[0] == ("< 3 days 3:00:00", "[3 days 3:00:00, 6 days 6:00:00)",
                                      "[6 days 6:00:00, 9 days 9:00:00)", ">= 9 days 9:00:00")  # fmt: skip
    clock = [datetime.time(k // 4 % 24, k % 4 * 15) for k in range(960)]
    hours = learn_encoding(Table.read(pl.DataFrame({"a": clock})))
    assert hours.sizes == (24,)
    assert hours.labels[0][:2] == ("before 01:00", "[01:00, 02:00)")


def test_new_rows_find_their_period_in_any_library():
    cells = moments(800, datetime.timedelta(days=1))
    encoding = learn_encoding(Table.read(pl.DataFrame({"a": cells})))
    new = [datetime.datetime(1999, 1, 1), datetime.datetime(2021, 4, 30, 23, 59), datetime.datetime(2050, 1, 1)]
    for native in every_form(new):
        assert encoding.encode(Table.read(native).select(["a"])).tolist() == [[0, 1, encoding.sizes[0] - 1]]
    dates = Table.read(pl.DataFrame({"a": [moment.date() for moment in new]}))
    assert encoding.encode(dates).tolist() == [[0, 1, encoding.sizes[0] - 1]]
    with pytest.raises(InputTypeError, match=r"'a' is cut by time, but holds 'soon' of type str; expected a datetime"):
        encoding.encode(Table.read(pl.DataFrame({"a": ["soon"]})))


def test_one_far_date_does_not_spoil_the_calendar():
    cells = [*moments(700, datetime.timedelta(days=1)), datetime.datetime(1900, 1, 1), datetime.datetime(9999, 12, 31)]
    labels = learn_encoding(Table.read(pl.DataFrame({"a": cells}))).labels[0]
    assert "2021-04" in labels
    assert labels[-1] == "9999-12 or later"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2050, 1, 1)),
        min_size=25,
        max_size=80,
        unique=True,
    ),
    st.sampled_from(["auto", 3, 6]),
)
def test_periods_follow_the_order_of_time_and_their_edges(cells, n_bins):
    table = Table.read(pl.DataFrame({"a": cells}))
    feature = learn_encoding(table, n_bins=n_bins).features[0]
    codes = feature.encode(table.column("a"))
    assert len(set(codes.tolist())) == len(feature.levels)
    for cell, code in zip(cells, codes, strict=True):
        assert code == 0 or feature.edges[code] <= cell
        assert code == len(feature.levels) - 1 or cell < feature.edges[code + 1]
    assert len(feature.levels) <= (n_bins if n_bins != "auto" else max(2, len(cells) // 10))


@given(st.datetimes(), st.sampled_from(UNITS))
def test_a_time_lies_in_its_period(moment, unit):
    number = unit.number(moment)
    assert unit.start(number) <= moment
    try:
        assert moment < unit.start(number + 1)
    except (OverflowError, ValueError):  # beyond the last year
        assert moment.year > 9000


@given(st.lists(st.datetimes(), min_size=1) | st.lists(st.dates(), min_size=1))
def test_places_of_many_are_those_of_each(levels):
    assert time_places(levels) == (time_place(levels[0])[0], [time_place(level)[1] for level in levels])


def test_times_of_one_family_are_placed_and_others_are_not():
    day, moment = datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 7)
    assert time_places([day, moment]) == ("date", [day.toordinal()] * 2)
    assert time_places([moment], "date") == ("date", [day.toordinal()])
    assert time_places([moment, moment.replace(tzinfo=datetime.UTC)]) is None
    assert time_places([moment, "soon"]) is None
    assert time_places([]) is None


def test_dates_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"day": moments(400, datetime.timedelta(days=2)), "kind": rng.choice(list("uv"), 400)})
    anova = FunctionalANOVA(shrinkage=None).fit(frame, lambda rows: rows["day"].dt.year().to_numpy().astype(float))
    assert "2021-04" in anova.effects_["day"].levels[1]
    anova.save(tmp_path / "m.exanova")
    loaded = exanova.load(tmp_path / "m.exanova")
    assert loaded.decomposition_.encoding == anova.decomposition_.encoding
    assert loaded.predict(frame).tolist() == anova.predict(frame).tolist()
