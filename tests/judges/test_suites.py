"""`make suites`: its list of suites, and how the results of each tool are read. No suite is run."""

import orjson

from judges.suites.__main__ import read_suites
from judges.suites.results import of_cargo, of_go, of_maven, unexpected

REPORT = """<testsuite>
<testcase classname="io.x.PodIT" name="logs"/>
<testcase classname="io.x.PodIT" name="exec"><failure message="no"/></testcase>
<testcase classname="io.x.PodIT" name="copy"><error message="no"/></testcase>
<testcase classname="io.x.PodIT" name="evict"><skipped/></testcase>
</testsuite>"""


def test_every_suite_has_a_source_a_server_and_a_command():
    for suite in read_suites().values():
        assert bool(suite.module) != bool(suite.repository), suite.name
        assert bool(suite.packages) != bool(suite.command), suite.name
        assert suite.server in ("envtest", "cluster"), suite.name
        assert all(isinstance(reason, str) and reason for reason in (suite.skip | suite.failures).values())


def test_results_of_go_are_those_of_tests_and_failed_packages():
    events = [
        {"Action": "pass", "Package": "x/a", "Test": "TestOne/sub"},
        {"Action": "pass", "Package": "x/a", "Test": "TestOne"},
        {"Action": "fail", "Package": "x/a", "Test": "TestTwo/sub"},
        {"Action": "fail", "Package": "x/a", "Test": "TestTwo"},
        {"Action": "skip", "Package": "x/a", "Test": "TestThree"},
        {"Action": "fail", "Package": "x/a"},
        {"Action": "fail", "Package": "x/b"},
        {"Action": "pass", "Package": "x/c"},
        {"Action": "output", "Package": "x/c", "Output": "ok"},
    ]
    lines = ["go: downloading x", *(orjson.dumps(event).decode() for event in events)]
    assert of_go(lines) == {
        "x/a.TestOne/sub": True,
        "x/a.TestTwo/sub": False,
        "x/a.TestTwo": False,
        "x/b": False,
    }


def test_results_of_maven_and_cargo_are_read(tmp_path):
    reports = tmp_path / "target/failsafe-reports"
    reports.mkdir(parents=True)
    (reports / "TEST-io.x.PodIT.xml").write_text(REPORT)
    assert of_maven(tmp_path) == {"io.x.PodIT.logs": True, "io.x.PodIT.exec": False, "io.x.PodIT.copy": False}
    lines = ["test a::b ... ok", "test c - should panic ... ok", "test d ... FAILED", "test e ... ignored"]
    assert of_cargo(lines) == {"a::b": True, "c": True, "d": False}


def test_results_differ_from_the_list_of_failures():
    results = {"a": True, "b": False, "c": False, "d": True}
    assert unexpected(results, {"b": "why", "d": "why", "gone": "why"}) == [
        "fails: c",
        "is listed as failing, and passes: d",
    ]
