"""The reports for GitHub: commands that nothing in a manifest can forge, and SARIF that code scanning accepts."""

import orjson
import pytest

from mockube.importing.documents import parse
from mockube.lint.ci_reports import github_report, sarif_report
from mockube.lint.findings import LintResult, ObjectFinding, Outcome
from mockube.lint.objects import object_of
from mockube.lint.relations.rules import RULE_NAMES
from mockube.lint.report import make_report

TEXT = b"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec:\n  a: 1\n"
BROKEN = ObjectFinding(
    outcome=Outcome.BROKEN, message="spec.a: 50%, a: b", field="spec.a", rule="service-target-port"
)
REFUSED = ObjectFinding(outcome=Outcome.REFUSED, message="no\r\n::error::forged")
WARNED = ObjectFinding(outcome=Outcome.WARNED, message="old")
NOTED = ObjectFinding(outcome=Outcome.NOTED, message="elsewhere", rule="external-data")

RUN = {"tool", "columnKind", "results"}
RULE = {"id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"}
RESULT = {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}
LEVELS = {"none", "note", "warning", "error"}
"""Of the schema of SARIF 2.1.0, which allows no other properties than its own: those that are written, and the levels."""


def report_of(*findings, file="dir/f 1.yaml", chart="", minors=("1.36", "1.37"), text=TEXT, only=None):
    items = [object_of(parsed, file=file, has_lines=not chart, chart=chart) for parsed in parse(text, file)]
    results = {
        minor: [LintResult.of(findings if only is None or minor == only else []) for _ in items]
        for minor in minors
    }
    return make_report(dict.fromkeys(minors, items), results)


def sarif_results(report, fail_on="dropped"):
    return orjson.loads(sarif_report(report, fail_on))["runs"][0]["results"]


def test_finding_is_command_with_file_line_and_rule():
    assert github_report(report_of(BROKEN), "dropped").splitlines() == [
        "::error file=dir/f 1.yaml,line=5,title=service/web (service-target-port)::broken: spec.a: 50%25, a: b",
        "1 object against 1.36-1.37: 1 broken",
    ]


def test_command_names_minors_that_do_not_all_have_finding():
    assert "::refused in 1.36: " in github_report(report_of(REFUSED, only="1.36"), "dropped")


@pytest.mark.parametrize(
    ("finding", "fail_on", "command"),
    [
        (REFUSED, "dropped", "error"),
        (WARNED, "dropped", "warning"),
        (WARNED, "warned", "error"),
        (BROKEN, "refused", "warning"),
        (REFUSED, "never", "warning"),
        (NOTED, "warned", "notice"),
    ],
)
def test_command_is_error_if_check_fails_on_it(finding, fail_on, command):
    assert github_report(report_of(finding), fail_on).startswith(f"::{command} ")


def test_manifest_cannot_add_command_or_property():
    text = b'apiVersion: v1\nkind: "a,line=9::b\\n::error::c"\nmetadata: {name: "x:y,z%0A"}\n'
    lines = github_report(report_of(REFUSED, text=text, file="a,b:c.yaml"), "dropped").splitlines()
    assert len(lines) == 2
    head, message = lines[0].split("::", 2)[1:]
    assert head.count(",") == 2
    assert "file=a%2Cb%3Ac.yaml" in head
    assert "x%3Ay%2Cz%250A" in head
    assert message == "refused: no\\r\\n::error::forged"


def test_chart_template_is_file_in_folder_of_chart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    template = tmp_path / "deploy/my-chart/templates/service.yaml"
    template.parent.mkdir(parents=True)
    template.touch()
    file = "web/templates/service.yaml"
    for chart, path in [
        ("deploy/my-chart", "deploy/my-chart/templates/service.yaml"),
        (str(tmp_path / "deploy/my-chart"), "deploy/my-chart/templates/service.yaml"),
        ("web-1.tgz", "web-1.tgz"),
    ]:
        report = report_of(BROKEN, file=file, chart=chart)
        assert github_report(report, "dropped").startswith(f"::error file={path},line=1,title=")
        (location,) = sarif_results(report)[0]["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 1},
        }


def test_sarif_has_what_its_schema_and_code_scanning_require():
    tree = orjson.loads(sarif_report(report_of(BROKEN, REFUSED, WARNED, NOTED), "dropped"))
    assert {*tree} == {"$schema", "version", "runs"}
    assert tree["version"] == "2.1.0"
    (run,) = tree["runs"]
    assert {*run} == RUN
    assert {*run["tool"]} == {"driver"}
    assert {*run["tool"]["driver"]} == {"name", "version", "rules"}
    rules = run["tool"]["driver"]["rules"]
    ids = [rule["id"] for rule in rules]
    assert len({*ids}) == len(ids)
    assert {*RULE_NAMES} < {*ids}
    for rule in rules:
        assert {*rule} == RULE
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in LEVELS
    assert len(run["results"]) == 4
    for result in run["results"]:
        assert {*result} == RESULT
        assert result["level"] in LEVELS
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "dir/f%201.yaml"
        assert location["physicalLocation"]["region"]["startLine"] >= 1


def test_sarif_result_has_rule_level_line_and_object():
    (result,) = sarif_results(report_of(BROKEN))
    assert (result["ruleId"], result["level"]) == ("service-target-port", "error")
    assert result["message"] == {"text": "service/web: broken: spec.a: 50%, a: b"}
    (location,) = result["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 5}
    assert location["logicalLocations"] == [{"fullyQualifiedName": "shop/service/web", "kind": "object"}]


def test_sarif_fingerprint_stays_when_object_moves():
    first, moved = (sarif_results(report_of(BROKEN, text=text)) for text in (TEXT, b"# a\n\n" + TEXT))
    assert first[0]["partialFingerprints"] == moved[0]["partialFingerprints"]
    assert first[0]["locations"] != moved[0]["locations"]
    (other,) = sarif_results(report_of(WARNED))
    assert other["partialFingerprints"] != first[0]["partialFingerprints"]


def test_sarif_of_nothing_has_no_results():
    assert sarif_results(report_of()) == []
