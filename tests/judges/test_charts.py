"""`make charts`: its lists, how results are judged, and its table. No cluster and no helm is needed."""

import io
import tarfile
from pathlib import Path

import pytest
import yaml

from judges.charts import __main__ as program
from judges.charts.helm import Outcome
from judges.charts.mistakes import Mistake, _judge, _merged, read_mistakes
from judges.charts.releases import STEPS, Chart, read_charts

PASSED, FAILED = (
    Outcome(succeeded=True, seconds=1.6),
    Outcome(succeeded=False, seconds=9, output="a\nno claim"),
)


@pytest.fixture
def folder(tmp_path):
    about = b"name: shop\nversion: 1.10.0\n"
    for name, text in (("shop", about), ("common", b"name: common\nversion: 1.0.0\ntype: library\n")):
        with tarfile.open(tmp_path / f"{name}-1.tgz", "w:gz") as archive:
            member = tarfile.TarInfo(f"{name}/Chart.yaml")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return tmp_path


def test_packaged_charts_are_read_with_their_settings(folder):
    (chart,) = read_charts(folder, {"shop": {"values": {"a": 1}, "failures": {"test": "no network"}}})
    assert chart == Chart(
        "shop", "1.10.0", folder / "shop-1.tgz", values={"a": 1}, failures={"test": "no network"}
    )


def test_listed_charts_have_sources_and_known_fields():
    charts = yaml.safe_load((program.HERE / "charts.yaml").read_text())
    assert {field for fields in charts.values() for field in fields} <= {"source", *Chart._fields}
    assert all(fields["source"].count("/") == 1 for fields in charts.values())
    needed = {name for fields in charts.values() for name in fields.get("needs", ())}
    assert needed <= set(charts)


def test_mistakes_are_at_least_twelve_and_change_the_chart():
    mistakes = read_mistakes(program.HERE / "mistakes.yaml")
    assert len(mistakes) >= 12
    assert all((mistake.values or mistake.edits) and mistake.says for mistake in mistakes)


@pytest.mark.parametrize(
    ("mistake", "outcomes", "reasons", "problem"),
    [
        (Mistake("m", "no claim"), {"install": FAILED}, [], ""),
        (Mistake("m", "no key"), {"install": FAILED}, ["no key"], ""),
        (Mistake("m", "no key"), {"install": FAILED}, [], "the cluster does not say 'no key': a\nno claim"),
        (Mistake("m", "x"), {"install": PASSED}, [], "no step fails in place of install: "),
        (
            Mistake("m", "x", step="test"),
            {"install": FAILED},
            [],
            "install fails in place of test: a\nno claim",
        ),
        (Mistake("m", ""), {"install": PASSED}, [], ""),
        (
            Mistake("m", ""),
            {"install": PASSED, "test": FAILED},
            [],
            "test fails in place of none: ; a\nno claim",
        ),
    ],
)
def test_mistake_is_found_in_its_step_with_its_reason(mistake, outcomes, reasons, problem):
    assert _judge(mistake, outcomes, reasons) == problem


def test_values_of_a_mistake_replace_those_of_the_chart():
    assert _merged({"a": {"b": 1, "c": 2}, "d": []}, {"a": {"b": None}, "d": [1]}) == {
        "a": {"b": None, "c": 2},
        "d": [1],
    }


def test_table_names_unexpected_results(capsys):
    outcomes = {"install": PASSED, "test": PASSED._replace(output="TEST SUITE: None"), "upgrade": FAILED}
    chart = Chart("shop", "1.10.0", Path("shop.tgz"))
    assert program._print_row(chart, outcomes) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["shop", "1.10.0", "2", "s", "no", "tests", "FAIL", "-", "-"]
    assert printed[1:] == ["    upgrade: no claim", "    upgrade: is not listed as failing"]
    assert program._print_row(chart._replace(failures={"upgrade": "why"}), outcomes) == 0
    assert program._print_row(chart._replace(failures=dict.fromkeys(STEPS, "why")), outcomes) == 4
