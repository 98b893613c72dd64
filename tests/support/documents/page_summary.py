"""A pytest plugin: the summary lists how much of the documentation was run, and what was skipped, with reasons."""

from collections import Counter


def pytest_terminal_summary(terminalreporter):
    properties = [
        item for report in terminalreporter.stats.get("passed", ()) for item in report.user_properties
    ]
    steps = Counter(step for name, step in properties if name == "step")
    not_run = Counter(reason for name, reason in properties if name == "block not run")
    if steps:
        terminalreporter.write_line(
            f"documents: {steps['Command']} commands and {steps['Program']} programs came out as they are shown"
        )
    for reason, count in sorted(not_run.items()):
        terminalreporter.write_line(f"documents: {count} not run: {reason}")
