"""A test waits for a condition or steps a clock, and uses fakes."""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.rules.names import forbidden_among, uses
from tests.architecture.source import Finding, Module

FORBIDDEN: Mapping[str, str] = {
    "time.sleep": "wait for a condition, or step a clock",
    "asyncio.sleep": "wait for a condition, or step a clock",
    "unittest.mock": "write a fake in tests/support",
    "unittest.mock.*": "write a fake in tests/support",
}


def check(module: Module) -> Iterator[Finding]:
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    # Sleeping for 0 is no wait: it lets the event loop turn once.
    turns = {call.func for call in calls if [ast.unparse(argument) for argument in call.args] == ["0"]}
    yield from forbidden_among((use for use in uses(module.tree) if use[0] not in turns), FORBIDDEN)
