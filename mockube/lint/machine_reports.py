"""The reports for programs: JSON, and JUnit's XML. Pure."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

import msgspec
from msgspec import Struct

from mockube.component_base.printable import printable

from .findings import Api, LintResult, Outcome
from .report import Report, Row, fails


class JsonFinding(Struct, frozen=True, kw_only=True, rename="camel"):
    outcome: Outcome
    minors: Sequence[str]
    message: str
    field: str
    line: int
    replacement: Api | None
    rule: str


class JsonObject(Struct, frozen=True, kw_only=True, rename="camel"):
    file: str
    line: int
    api_version: str
    kind: str
    namespace: str
    name: str
    outcome: Outcome
    outcomes: dict[str, Outcome]
    findings: Sequence[JsonFinding]


class JsonReport(Struct, frozen=True, kw_only=True, rename="camel"):
    minors: Sequence[str]
    failed: bool
    counts: dict[str, int]
    objects: Sequence[JsonObject]


def json_report(report: Report, fail_on: str) -> str:
    tree = JsonReport(
        minors=report.minors,
        failed=report.failed(fail_on),
        counts={outcome.value: count for outcome, count in report.counts().items()},
        objects=[_json_object(row) for row in report.rows],
    )
    return printable_json(msgspec.json.format(msgspec.json.encode(tree), indent=2).decode())


def printable_json(text: str) -> str:
    """Return JSON with escapes for what could control a terminal, or be a command to the system that runs a job."""
    characters = (each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)
    return "".join(characters).replace("##", f"#{_json_escape('#')}")


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))


def _json_object(row: Row) -> JsonObject:
    item = row.item
    return JsonObject(
        file=item.file.encode(errors="backslashreplace").decode(),
        line=item.line,
        api_version=item.api_version,
        kind=item.kind,
        namespace=item.namespace,
        name=item.name,
        outcome=row.outcome,
        outcomes={minor: checked.outcome for minor, checked in row.results.items()},
        findings=[
            JsonFinding(
                outcome=merged.finding.outcome,
                minors=merged.minors,
                message=merged.finding.message,
                field=merged.finding.field,
                line=merged.line,
                replacement=merged.finding.replacement,
                rule=merged.finding.rule,
            )
            for merged in row.findings
        ],
    )


def junit_report(report: Report, fail_on: str) -> str:
    """Return a suite for each minor with a case for each object; warnings that do not fail are its output."""
    suites = [suite for minor in report.minors for suite in _suite(report, minor, fail_on)]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", *suites, "</testsuites>"])


def _suite(report: Report, minor: str, fail_on: str) -> Iterator[str]:
    rows = [row for row in report.rows if minor in row.results]
    failures = sum(fails(row.results[minor].outcome, fail_on) for row in rows)
    yield f'  <testsuite name="Kubernetes {minor}" tests="{len(rows)}" failures="{failures}" errors="0">'
    for row in rows:
        yield from _case(row, row.results[minor], fail_on)
    yield "  </testsuite>"


def _case(row: Row, checked: LintResult, fail_on: str) -> Iterator[str]:
    item = row.item
    line = f' line="{item.line}"' if item.line else ""
    name = f"{item.namespace}/{item.title}" if item.namespace else item.title
    head = f"    <testcase classname={_attribute(item.file)} name={_attribute(name)} file={_attribute(item.file)}{line}"
    if not checked.findings:
        yield f"{head}/>"
        return
    text = "\n".join(f"{finding.outcome}: {printable(finding.message)}" for finding in checked.findings)
    yield f"{head}>"
    if fails(checked.outcome, fail_on):
        first = next(each for each in checked.findings if each.outcome is checked.outcome)
        attributes = f'type="{checked.outcome}" message={_attribute(first.message)}'
        yield f"      <failure {attributes}>{escape(text)}</failure>"
    else:
        yield f"      <system-out>{escape(text)}</system-out>"
    yield "    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
