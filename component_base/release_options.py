"""The flags that select the release of a process and its feature gates, and what is wrong with them."""

from argparse import ArgumentTypeError
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated

from msgspec import Struct

from mockube.apimachinery.feature_gates import ALL_OF_STAGE, FeatureGates, FeatureSpec, Setting, gates_of
from mockube.apimachinery.gotext import format_v, quote
from mockube.apimachinery.schema import minors

from .flags import VERSION, Flag, feature_gate


def read_minor(text: str) -> str:
    """Read the minor of a flag or argument: `1.31` or `v1.31`, or the release of that minor, `1.31.14` or `v1.31.14`."""
    release = text.removeprefix("v")
    minor = ".".join(release.split(".")[:2])
    if minor not in minors.MINORS:
        raise ArgumentTypeError(
            f"{quote(text)} is not one of the minor releases {minors.OLDER[-1]} to {minors.NEWEST}"
        )
    if release not in {minor, minors.RELEASES[minor]}:
        raise ArgumentTypeError(
            f"{quote(text)} is not available: the release of {minor} is {minors.RELEASES[minor]}"
        )
    return minor


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
            read_minor,
            metavar="MINOR",
        ),
    ] = minors.NEWEST
    version: Annotated[str, VERSION] = "false"
    feature_gates: Annotated[
        tuple[Setting, ...],
        Flag("feature gates, as A=true,B=false", read_gates, repeats=True, topic="Cluster"),
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
    gates, gates_of_stages = FeatureGates(minor, settings), ALL_OF_STAGE.values()
    return [
        f"{name}={format_v(gates.is_on(name))}"
        for name, gate in gates_of(minor).items()
        if name not in implemented and name not in gates_of_stages and gates.is_on(name) != gate.default
    ]
