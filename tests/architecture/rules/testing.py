"""A test waits for a condition or steps a clock, and uses fakes."""

from collections.abc import Iterator, Mapping

from tests.architecture.rules.names import forbidden_among, uses
from tests.architecture.source import Finding, Module

FORBIDDEN: Mapping[str, str] = {
    "time.sleep": "wait for a condition, or step a clock",
    "asyncio.sleep": "wait for a condition (tests/support/turns.py), or step a clock",
    "unittest.mock": "write a fake in tests/support",
    "unittest.mock.*": "write a fake in tests/support",
}


def check(module: Module) -> Iterator[Finding]:
    yield from forbidden_among(uses(module.tree), FORBIDDEN)
