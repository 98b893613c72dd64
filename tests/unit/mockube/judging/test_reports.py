"""The reports of judgements, and the baseline of known findings."""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import orjson
import pytest

from mockube.failure import UsageError
from mockube.judging.baseline import Baseline, KnownFinding, baseline_text, read_baseline
from mockube.judging.findings import Judgement, Level, OperatorReport, Verdict, fingerprint
from mockube.judging.machine_reports import json_report, junit_report, sarif_report
from mockube.judging.page_reports import html_report, markdown_report
from mockube.judging.rules import RULES
from mockube.judging.text_report import finding_lines, summary, table_rows


def _report(known: Mapping[str, str] | None = None) -> OperatorReport:
    deletions = Judgement(
        name="deletions", question="Does it leave nothing?", figures={"gone after": "1.0 s"}
    )
    deletions.by_hand.append("kubectl delete website blog")
    deletions.add("left-over", Level.ERROR, "ConfigMap <b>", "stays | with `data`", details=["a & b"])
    growth = Judgement(name="growth", question="What does it cost?")
    growth.add("memory-grows", Level.WARNING, "Memory", "grows")
    upgrade = Judgement(name="upgrade", question="Is it the same?", reason="no version before")
    rights = Judgement(name="rights", question="Has it its rights?")
    return OperatorReport(
        operator="./manager",
        judgements=[rights, deletions, growth, upgrade],
        known=known or {},
        files=["deploy"],
    )


def _known(name: str) -> Mapping[str, str]:
    return {
        fingerprint(each.name, finding): each.name
        for each, finding in _report().findings()
        if each.name == name
    }


def test_outcome_is_that_of_most_severe_finding() -> None:
    assert [each.outcome for each in _report().judgements] == [
        Verdict.PASSED,
        Verdict.FAILED,
        Verdict.WARNED,
        Verdict.NOT_APPLICABLE,
    ]


@pytest.mark.parametrize(
    ("known", "fail_on", "failed"),
    [
        ({}, "error", True),
        (_known("deletions"), "error", False),
        (_known("deletions"), "warning", True),
        ({**_known("deletions"), **_known("growth")}, "note", False),
    ],
)
def test_only_new_findings_fail(known: Mapping[str, str], fail_on: str, *, failed: bool) -> None:
    assert _report(known).failed(fail_on) is failed


def test_fingerprint_does_not_depend_on_message() -> None:
    one, other = Judgement(name="drift", question=""), Judgement(name="drift", question="")
    one.add("change-not-repaired", Level.ERROR, "ConfigMap a", "in 3 s")
    other.add("change-not-repaired", Level.WARNING, "ConfigMap a", "in 4 s")
    assert fingerprint("drift", one.findings[0]) == fingerprint("drift", other.findings[0])


def test_table_has_reason_of_what_is_not_applicable() -> None:
    assert table_rows(_report())[-1] == ("upgrade", "not applicable", "", "0.0 s", "no version before")


def test_text_report_has_commands_and_baseline() -> None:
    report = _report(_known("growth"))
    lines = [*finding_lines(report, shows_details=False)]
    assert "    $ kubectl delete website blog" in lines
    assert "  warning memory-grows (in the baseline): Memory: grows" in lines
    assert summary(report, "error") == (
        "./manager: failed (--fail-on=error); 1 passed, 1 warned, 1 failed, 1 not applicable;"
        " 2 findings, 1 in the baseline"
    )


def test_junit_report_fails_for_new_errors_and_skips_not_applicable() -> None:
    suite = ET.fromstring(junit_report(_report(), "error"))[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
    }
    assert [child.tag for case in suite for child in case] == [
        "system-out",
        "failure",
        "system-out",
        "system-out",
        "skipped",
        "system-out",
    ]
    known = ET.fromstring(junit_report(_report(_known("deletions")), "error"))[0]
    assert known.get("failures") == "0"


def test_sarif_report_has_rules_and_baseline_states() -> None:
    (run,) = orjson.loads(sarif_report(_report(_known("growth")), "error"))["runs"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [*RULES]
    assert [(each["ruleId"], each["level"], each["baselineState"]) for each in run["results"]] == [
        ("left-over", "error", "new"),
        ("memory-grows", "warning", "unchanged"),
    ]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "deploy"


def test_json_report_has_all_judgements() -> None:
    tree = orjson.loads(json_report(_report(), "error"))
    assert tree["failed"] is True
    assert [each["outcome"] for each in tree["judgements"]] == [
        "passed",
        "failed",
        "warned",
        "not applicable",
    ]


def test_markdown_report_escapes_what_would_be_markup() -> None:
    text = markdown_report(_report(), "error")
    assert "ConfigMap &lt;b&gt;: stays \\| with \\`data\\`" in text
    assert "<summary>deletions:" in text


def test_html_report_escapes_texts_and_needs_no_other_file() -> None:
    text = html_report(_report(), "error")
    assert "ConfigMap &lt;b&gt;" in text
    assert "a &amp; b" in text
    assert "<script" not in text
    assert 'href="http' not in text


def test_baseline_keeps_reasons_and_drops_what_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    (key,) = _known("growth")
    before = Baseline(
        findings=[
            KnownFinding(fingerprint=key, reason="as agreed"),
            KnownFinding(fingerprint="gone", judgement="growth", reason="long ago"),
            KnownFinding(fingerprint="kept", judgement="drift", rule="r", reason="not made this time"),
        ]
    )
    file.write_text(baseline_text(_report(), before))
    read = read_baseline(file)
    assert {each.rule: each.reason for each in read.findings} == {
        "left-over": "",
        "memory-grows": "as agreed",
        "r": "not made this time",
    }
    assert not _report(read.fingerprints()).failed("note")


@pytest.mark.parametrize("text", ["", "[]", '{"findings": [{}]}'])
def test_invalid_baseline_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(file)


def test_missing_baseline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory; --write-baseline creates the file"):
        read_baseline(tmp_path / "none.json")


def test_baseline_of_judgements_that_were_not_made_is_not_gone() -> None:
    report = _report({"a": "drift", "b": "growth", "c": "upgrade", **_known("growth")})
    assert report.missing_known() == {"b"}
