"""The report for people at a terminal: a table of judgements, and the findings below it. Pure."""

from collections.abc import Iterator, Sequence

from mockube.component_base.counted import counted
from mockube.component_base.printable import printable

from .findings import Finding, Judgement, OperatorReport, Verdict

_INDENT = "    "


def table_rows(report: OperatorReport) -> Sequence[Sequence[str]]:
    rows = [
        (each.name, each.outcome.value, str(len(each.findings) or ""), f"{each.seconds:.1f} s", figures(each))
        for each in report.judgements
    ]
    return [("JUDGEMENT", "OUTCOME", "FINDINGS", "TOOK", "FIGURES"), *rows]


def figures(judgement: Judgement) -> str:
    """Return the figures in one line, or the reason why there are none."""
    if judgement.outcome is Verdict.NOT_APPLICABLE:
        return judgement.reason
    return ", ".join(f"{name}: {value}" for name, value in judgement.figures.items())


def finding_lines(report: OperatorReport, *, shows_details: bool) -> Iterator[str]:
    """Yield the findings; with details also what each judgement did, and the commands that show it."""
    for judgement in report.judgements:
        if not judgement.findings and not shows_details:
            continue
        yield ""
        yield f"{judgement.name}: {judgement.question}"
        if shows_details:
            yield from (f"  {printable(text)}" for text in judgement.did)
        for finding in judgement.findings:
            yield from _lines_of(report, judgement, finding)
        if judgement.by_hand and (judgement.findings or shows_details):
            yield "  By hand, after the set-up below:"
            yield from (f"{_INDENT}$ {printable(command)}" for command in judgement.by_hand)
    if report.set_up:
        yield ""
        yield "The set-up by hand, which `mockube down --name=by-hand` ends:"
        yield from (f"{_INDENT}$ {printable(command)}" for command in report.set_up)


def _lines_of(report: OperatorReport, judgement: Judgement, finding: Finding) -> Iterator[str]:
    known = " (in the baseline)" if report.is_known(judgement, finding) else ""
    yield f"  {finding.level} {finding.rule}{known}: {printable(finding.text)}"
    yield from (f"{_INDENT}{printable(line)}" for line in finding.details)
    yield from (f"{_INDENT}$ {printable(command)}" for command in finding.by_hand)


def summary(report: OperatorReport, fail_on: str) -> str:
    """Return the last line: how many judgements had which outcome, and whether the test fails."""
    counts = [
        f"{count} {outcome.value}"
        for outcome in Verdict
        if (count := sum(each.outcome is outcome for each in report.judgements))
    ]
    new = sum(1 for _ in report.new_findings())
    total = sum(1 for _ in report.findings())
    known = f", {total - new} in the baseline" if report.known else ""
    missing = len(report.missing_known())
    ended = f", {missing} of the baseline not found any more" if missing else ""
    verdict = f"failed (--fail-on={fail_on})" if report.failed(fail_on) else "passed"
    return f"{report.operator}: {verdict}; {', '.join(counts)}; {counted(total, 'finding', 'findings')}{known}{ended}"
