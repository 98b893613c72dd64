"""Results of several minors are merged by object and by finding."""

from mockube.importing.documents import parse
from mockube.lint.findings import LintResult, ObjectFinding, Outcome
from mockube.lint.machine_reports import junit_report
from mockube.lint.objects import object_of
from mockube.lint.report import make_report
from mockube.lint.text_report import colored, finding_lines, plain, summary, table_rows

MINORS = ["1.35", "1.36", "1.37"]
TEXT = b"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec:\n  a: 1\n"
DROPPED = ObjectFinding(outcome=Outcome.DROPPED, message='unknown field "spec.a"', field="spec.a")
REFUSED = ObjectFinding(outcome=Outcome.REFUSED, message="no & <no>")


def items(text=TEXT, *, count=1):
    return [object_of(parsed, file="f.yaml") for parsed in parse(text, "f.yaml")] * count


def report_of(*findings_of_minors):
    inputs = dict.fromkeys(MINORS, items())
    results = {
        minor: [LintResult.of(findings)] for minor, findings in zip(MINORS, findings_of_minors, strict=True)
    }
    return make_report(inputs, results)


def test_finding_of_several_minors_is_printed_once():
    report = report_of([DROPPED], [DROPPED, REFUSED], [])
    assert [*finding_lines(report, plain)] == [
        "service/web (namespace shop)",
        "  f.yaml:1: refused in 1.36: no & <no>",
        '  f.yaml:5: dropped in 1.35-1.36: unknown field "spec.a"',
        "",
    ]


def test_finding_of_all_minors_names_none():
    lines = [*finding_lines(report_of([DROPPED], [DROPPED], [DROPPED]), plain)]
    assert lines[1] == '  f.yaml:5: dropped: unknown field "spec.a"'


def test_outcome_is_colored():
    lines = [*finding_lines(report_of([REFUSED], [], []), colored)]
    assert lines[1] == "  f.yaml:1: \x1b[31mrefused\x1b[0m in 1.35: no & <no>"


def test_minors_with_equal_results_share_column():
    report = report_of([DROPPED], [DROPPED], [])
    assert table_rows(report, shows_all=False) == [
        ["OBJECT", "1.35-1.36", "1.37"],
        ["service/web", "dropped", "ok"],
    ]


def test_table_has_only_objects_with_findings_unless_all_are_requested():
    report = report_of([], [], [])
    assert table_rows(report, shows_all=False) == []
    assert table_rows(report, shows_all=True) == [["OBJECT", "1.35-1.37"], ["service/web", "ok"]]
    assert summary(report) == "1 object against 1.35-1.37: 1 accepted"


def test_object_that_chart_renders_for_some_minors_has_no_result_for_others():
    inputs = {"1.36": [], "1.37": items()}
    report = make_report(inputs, {"1.36": [], "1.37": [LintResult.of([REFUSED])]})
    assert table_rows(report, shows_all=False)[1] == ["service/web", "-", "refused"]


def test_equal_objects_of_file_have_rows_of_their_own():
    objects = items(count=2)
    results = [LintResult.of([REFUSED]), LintResult.of([])]
    report = make_report({"1.36": objects, "1.37": objects}, {"1.36": results, "1.37": results})
    assert [row.outcome for row in report.rows] == [Outcome.REFUSED, Outcome.ACCEPTED]


def test_report_fails_from_given_outcome_on():
    assert report_of([DROPPED], [], []).failed("dropped")
    assert not report_of([DROPPED], [], []).failed("refused")
    assert report_of([REFUSED], [], []).failed("refused")
    assert not report_of([REFUSED], [], []).failed("never")


def test_junit_escapes_text_and_control_characters():
    finding = ObjectFinding(outcome=Outcome.REFUSED, message='a "b" & <c>\x00')
    report = report_of([finding], [], [])
    assert """message='a "b" &amp; &lt;c&gt;\\x00'>""" in junit_report(report, "refused")
    assert 'a "b" &amp; &lt;c&gt;\\x00</failure>' in junit_report(report, "refused")
    assert "<system-out>refused" in junit_report(report, "never")


def test_finding_of_field_that_server_refuses_is_left_out():
    refused = ObjectFinding(outcome=Outcome.REFUSED, message="not found", field="spec.a")
    more = [
        ObjectFinding(outcome=Outcome.BROKEN, message="no volume", field=field)
        for field in ("spec.a", "spec.b")
    ]
    assert LintResult.of([refused]).with_findings(more).findings == [refused, more[1]]
    assert LintResult.of([]).with_findings(more).outcome is Outcome.BROKEN
