"""Rule: clocks and random sources are injected, so that everything can run on a stepped clock."""

from collections.abc import Iterator, Mapping

from tests.architecture.rules.names import forbidden_among, matches, uses
from tests.architecture.source import Finding, Module

_CLOCK = "inject a Clock (component_base/clock.py)"
_RANDOMNESS = "inject a seeded source, as the clock is injected"

FORBIDDEN: Mapping[str, str] = {
    "time.*": _CLOCK,
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "asyncio.sleep": _CLOCK,
    "asyncio.timeout": _CLOCK,
    "asyncio.timeout_at": _CLOCK,
    "asyncio.wait_for": _CLOCK,
    "asyncio.get_*loop().time": _CLOCK,
    "asyncio.get_*loop().call_at": _CLOCK,
    "asyncio.get_*loop().call_later": _CLOCK,
    "threading.Timer": _CLOCK,
    "random.*": _RANDOMNESS,
    "secrets.*": _RANDOMNESS,
    "uuid.uuid1": _RANDOMNESS,
    "uuid.uuid4": _RANDOMNESS,
    "os.urandom": _RANDOMNESS,
    "os.getrandom": _RANDOMNESS,
}

ALLOWED: Mapping[str, Mapping[str, str]] = {
    "apimachinery/randomness.py": {"os.urandom": "it is the source of randomness"},
    "component_base/clock.py": {
        "time.monotonic": "it is the clock",
        "datetime.datetime.now": "it is the clock",
        "asyncio.sleep": "it is the clock",
        "asyncio.get_running_loop().call_later": "it is the clock",
    },
}
"""Which file may use what, and why. An entry that is no longer needed is an error, too."""


def check(module: Module, allowed: Mapping[str, Mapping[str, str]] = ALLOWED) -> Iterator[Finding]:
    exempt = allowed.get(module.path, {})
    used = (use for use in uses(module.tree) if not matches(use[1], exempt))
    yield from forbidden_among(used, FORBIDDEN)


def idle_exemptions(module: Module, allowed: Mapping[str, Mapping[str, str]] = ALLOWED) -> set[str]:
    exempt = allowed.get(module.path, {})
    return set(exempt) - {matches(name, exempt) for _, name in uses(module.tree)}
