"""Rules: a test waits for a condition or steps a clock and uses fakes; tests, their classes and rules have plain names.

A name gives subject, condition and outcome, as `test_update_without_resource_version_is_conflict`. It must be
understandable in a list of failures, so words for persons and pronouns without an antecedent are refused. The rules of a
state machine are printed in the order in which they ran: `reconcile_deployment`, not `the_controller_looks`.
"""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.rules.names import forbidden_among, uses
from tests.architecture.rules.public_names import RIDDLES, is_participle
from tests.architecture.source import Finding, Module

FORBIDDEN: Mapping[str, str] = {
    "time.sleep": "wait for a condition, or step a clock",
    "asyncio.sleep": "wait for a condition (tests/support/event_loop.py), or step a clock",
    "unittest.mock": "write a fake in tests/support",
    "unittest.mock.*": "write a fake in tests/support",
}


_PERSONS = "anybody everybody nobody somebody who whoever whom"
_SPEECH = "asked asks believed believes dies heard hears looks meddles speaks tell tells told"
PERSONS = frozenset(f"{_PERSONS} {_SPEECH}".split())
PRONOUNS = frozenset(["and", "but", "it", "or", "they", "what"])
"""Words that no test name begins with: a report of failures shows the name without context."""
SENTENCE_STARTS = PRONOUNS | {"a", "an", "the", "there", "fewer"}
"""Words that begin the name of no rule of a state machine: an action is a verb with its object."""
MACHINE_RULES = frozenset(["initialize", "invariant", "rule"])
VAGUE_CLASSES = RIDDLES | {"life", "site"}


def check(module: Module) -> Iterator[Finding]:
    yield from forbidden_among(uses(module.tree), FORBIDDEN)


def check_names(module: Module) -> Iterator[Finding]:
    """Check the names of tests."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        prefix, *words = node.name.split("_")
        if prefix == "test" and words and (words[0] in PRONOUNS or PERSONS.intersection(words)):
            yield Finding(node.lineno, f"'{node.name}' does not give the subject, condition and outcome")


def check_classes(module: Module) -> Iterator[Finding]:
    """Refuse a lone participle, and words that may name anything, as the name of a class."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            word = node.name.strip("_")
            if word.lower() in VAGUE_CLASSES or (word.istitle() and is_participle(word.lower())):
                yield Finding(node.lineno, f"'{node.name}' does not say what it is: use a noun")


def check_machine_rules(module: Module) -> Iterator[Finding]:
    """Check the names of the rules and invariants of Hypothesis' state machines."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_machine_rule, node.decorator_list)):
            words = node.name.split("_")
            if words[0] in SENTENCE_STARTS or PERSONS.intersection(words):
                yield Finding(node.lineno, f"'{node.name}' is a sentence: name the action or the invariant")


def _is_machine_rule(decorator: ast.expr) -> bool:
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id in MACHINE_RULES
    )
