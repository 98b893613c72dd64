"""Every rule of a finding has a text, and every text is of a rule that a judgement has."""

import ast
from collections.abc import Iterator
from pathlib import Path

from mockube.judging import rules

WITH_ANOTHER_LEVEL = frozenset(
    {
        *("api-deprecated", "api-not-served", "manifest-deprecated", "minor-differs", "not-judged"),
        *("bytes-grow", "memory-grows", "requests-grow", "left-over", "two-writers", "update-without-effect"),
    }
)
"""The rules whose name and level are not written side by side."""


def _names_of_findings() -> Iterator[str]:
    """Yield the texts before a level: in the arguments of a call, or in the members of a tuple."""
    for path in Path(rules.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            members = node.args if isinstance(node, ast.Call) else getattr(node, "elts", ())
            match members:
                case [name, ast.Attribute(value=ast.Name(id="Level")), *_]:
                    yield from (each.value for each in ast.walk(name) if isinstance(each, ast.Constant))


def test_rules_of_judgements_are_those_with_a_text() -> None:
    assert {*_names_of_findings()} | WITH_ANOTHER_LEVEL == {*rules.RULES}
