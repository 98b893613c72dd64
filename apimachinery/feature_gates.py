"""Feature gates: those of each minor release, and the ones that are on in a process.

`schema/data/gates.json` has the gates of the newest minor; `tools/minors` derives it.
"""

from argparse import ArgumentTypeError
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Annotated, Final, TypeAlias

from msgspec import Struct
from msgspec.json import decode

from mockube.apimachinery.flags import VERSION, Flag, feature_gate
from mockube.apimachinery.gotext import format_v
from mockube.apimachinery.schema import minors

Setting: TypeAlias = tuple[str, bool]


STAGE_OF: Final[Mapping[str, str]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
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

    def is_on(self, name: str) -> bool:
        """Return whether a gate is on; one that the minor does not have yet is off."""
        gate = gates_of(self.minor).get(name)
        if gate is None:
            return False
        if name in self._settings:
            return self._settings[name]
        of_stage = [value for each, value in self._settings.items() if STAGE_OF.get(each) == gate.stage]
        return of_stage[0] if of_stage and name not in STAGE_OF else gate.default

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


def read_gates(text: str) -> tuple[Setting, ...]:
    """Parse `A=true,B=false`; a component accepts its name before a gate, too, such as `kube:A=true`."""
    return tuple(_setting(part) for part in text.split(",") if part)


def _setting(text: str) -> Setting:
    component, colon, setting = text.strip().partition(":")
    if colon and component != "kube":
        raise ArgumentTypeError(f"component not registered: {component}")
    name, enabled = feature_gate(setting if colon else component)
    if not any(name in gates_of(minor) for minor in minors.MINORS):
        raise ArgumentTypeError(f"unrecognized feature gate: {name}")
    return name, enabled


class ReleaseOptions(Struct, frozen=True, kw_only=True):
    """The flags that select a release and its gates, which every component has."""

    kubernetes_version: Annotated[
        str,
        Flag(
            f"minor release of Kubernetes, {minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
            minors.read_minor,
            metavar="MINOR",
        ),
    ] = minors.NEWEST
    version: Annotated[str, VERSION] = "false"
    feature_gates: Annotated[
        tuple[Setting, ...],
        Flag("feature gates, as A=true,B=false", read_gates, repeats=True),
    ] = ()

    @property
    def gates(self) -> FeatureGates:
        return FeatureGates(self.kubernetes_version, self.feature_gates)


def gates_problem(settings: Iterable[Setting], minor: str) -> str:
    """Return what is wrong with the settings for a minor; "" if nothing is."""
    last_settings, gates = dict(settings), gates_of(minor)
    for name in last_settings:
        if name not in gates:
            return f"unrecognized feature gate: {name}"
    problems = [*_locked_problems(last_settings, gates)] or [
        *_missing_gates_problems(FeatureGates(minor, last_settings.items()))
    ]
    return f"[{', '.join(problems)}]" if len(problems) > 1 else "".join(problems)


def _locked_problems(settings: Mapping[str, bool], gates: Mapping[str, FeatureSpec]) -> Iterator[str]:
    """Yield what is wrong with settings of gates that cannot be changed."""
    for name, enabled in settings.items():
        if gates[name].locked and enabled != gates[name].default:
            requested_value, locked_value = format_v(enabled), format_v(gates[name].default)
            yield f"cannot set feature gate {name} to {requested_value}, feature is locked to {locked_value}"


def _missing_gates_problems(gates: FeatureGates) -> Iterator[str]:
    """Yield which gates are on without the gates that they need."""
    for name, gate in gates_of(gates.minor).items():
        if gate.needs and gates.is_on(name):
            disabled = [needed for needed in gate.needs if not gates.is_on(needed)]
            if disabled:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"


def ignored_settings(settings: Iterable[Setting], minor: str, implemented: Collection[str]) -> list[str]:
    """Return settings that change upstream but not this process; of a repeated gate the last one counts."""
    gates = FeatureGates(minor, settings)
    return [
        f"{name}={format_v(gates.is_on(name))}"
        for name, gate in gates_of(minor).items()
        if name not in implemented and name not in STAGE_OF and gates.is_on(name) != gate.default
    ]
