"""Feature gates: those of each minor release, and the ones that are on in a process.

`schema/data/gates.json` has the gates of the newest minor; `tools/minors` derives it.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pkgutil import get_data
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.json import decode

from .schema import minors

Setting: TypeAlias = tuple[str, bool]

ALL_OF_STAGE: Final[Mapping[str, str]] = {"ALPHA": "AllAlpha", "BETA": "AllBeta"}
"""The gates that set all gates of a stage that have no setting of their own."""


class FeatureSpec(Struct, frozen=True, array_like=True):
    stage: str
    default: bool
    locked: bool = False
    """Whether it cannot be changed from its default."""
    needs: tuple[str, ...] = ()
    """The gates that have to be on if this one is."""


class FeatureGates:
    """The gates of a minor release, with the settings of a process."""

    def __init__(self, minor: str = minors.NEWEST, settings: Iterable[Setting] = ()) -> None:
        self.minor = minor
        self._settings = dict(settings)
        self._on: dict[str, bool] = {}
        """What `is_on` has returned, since it is called for each pod."""

    def is_on(self, name: str) -> bool:
        """Return whether a gate is on; one that the minor does not have yet is off."""
        is_on = self._on.get(name)
        if is_on is None:
            is_on = self._on[name] = self._read(name)
        return is_on

    def _read(self, name: str) -> bool:
        gate = gates_of(self.minor).get(name)
        if gate is None:
            return False
        all_of_stage = ALL_OF_STAGE.get(gate.stage, "")
        return self._settings.get(name, self._settings.get(all_of_stage, gate.default))

    def is_before(self, minor: str) -> bool:
        """Return whether the minor release is older than another."""
        return minors.is_before(self.minor, minor)


@cache
def gates_of(minor: str) -> Mapping[str, FeatureSpec]:
    """Return the gates in a minor release."""
    newest = _newest()
    changed = minors.changes(minor, "gates")
    if not changed:
        return newest
    rows = {name: None if row is None else decode(row, type=FeatureSpec) for name, row in changed.items()}
    return {name: gate for name, gate in {**newest, **rows}.items() if gate is not None}


@cache
def _newest() -> Mapping[str, FeatureSpec]:
    text = get_data("mockube.apimachinery.schema", "data/gates.json")
    assert text is not None, "the package is installed where its files can be read"
    return decode(text, type=dict[str, FeatureSpec])
