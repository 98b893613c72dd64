"""The file of known findings: a test fails only for findings that are not in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from mockube.failure import UsageError
from mockube.importing.files import problem_of

from .findings import Report, fingerprint
from .machine_reports import printable_json


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

    def fingerprints(self) -> frozenset[str]:
        return frozenset(each.fingerprint for each in self.findings)


def read_baseline(path: Path) -> Baseline:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise UsageError(
            f"--baseline: {path}: {problem_of(error)}; --write-baseline creates the file"
        ) from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"--baseline: {path} is not a baseline: {error}") from error


def baseline_text(report: Report, before: Baseline) -> str:
    """Return the file with the findings of a report, and the reasons that the file had before."""
    reasons = {each.fingerprint: each.reason for each in before.findings}
    entries: Mapping[str, Mapping[str, Any]] = {
        (key := fingerprint(judgement.name, finding)): {
            "fingerprint": key,
            "judgement": judgement.name,
            "rule": finding.rule,
            "subject": finding.subject,
            "reason": reasons.get(key, ""),
        }
        for judgement, finding in report.findings()
    }
    tree = {"findings": [entries[key] for key in sorted(entries)]}
    return f"{printable_json(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode())}\n"
