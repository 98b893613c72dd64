"""The file of known findings: a test fails only for findings that are not in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct, to_builtins

from mockube.failure import UsageError
from mockube.importing.files import problem_of
from mockube.lint.machine_reports import printable_json

from .findings import OperatorReport, Verdict, fingerprint


class KnownFinding(Struct, frozen=True, kw_only=True):
    """An entry. Only the fingerprint counts; the rest says to a reader what it is."""

    fingerprint: str
    judgement: str = ""
    rule: str = ""
    subject: str = ""
    reason: str = ""
    """Why it is accepted, as somebody has written it by hand."""


class Baseline(Struct, frozen=True, kw_only=True):
    findings: list[KnownFinding]

    def fingerprints(self) -> Mapping[str, str]:
        """Return the fingerprints with the names of their judgements."""
        return {each.fingerprint: each.judgement for each in self.findings}


def read_baseline(path: Path) -> Baseline:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise UsageError(
            f"--baseline: {path}: {problem_of(error)}; --write-baseline creates the file"
        ) from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"--baseline: {path} is not a baseline: {error}") from error


def baseline_text(report: OperatorReport, before: Baseline) -> str:
    """Return the file with the findings of a report, the reasons that it had before, and what it had of judgements that were not made."""
    reasons = {each.fingerprint: each.reason for each in before.findings}
    judgement_names = {each.name for each in report.judgements if each.outcome is not Verdict.NOT_APPLICABLE}
    others: Mapping[str, Any] = {
        each.fingerprint: to_builtins(each)
        for each in before.findings
        if each.judgement not in judgement_names
    }
    found: Mapping[str, Any] = {
        (key := fingerprint(judgement.name, finding)): {
            "fingerprint": key,
            "judgement": judgement.name,
            "rule": finding.rule,
            "subject": finding.subject,
            "reason": reasons.get(key, ""),
        }
        for judgement, finding in report.findings()
    }
    entries = {**others, **found}
    tree = {"findings": [entries[key] for key in sorted(entries)]}
    return f"{printable_json(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode())}\n"
