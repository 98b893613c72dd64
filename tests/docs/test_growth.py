"""The curves of docs/benchmarks and the guide's table are those of the results beside them, and the checks of ratios can fail."""

import itertools

import orjson
import pytest

from benchmarks.growth import pictures, ratios, zone_failure
from benchmarks.growth.chart import Chart, Curve, draw, text_of, vertical_axis
from benchmarks.growth.ratios import ATTEMPTS, ROUNDS, Comparison, holds
from tools.packages import ROOT

RESULTS = orjson.loads(pictures.RESULTS.read_bytes())
CHARTS = dict(pictures.charts(RESULTS))
PAGE = (ROOT / "docs/benchmarks.md").read_text()
CI = (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize("name", CHARTS)
def test_curve_is_the_drawn_one(name):
    drawn = (pictures.FOLDER / f"{name}.svg").read_text()
    assert drawn == draw(CHARTS[name]), 'run make bench-growth ARGS="--draw"'


def test_picture_says_how_busy_the_machine_was_for_each_of_its_curves():
    machines = {
        name: {**RESULTS["machines"]["nodes"], "load": load}
        for name, load in (("nodes", 0.5), ("kubernetes-nodes", 16.9))
    }
    chart = dict(pictures.charts({**RESULTS, "machines": {**RESULTS["machines"], **machines}}))["nodes-time"]
    assert "load 0.5 at the start, 2 CPUs" in chart.note
    assert chart.note.endswith("load 16.9 at the start")


def test_every_curve_is_shown():
    files = {path.stem for path in pictures.FOLDER.glob("*.svg")}
    assert files == {*CHARTS}
    assert [name for name in CHARTS if f"](benchmarks/{name}.svg)" not in PAGE] == []


def test_table_of_the_guide_has_the_results():
    for row in RESULTS.get(pictures.ZONE_FAILURE, ()):
        assert zone_failure.table(row) in zone_failure.GUIDE.read_text()


def test_table_replaces_the_one_of_the_guide():
    step = {
        "name": "nodes",
        "seconds": 9.7,
        "cpu": {"server": 1, "manager": 2},
        "megabytes": {"server": 1234, "manager": 5},
    }
    page = f"before\n\n{zone_failure.table({'steps': []})}\nafter\n"
    replaced = zone_failure.with_table(page, {"steps": [step]})
    assert "| nodes | 10 s | 1 s | 2 s | 1,234 MB | 5 MB |\n\nafter" in replaced
    assert zone_failure.with_table(replaced, {"steps": []}) == page


# --- ratios


def comparison(small, large):
    return Comparison("requests", 1.5, (iter(small).__next__, iter(large).__next__))


def test_ratio_within_the_limit_is_measured_once():
    large = iter([1.4] * ROUNDS)
    assert holds(comparison(itertools.repeat(1.0), large))
    assert next(large, None) is None


def test_ratio_over_the_limit_fails_after_some_attempts():
    large = iter([1.6] * ROUNDS * ATTEMPTS)
    assert not holds(comparison(itertools.repeat(1.0), large))
    assert next(large, None) is None


def test_least_cost_of_each_size_counts():
    busy = [9.0] * (ROUNDS - 1)
    assert holds(comparison([*busy, 1.0], [1.4, *busy]))


def test_ratio_is_measured_again_after_other_load():
    busy = [9.0] * ROUNDS
    assert holds(comparison(itertools.repeat(1.0), [*busy, *[1.4] * ROUNDS]))


def test_every_change_has_to_hold_the_ratios():
    assert "bench-ratios" in CI


@pytest.mark.parametrize("limit", [ratios.POD_LIMIT, ratios.DECISION_LIMIT, ratios.REQUEST_LIMIT])
def test_page_names_the_limits(limit):
    assert f"| {limit:g} |" in PAGE


# --- charts


@pytest.mark.parametrize(
    ("values", "is_logarithmic", "ticks"),
    [
        ([0.3, 4.1], False, ["0", "1", "2", "3", "4"]),
        ([120, 900], False, ["0", "200", "400", "600", "800", "1,000"]),
        ([0.3, 4.1], True, ["0.2", "0.5", "1", "2"]),
        ([3, 40_000], True, ["2", "10", "100", "1,000", "10,000"]),
    ],
)
def test_ticks_are_round_numbers(values, is_logarithmic, ticks):
    axis = vertical_axis(values, is_logarithmic=is_logarithmic)
    assert [text_of(tick) for tick in axis.ticks] == ticks
    assert all(axis.low <= value <= axis.high for value in values)


def test_names_of_curves_do_not_overlap():
    curves = [Curve(name, [(10, 5.0), (100, 5.0)]) for name in "abc"]
    lines = [line for line in draw(Chart("T", "x", "y", curves)).splitlines() if 'class="name"' in line]
    heights = [float(line.partition(' y="')[2].partition('"')[0]) for line in lines]
    assert [later - earlier for earlier, later in itertools.pairwise(heights)] == [18, 18]


def test_number_that_would_overlap_the_next_one_is_omitted():
    drawn = draw(Chart("T", "x", "y", [Curve("c", [(100, 1.0), (90_000, 1.0), (100_000, 1.0)])]))
    assert ">100,000</text>" in drawn
    assert ">90,000</text>" not in drawn


def test_text_of_a_chart_is_escaped():
    assert "<title>a &lt; b</title>" in draw(Chart("a < b", "x", "y", [Curve("c", [(1, 1.0)])]))
