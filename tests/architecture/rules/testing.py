"""Rules: a test waits for a condition or steps a clock and uses fakes; tests have plain names.

A name gives subject, condition and outcome, as `test_update_without_resource_version_is_conflict`. It must be
understandable in a list of failures, so words for persons and pronouns without an antecedent are refused.
"""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.rules.names import forbidden_among, matches, uses
from tests.architecture.source import Finding, Module
from tests.support import tiers

FORBIDDEN: Mapping[str, str] = {
    "time.sleep": "wait for a condition, or step a clock",
    "asyncio.sleep": "wait for a condition (tests/support/event_loop.py), or step a clock",
    "unittest.mock": "write a fake in tests/support",
    "unittest.mock.*": "write a fake in tests/support",
}

MEASURES = (
    "time.process_time",
    "time.thread_time",
    "time.perf_counter",
    "tests.support.hostile.doubling.*",
    "tests.support.hostile.loop_time.*",
)
"""What measures time, which depends on the machine, too."""

PERSONS = frozenset(["anybody", "everybody", "nobody", "somebody", "who", "whoever", "whom"])
PRONOUNS = frozenset(["and", "but", "it", "or", "they", "what"])
"""Words that no test name begins with: a report of failures shows the name without context."""


def check(module: Module) -> Iterator[Finding]:
    yield from forbidden_among(uses(module), FORBIDDEN)


def check_names(module: Module) -> Iterator[Finding]:
    """Check the names of tests."""
    for node in module.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        prefix, *words = node.name.split("_")
        if prefix == "test" and words and (words[0] in PRONOUNS or PERSONS.intersection(words)):
            yield Finding(node.lineno, f"'{node.name}' does not give the subject, condition and outcome")


def check_timed(module: Module) -> Iterator[Finding]:
    """Check that tests which measure time are marked: `make test` leaves them out, and none of its tests fails for being slow."""
    is_helper = not module.path.rpartition("/")[2].startswith("test_")
    if is_helper or tiers.is_of_rest(module.path) or "pytest.mark.timed" in module.text:
        return
    for node, name in uses(module):
        if matches(name, MEASURES):
            yield Finding(node.lineno, f"{name} measures time: mark the test as `timed`")
