"""The kinds that a server serves: those of its minor release and gates, as `--runtime-config` switches them."""

from collections.abc import Collection

from msgspec.structs import replace

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.schema import minors

from .built_in_kinds import NEWEST, Kinds
from .field_gates import FIELD_GATES, RULE_GATES
from .kind import Kind
from .resource_config import NO_OVERRIDES, Overrides


def kinds_of(minor: str, overrides: Overrides = NO_OVERRIDES, gates: FeatureGates | None = None) -> Kinds:
    """Return the kinds that a server of a minor release has, by default or as its APIs and gates are switched."""
    kinds = _kinds_of_gates(_kinds_of_minor(minor), gates or FeatureGates(minor))
    if not overrides:
        return kinds
    from .betas import switched_kinds  # noqa: PLC0415 - few servers have others than by default

    return switched_kinds(kinds, overrides, lambda kind: _kind_of_minor(kind, minor))


def _kinds_of_minor(minor: str) -> Kinds:
    if minor == minors.NEWEST:
        return NEWEST
    from .minors.older_kinds import older_kinds  # noqa: PLC0415 - most servers are of the newest

    return older_kinds(minor)


def _kinds_of_gates(kinds: Kinds, gates: FeatureGates) -> Kinds:
    enabled = frozenset(filter(gates.is_on, FIELD_GATES | RULE_GATES))
    if not enabled:
        return kinds
    groups = (
        replace(group, kinds=tuple(_kind_of_gates(kind, enabled) for kind in group.kinds), resources=())
        for group in kinds.groups
    )
    return Kinds(groups, kinds.hidden, kinds.minor)


def _kind_of_gates(kind: Kind, enabled: Collection[str]) -> Kind:
    strategy = kind.strategy
    if strategy is not None:
        strategy = replace(strategy, disabled=strategy.disabled.without_gates(enabled))
    changes = {
        name: part for gate, parts in kind.by_gate.items() if gate in enabled for name, part in parts.items()
    }
    return replace(kind, strategy=strategy, **changes)


def _kind_of_minor(kind: Kind, minor: str) -> Kind:
    if minor == minors.NEWEST:
        return kind
    from .minors.older_kinds import older_kind  # noqa: PLC0415 - most servers are of the newest

    return older_kind(kind, minor)
