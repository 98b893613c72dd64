"""The policy of a namespace by its labels: a level and a version for each of enforce, audit and warn."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
"""From the least to the most restrictive level."""
LATEST: Final = -1
ENFORCE, AUDIT, WARN = MODES = ("enforce", "audit", "warn")
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_LABELS: Final = ROOT.child("metadata", "labels")


class LevelVersion(NamedTuple):
    level: str = PRIVILEGED
    minor: int = LATEST
    """The minor version of Kubernetes v1."""

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


class PodSecurityLevels(NamedTuple):
    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def is_privileged(self) -> bool:
        return all(mode.level == PRIVILEGED for mode in self)

    def is_equivalent(self, other: "PodSecurityLevels") -> bool:
        return all(
            own == compared or own.level == compared.level == PRIVILEGED
            for own, compared in zip(self, other, strict=True)
        )


NO_POLICY: Final = PodSecurityLevels()
"""The policy of a namespace without labels."""


def is_stricter(level: str, other: str) -> bool:
    return LEVELS.index(level) > LEVELS.index(other)


def parse_version(text: str) -> int | None:
    """Return the minor version; None if the text is invalid."""
    if text == "latest":
        return LATEST
    match = _VERSION.fullmatch(text)
    try:
        return None if match is None else gotext.parse_int(match[1])
    except gotext.NumberError:
        return None


_NO_LEVEL: Final = f"must be one of {', '.join(LEVELS)}"
_NO_VERSION: Final = 'must be "latest" or "v1.x"'


def read_policy(
    labels: Mapping[str, str], defaults: PodSecurityLevels
) -> tuple[PodSecurityLevels, list[FieldError]]:
    """Return the policy of a namespace with these labels, and the errors of the labels.

    An invalid level counts as restricted for enforce, and as privileged for audit and warn; an invalid version as latest.
    """
    levels, label_errors = dict(zip(MODES, defaults, strict=True)), list[FieldError]()
    for mode in MODES:
        level, minor = levels[mode]
        name = PREFIX + mode
        if name in labels:
            level = labels[name]
            if level not in LEVELS:
                label_errors.append(errors.invalid(_LABELS.key(name), level, _NO_LEVEL))
                level = RESTRICTED if mode == ENFORCE else PRIVILEGED
        name += "-version"
        if name in labels:
            parsed = parse_version(labels[name])
            if parsed is None:
                label_errors.append(errors.invalid(_LABELS.key(name), labels[name], _NO_VERSION))
            minor = LATEST if parsed is None else parsed
        levels[mode] = LevelVersion(level, minor)
    levels[WARN] = _warn_level(labels, levels[ENFORCE], levels[WARN])
    return PodSecurityLevels(**levels), label_errors


def _warn_level(labels: Mapping[str, str], enforced: LevelVersion, warned: LevelVersion) -> LevelVersion:
    """Return the level to warn of; by default the enforced one, because workloads' templates are not refused."""
    if (
        PREFIX + WARN in labels
        or labels.get(PREFIX + ENFORCE) not in LEVELS
        or not is_stricter(enforced.level, warned.level)
    ):
        return warned
    has_version = f"{PREFIX}{WARN}-version" in labels
    return LevelVersion(enforced.level, warned.minor if has_version else enforced.minor)
