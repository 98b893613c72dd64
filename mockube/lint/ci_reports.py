"""The reports for the systems that run jobs: GitHub's workflow commands, and SARIF 2.1.0 for code scanning. Pure, but for where files are."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mockube.component_base.printable import printable

from .findings import SEVERITY, Outcome
from .minor_ranges import format_minors
from .relations.rules import RULE_NAMES, RULES
from .report import MergedFinding, Report, Row, fails
from .sarif import location, relative_path, rule_name, sarif
from .text_report import summary

_SWITCH: Final = "--disable={} turns this rule off."
_NO_SWITCH: Final = "It is what an API server of a minor release does."
_ERROR, _WARNING, _NOTE = "error", "warning", "note"
_COMMANDS: Final = {_ERROR: "error", _WARNING: "warning", _NOTE: "notice"}
_OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.REFUSED: "The API server refuses the object",
    Outcome.UNKNOWN: "There is no such kind, or no definition of it in the files",
    Outcome.REMOVED: "An earlier minor release was the last one with this version of the kind",
    Outcome.NOT_YET: "A later minor release serves this version of the kind first",
    Outcome.DISABLED: "The minor release serves this version of the kind only with --runtime-config",
    Outcome.DROPPED: "The API server does not keep a field",
    Outcome.WARNED: "The API server accepts the object with a warning",
    Outcome.SKIPPED: "The kind has no definition, and is not checked",
}
"""What servers say; the rules for several objects have names of their own."""


def github_report(report: Report, fail_on: str) -> str:
    """Return a workflow command for each finding, which GitHub shows at its line, and the summary."""
    lines = [_command(report, row, merged, fail_on) for row, merged in _findings(report)]
    return "\n".join([*lines, summary(report)])


def _command(report: Report, row: Row, merged: MergedFinding, fail_on: str) -> str:
    path, line = _location(row, merged)
    properties = {"file": path, "line": str(line), "title": f"{row.item.title} ({_rule_id(merged)})"}
    text = ",".join(f"{name}={_escape_property(printable(value))}" for name, value in properties.items())
    return (
        f"::{_COMMANDS[_level(merged.finding.outcome, fail_on)]} {text}::{_escape(_message(report, merged))}"
    )


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def sarif_report(report: Report, fail_on: str) -> str:
    rules = [*_rules()]
    indexes = {rule["id"]: index for index, rule in enumerate(rules)}
    results = [_result(report, row, merged, fail_on, indexes) for row, merged in _findings(report)]
    return sarif("lint", rules, results)


def _rules() -> Iterator[dict[str, Any]]:
    for outcome, text in _OUTCOMES.items():
        yield _rule(outcome.value, text, _level(outcome, "dropped"))
    for rule in RULES:
        text = f"{rule.summary[0].upper()}{rule.summary[1:]}"
        yield _rule(rule.name, text.replace("`", ""), _level(rule.outcome, "dropped"))


def _rule(name: str, text: str, level: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": rule_name(name),
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text}."},
        "help": {"text": f"{text}. {_SWITCH.format(name) if name in RULE_NAMES else _NO_SWITCH}"},
        "defaultConfiguration": {"level": level},
    }


def _result(
    report: Report, row: Row, merged: MergedFinding, fail_on: str, indexes: Mapping[str, int]
) -> dict[str, Any]:
    path, line = _location(row, merged)
    rule, message = _rule_id(merged), f"{row.item.title}: {_message(report, merged)}"
    identity = f"{rule}\n{path}\n{row.item.namespace}\n{row.item.title}\n{merged.finding.message}"
    return {
        "ruleId": rule,
        "ruleIndex": indexes[rule],
        "level": _level(merged.finding.outcome, fail_on),
        "message": {"text": printable(message)},
        "locations": [
            {
                "physicalLocation": location(path, line),
                "logicalLocations": [
                    {"fullyQualifiedName": printable(_qualified_name(row)), "kind": "object"}
                ],
            }
        ],
        "partialFingerprints": {
            "finding/v1": hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()
        },
    }


def _qualified_name(row: Row) -> str:
    return f"{row.item.namespace}/{row.item.title}" if row.item.namespace else row.item.title


def _findings(report: Report) -> Iterator[tuple[Row, MergedFinding]]:
    for row in report.rows:
        for merged in row.findings:
            yield row, merged


def _rule_id(merged: MergedFinding) -> str:
    return merged.finding.rule or merged.finding.outcome.value


def _level(outcome: Outcome, fail_on: str) -> str:
    if fails(outcome, fail_on):
        return _ERROR
    return _WARNING if SEVERITY[outcome] >= SEVERITY[Outcome.WARNED] else _NOTE


def _message(report: Report, merged: MergedFinding) -> str:
    minors: Sequence[str] = merged.minors
    scope = "" if len(minors) == len(report.minors) else f" in {format_minors(minors)}"
    return f"{merged.finding.outcome.value}{scope}: {printable(merged.finding.message)}"


def _location(row: Row, merged: MergedFinding) -> tuple[str, int]:
    """Return the file, relative to the working folder if it is in it, and the line; the first one if it is not known."""
    path = Path(row.item.file)
    if row.item.chart:
        path = _template_path(Path(row.item.chart), path)
    return relative_path(path), merged.line or row.item.line or 1


def _template_path(chart: Path, template: Path) -> Path:
    """Return where a template is that helm names by its chart: in the chart's folder, or in its archive."""
    in_folder = chart.joinpath(*template.parts[1:])
    return in_folder if chart.is_dir() and in_folder.is_file() else chart
