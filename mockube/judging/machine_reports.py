"""The reports for programs: JSON, JUnit's XML, and SARIF 2.1.0 for code scanning. Pure."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import orjson

from mockube.component_base.printable import printable
from mockube.lint.machine_reports import printable_json
from mockube.lint.sarif import location, relative_path, rule_name, sarif

from .findings import SEVERITY, Finding, Judgement, Level, OperatorReport, Verdict, fingerprint
from .rules import RULES
from .text_report import figures

_PAGE: Final = "docs/guides/test-operator.md"


def json_report(report: OperatorReport, fail_on: str) -> str:
    tree = {
        "operator": report.operator,
        "failed": report.failed(fail_on),
        "judgements": [_judgement_tree(report, each) for each in report.judgements],
        "setUp": report.set_up,
        "notFound": sorted(report.missing_known()),
    }
    return printable_json(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode())


def _judgement_tree(report: OperatorReport, judgement: Judgement) -> Mapping[str, Any]:
    return {
        "name": judgement.name,
        "question": judgement.question,
        "outcome": judgement.outcome.value,
        "reason": judgement.reason,
        "seconds": round(judgement.seconds, 1),
        "figures": judgement.figures,
        "did": judgement.did,
        "byHand": judgement.by_hand,
        "findings": [
            {
                "fingerprint": fingerprint(judgement.name, each),
                "rule": each.rule,
                "level": each.level.value,
                "subject": each.subject,
                "message": each.message,
                "details": each.details,
                "byHand": each.by_hand,
                "isNew": not report.is_known(judgement, each),
            }
            for each in judgement.findings
        ],
    }


def junit_report(report: OperatorReport, fail_on: str) -> str:
    """Return a suite with a case for each judgement. One that is not applicable is skipped, with its reason."""
    cases = [line for each in report.judgements for line in _case(report, each, fail_on)]
    failures = sum(bool([*_failures(report, each, fail_on)]) for each in report.judgements)
    skipped = sum(each.outcome is Verdict.NOT_APPLICABLE for each in report.judgements)
    counts = f'tests="{len(report.judgements)}" failures="{failures}" errors="0" skipped="{skipped}"'
    head = f"  <testsuite name={_attribute(report.operator)} {counts}>"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", head, *cases]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"])


def _failures(report: OperatorReport, judgement: Judgement, fail_on: str) -> Iterator[Finding]:
    least = SEVERITY[Level(fail_on)]
    for each in judgement.findings:
        if SEVERITY[each.level] >= least and not report.is_known(judgement, each):
            yield each


def _case(report: OperatorReport, judgement: Judgement, fail_on: str) -> Iterator[str]:
    name, seconds = _attribute(judgement.name), f'time="{judgement.seconds:.1f}"'
    yield f"    <testcase classname={_attribute(report.operator)} name={name} {seconds}>"
    if judgement.outcome is Verdict.NOT_APPLICABLE:
        yield f"      <skipped message={_attribute(judgement.reason)}/>"
    failures = [*_failures(report, judgement, fail_on)]
    if failures:
        attributes = f"type={_attribute(failures[0].rule)} message={_attribute(failures[0].text)}"
        text = "\n".join(line for each in failures for line in (each.text, *each.details, *each.by_hand))
        yield f"      <failure {attributes}>{_escaped(text)}</failure>"
    others = [f"{each.level}: {each.text}" for each in judgement.findings if each not in failures]
    yield f"      <system-out>{_escaped(chr(10).join([figures(judgement), *others]))}</system-out>"
    yield "    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def _escaped(text: str) -> str:
    return escape("\n".join(map(printable, text.split("\n"))))


def sarif_report(report: OperatorReport, fail_on: str) -> str:
    """Return the findings at the first line of the first input: they concern the program, and no line of a file."""
    rules = [
        {
            "id": name,
            "name": rule_name(name),
            "shortDescription": {"text": text},
            "help": {"text": f"{text}. See {_PAGE} of mockube."},
        }
        for name, text in RULES.items()
    ]
    indexes = {rule["id"]: index for index, rule in enumerate(rules)}
    place = {"physicalLocation": location(relative_path(Path(*report.files[:1])), 1)}
    results = [
        _result(report, judgement, finding, fail_on, indexes, place)
        for judgement, finding in report.findings()
    ]
    return sarif("test-operator", rules, results)


def _result(
    report: OperatorReport,
    judgement: Judgement,
    finding: Finding,
    fail_on: str,
    indexes: Mapping[Any, int],
    place: Mapping[str, Any],
) -> Mapping[str, Any]:
    is_failure = finding in [*_failures(report, judgement, fail_on)]
    level = Level.ERROR if is_failure else Level.NOTE if finding.level is Level.NOTE else Level.WARNING
    return {
        "ruleId": finding.rule,
        "ruleIndex": indexes[finding.rule],
        "level": level.value,
        "message": {"text": "\n".join(map(printable, [finding.text, *finding.details]))},
        "baselineState": "unchanged" if report.is_known(judgement, finding) else "new",
        "locations": [place],
        "partialFingerprints": {"finding/v1": fingerprint(judgement.name, finding)},
    }
