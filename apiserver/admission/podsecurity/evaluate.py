"""Evaluate a pod against a level of the Pod Security Standards, as of a version of Kubernetes."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree

from . import baseline, restricted
from .check import Annotations, Check, CheckPod, Violation
from .policy import LATEST, PRIVILEGED, RESTRICTED, LevelVersion

_LAST_CHANGE: Final = max(
    minor for check in (*baseline.CHECKS, *restricted.CHECKS) for minor, _ in check.versions
)
"""The newest version in which a check changed."""


def evaluate(level_version: LevelVersion, annotations: Annotations, spec: ReadOnlyTree) -> list[Violation]:
    if level_version.level == PRIVILEGED:
        return []
    minor = _LAST_CHANGE if level_version.minor == LATEST else min(level_version.minor, _LAST_CHANGE)
    results = (check(annotations, spec) for check in _checks(level_version.level, minor))
    return [violation for violation in results if violation is not None]


@lru_cache(maxsize=2 * (_LAST_CHANGE + 1))
def _checks(level: str, minor: int) -> Sequence[CheckPod]:
    """Return the checks of a level in one version, in their order."""
    return tuple(check for _, check in _checks_of(level, minor))


def _checks_of(level: str, minor: int) -> Iterator[tuple[str, CheckPod]]:
    added = [*_of_version(restricted.CHECKS, minor)] if level == RESTRICTED else []
    overridden = {check.overrides for check, _ in added}
    for check, function in (*_of_version(baseline.CHECKS, minor), *added):
        if check.id not in overridden:
            yield check.id, function


def _of_version(checks: Sequence[Check], minor: int) -> Iterator[tuple[Check, CheckPod]]:
    for check in checks:
        functions = [function for since, function in check.versions if since <= minor]
        if functions:
            yield check, functions[-1]
