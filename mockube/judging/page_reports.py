"""The reports for readers: Markdown for a pull request, and a page of HTML that needs no other file. Pure."""

from collections.abc import Iterator
from html import escape
from typing import Final

from mockube.component_base.printable import printable

from .findings import Finding, Judgement, OperatorReport, Verdict
from .text_report import figures, summary

_MARKS: Final = {
    Verdict.PASSED: "✅",
    Verdict.NOTED: "✅",
    Verdict.WARNED: "⚠️",
    Verdict.FAILED: "❌",
    Verdict.NOT_APPLICABLE: "➖",  # noqa: RUF001 - a mark, and no text
}
_STYLE: Final = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #1b1f24; background: #fff; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .35em .7em; border-bottom: 1px solid #d8dee4; vertical-align: top; }
pre { background: #f3f5f7; padding: .7em 1em; overflow-x: auto; } section { margin: 2em 0; }
p, li, h1 { overflow-wrap: anywhere; } td:nth-child(n + 2):nth-child(-n + 4) { white-space: nowrap; }
@media (max-width: 45em) { thead { display: none; } tr { display: block; padding: .5em 0; border-bottom: 1px solid #d8dee4; }
td { display: inline-block; border: 0; padding: 0 .7em 0 0; } td:nth-child(3):not(:empty)::after { content: " findings"; } td:last-child { display: block; } }
.failed, .error { color: #b42318; } .warned, .warning { color: #8a5a00; } .passed { color: #1a7f37; } .not, .note { color: #59636e; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; } pre { background: #161b22; }
td, th { border-color: #30363d; } .failed, .error { color: #ff7b72; } .warned, .warning { color: #e3b341; } .passed { color: #56d364; } .not, .note { color: #9198a1; } }"""


def markdown_report(report: OperatorReport, fail_on: str) -> str:
    lines = [
        f"### {_cell(summary(report, fail_on))}",
        "",
        "| judgement | outcome | findings | figures |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {_MARKS[each.outcome]} {each.outcome.value} | {len(each.findings) or ''} | {_cell(figures(each))} |"
        for each in report.judgements
    ]
    for judgement in report.judgements:
        if judgement.findings:
            lines += ["", "<details>", *_markdown_details(report, judgement), "", "</details>"]
    if report.set_up:
        lines += ["", "<details>", "<summary>The set-up by hand</summary>", ""]
        lines += [*(f"    $ {printable(command)}" for command in report.set_up), "", "</details>"]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return text that Markdown shows as it is, in one cell of a table."""
    plain = escape(printable(text), quote=False)
    return "".join(f"\\{character}" if character in "\\`*_[]|#@~" else character for character in plain)


def _markdown_details(report: OperatorReport, judgement: Judgement) -> Iterator[str]:
    yield f"<summary>{judgement.name}: {_cell(judgement.question)}</summary>"
    yield ""
    for finding in judgement.findings:
        known = " (in the baseline)" if report.is_known(judgement, finding) else ""
        yield f"- **{finding.level}** `{finding.rule}`{known}: {_cell(finding.text)}"
        if lines := [*_detail_lines(finding)]:
            yield ""
            yield from (f"      {line}" for line in lines)
            yield ""
    if judgement.by_hand:
        yield ""
        yield "By hand, after the set-up below:"
        yield ""
        yield from (f"    $ {printable(command)}" for command in judgement.by_hand)


def _detail_lines(finding: Finding) -> Iterator[str]:
    yield from map(printable, finding.details)
    yield from (f"$ {printable(command)}" for command in finding.by_hand)


def html_report(report: OperatorReport, fail_on: str) -> str:
    title = f"Test of {printable(report.operator)}"
    rows = "\n".join(
        f'<tr><td><a href="#{each.name}">{each.name}</a></td>'
        f'<td class="{each.outcome.value.partition(" ")[0]}">{each.outcome.value}</td><td>{len(each.findings) or ""}</td>'
        f"<td>{each.seconds:.1f} s</td><td>{_html(figures(each))}</td></tr>"
        for each in report.judgements
    )
    sections = "\n".join(_section(report, each) for each in report.judgements)
    set_up = "\n".join(f"$ {_html(command)}" for command in report.set_up)
    if set_up:
        sections += f"\n<section><h2>The set-up by hand</h2><pre>{set_up}</pre></section>"
    head = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return (
        f"{head}<title>{_html(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><h1>{_html(title)}</h1>\n<p>{_html(summary(report, fail_on))}</p>\n<table><thead><tr><th>judgement</th><th>outcome</th>"
        f"<th>findings</th><th>took</th><th>figures</th></tr></thead><tbody>\n{rows}\n</tbody></table>\n{sections}\n</body></html>"
    )


def _section(report: OperatorReport, judgement: Judgement) -> str:
    did = "".join(f"<li>{_html(text)}</li>" for text in judgement.did)
    findings = "".join(_html_finding(report, judgement, each) for each in judgement.findings)
    commands = "\n".join(f"$ {_html(command)}" for command in judgement.by_hand)
    parts = [
        f'<section id="{judgement.name}"><h2>{judgement.name}</h2><p>{_html(judgement.question)}</p>',
        f"<p>{_html(figures(judgement))}</p>" if figures(judgement) else "",
        f"<h3>What was done</h3><ol>{did}</ol>" if did else "",
        f"<h3>Findings</h3>{findings}" if findings else "",
        f"<h3>By hand, after the set-up</h3><pre>{commands}</pre>" if commands else "",
        "</section>",
    ]
    return "\n".join(filter(None, parts))


def _html_finding(report: OperatorReport, judgement: Judgement, finding: Finding) -> str:
    known = " (in the baseline)" if report.is_known(judgement, finding) else ""
    lines = "\n".join(map(_html, _detail_lines(finding)))
    head = f'<p><b class="{finding.level}">{finding.level}</b> <code>{finding.rule}</code>{known}: {_html(finding.text)}</p>'
    return head + (f"<pre>{lines}</pre>" if lines else "")


def _html(text: str) -> str:
    return escape(printable(text))
