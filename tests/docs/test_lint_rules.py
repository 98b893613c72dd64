"""The reference of `mockube lint` lists each rule with its outcome."""

from mockube.lint.relations.rules import RULES
from tools.packages import ROOT


def test_page_lists_rules_with_their_outcomes():
    rows = [
        line for line in (ROOT / "docs/reference/lint.md").read_text().splitlines() if line.startswith("| `")
    ]
    listed = [line for line in rows if line.split("|")[2].strip() in ("broken", "warned", "noted")]
    assert listed == [f"| `{rule.name}` | {rule.outcome} | {rule.summary} |" for rule in RULES]
