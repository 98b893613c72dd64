"""`make e2e`: report parsing, exit codes, and its lists of specs. The suite itself is not needed."""

import re
from collections import Counter

import pytest

from judges.e2e.__main__ import listed_minors, read_failing, read_passing, report
from judges.e2e.suite import Result, read_results
from mockube.apimachinery.schema import minors
from tests.support.processes.process import ROOT

REPORT = """<testsuites><testsuite>
<testcase name="[It] [sig-apps] Job should finish [Conformance] [sig-apps, Conformance]" status="passed" time="1.5"/>
<testcase name="[It] [sig-apps] Job should fail [Conformance]" status="failed" time="2"><failure message="no"/></testcase>
<testcase name="[It] [sig-apps] Job was not chosen" status="skipped" time="0"><skipped message="skipped"/></testcase>
<testcase name="[It] [sig-node] Pod skips [Conformance]" status="skipped" time="0"><skipped message="skipped - x"/></testcase>
</testsuite></testsuites>"""
FINISHES, FAILS = "[sig-apps] Job should finish [Conformance]", "[sig-apps] Job should fail [Conformance]"


@pytest.fixture
def results(tmp_path):
    (tmp_path / "junit_01.xml").write_text(REPORT)
    return read_results(tmp_path)


def test_report_is_parsed_into_results_of_specs(results):
    assert results == {
        FINISHES: Result(FINISHES, passed=True, seconds=1.5),
        FAILS: Result(FAILS, passed=False, seconds=2.0, message="no"),
        "[sig-node] Pod skips [Conformance]": Result(
            "[sig-node] Pod skips [Conformance]", passed=False, seconds=0.0, message="skipped - x"
        ),
    }


def test_listed_spec_that_fails_is_an_error(results, capsys):
    assert report([FINISHES, FAILS], [FINISHES], results) == (0, {FINISHES})
    assert report([FINISHES, FAILS], [FINISHES, FAILS], results) == (1, {FINISHES})
    assert f"listed as passing, and fails: {FAILS}" in capsys.readouterr().out


def test_listed_spec_that_was_not_run_is_an_error():
    assert report([FINISHES], [FINISHES], {}) == (1, set())


@pytest.mark.parametrize("minor", listed_minors())
def test_specs_are_listed_once_and_sorted(minor):
    passing, failing = read_passing(minor), failing_specs(minor)
    assert passing == sorted(set(passing))
    assert not Counter(failing) & Counter(passing)
    assert len(failing) == len(set(failing))


def test_pages_show_current_figures():
    page = (ROOT / "docs/fidelity/conformance-suite.md").read_text()
    rows = re.findall(r"^\| `(sig-[a-z-]+)` \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    specs = read_passing(minors.NEWEST)
    passing, everything = groups(specs), groups([*specs, *failing_specs(minors.NEWEST)])
    assert {name: (int(good), int(of)) for name, good, of in rows} == {
        name: (passing[name], everything[name]) for name in everything
    }


def failing_specs(minor):
    return [spec for specs in read_failing(minor).values() for spec in specs]


def groups(specs):
    return Counter(spec.partition("]")[0].removeprefix("[") for spec in specs)
