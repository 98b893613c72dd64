"""Invariants: rules in CEL that hold at every revision, over an object, what it was before, and the objects of its kind that the run has touched."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import CompiledExpression, Environment, ResultTypeError
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.suggestions import did_you_mean

_ENVIRONMENT: Final = Environment(
    {"object": types.DYN, "oldObject": types.DYN, "objects": types.list_of(types.DYN)}
)
_FIELDS: Final = ("name", "kinds", "expression")
ANY_KIND: Final = "*"


class InvalidInvariant(Exception):
    """An invariant has a mistake."""


class Invariant(Struct, frozen=True, kw_only=True):
    """A rule: `object` is null when the object is deleted, and `oldObject` when it is created."""

    name: str
    kinds: Sequence[str]
    """The kinds to whose objects it applies; `*` for all."""
    expression: str
    compiled: CompiledExpression

    def applies_to(self, kind: str) -> bool:
        return ANY_KIND in self.kinds or kind in self.kinds or kind.partition(".")[0] in self.kinds

    def problem(
        self, after: ReadOnlyTree | None, before: ReadOnlyTree | None, objects: Sequence[ReadOnlyTree]
    ) -> str:
        """Return how a change violates it, or ""."""
        values = {"object": after, "oldObject": before, "objects": [*objects]}
        try:
            value, _ = self.compiled.program.evaluate(values)
        except CelError as error:
            return f"{self.name} cannot be evaluated: {error}"
        return "" if value is True else f"{self.name} does not hold: {self.expression}"


def invariant(name: str, kinds: Sequence[str], expression: str) -> Invariant:
    try:
        compiled = _ENVIRONMENT.compile(expression, (types.BOOL, types.DYN).__contains__)
    except (Issues, ProgramError) as error:
        raise InvalidInvariant(f"expression: {error}") from error
    except ResultTypeError as error:
        raise InvalidInvariant(f"expression: must be a bool, not {error}") from error
    return Invariant(name=name, kinds=kinds, expression=expression, compiled=compiled)


def read_invariant(value: Any) -> Invariant:
    """Return the invariant of a scenario: the name of one of the library, or a map."""
    if isinstance(value, str):
        if value not in LIBRARY:
            raise InvalidInvariant(f'no invariant of the library is "{value}"{did_you_mean(value, LIBRARY)}')
        return invariant(value, *LIBRARY[value])
    if not isinstance(value, Mapping):
        raise InvalidInvariant(f"must be a map or the name of one of the library, not {value!r}")
    for name in value:
        if name not in _FIELDS:
            raise InvalidInvariant(f'unknown field "{name}": must be one of {", ".join(_FIELDS)}')
    expression, kinds = value.get("expression"), value.get("kinds", [ANY_KIND])
    if not isinstance(expression, str):
        raise InvalidInvariant("expression: must be a text in CEL")
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise InvalidInvariant("kinds: must be a list of kinds")
    return invariant(str(value.get("name") or expression), kinds, expression)


_WORKLOADS: Final = ("Deployment", "StatefulSet")
LIBRARY: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "bound-claims-are-kept": (
        ("PersistentVolumeClaim",),
        "object != null || oldObject.?status.?phase.orValue('') != 'Bound'",
    ),
    "one-pod-for-each-ordinal": (
        ("Pod",),
        (
            "object == null || !has(object.metadata.labels) || !('apps.kubernetes.io/pod-index' in object.metadata.labels) || "
            "objects.filter(other, other.?metadata.?labels[?'apps.kubernetes.io/pod-index'] == "
            "object.?metadata.?labels[?'apps.kubernetes.io/pod-index'] && other.?metadata.?ownerReferences[?0].?uid == "
            "object.?metadata.?ownerReferences[?0].?uid).size() <= 1"
        ),
    ),
    "replicas-are-not-removed": (
        _WORKLOADS,
        (
            "object == null || oldObject == null || object.?spec.?replicas.orValue(1) > 0 || "
            "oldObject.?spec.?replicas.orValue(1) == 0"
        ),
    ),
    "quorum-is-kept": (
        ("StatefulSet",),
        (
            "object == null || oldObject == null || object.?spec.?replicas.orValue(1) * 2 > "
            "oldObject.?spec.?replicas.orValue(1)"
        ),
    ),
    "volume-claims-of-pods-exist": (
        ("StatefulSet",),
        (
            "object == null || oldObject == null || object.?spec.?volumeClaimTemplates.orValue([]).size() == "
            "oldObject.?spec.?volumeClaimTemplates.orValue([]).size()"
        ),
    ),
    "observed-generation-grows": (
        (ANY_KIND,),
        (
            "object == null || oldObject == null || object.metadata.uid != oldObject.metadata.uid || "
            "object.?status.?observedGeneration.orValue(0) >= oldObject.?status.?observedGeneration.orValue(0)"
        ),
    ),
    "observed-generation-is-real": (
        (ANY_KIND,),
        (
            "object == null || object.?status.?observedGeneration.orValue(0) <= object.?metadata.?generation.orValue(0) || "
            "!has(object.metadata.generation)"
        ),
    ),
    "owners-are-kept": (
        (ANY_KIND,),
        (
            "object == null || oldObject == null || has(object.metadata.deletionTimestamp) || "
            "object.?metadata.?ownerReferences.orValue([]).size() >= oldObject.?metadata.?ownerReferences.orValue([]).size()"
        ),
    ),
    "secrets-keep-their-type": (
        ("Secret",),
        "object == null || oldObject == null || object.?type.orValue('') == oldObject.?type.orValue('')",
    ),
    "certificates-keep-their-secret": (
        ("Certificate.cert-manager.io",),
        (
            "object == null || oldObject == null || object.?spec.?secretName.orValue('') == "
            "oldObject.?spec.?secretName.orValue('')"
        ),
    ),
    "finalizers-go-at-the-end": (
        (ANY_KIND,),
        (
            "object == null || oldObject == null || has(object.metadata.deletionTimestamp) || "
            "object.?metadata.?finalizers.orValue([]).size() >= oldObject.?metadata.?finalizers.orValue([]).size()"
        ),
    ),
    "conditions-are-unique": (
        (ANY_KIND,),
        (
            "object == null || !has(object.status) || type(object.status) != map || !has(object.status.conditions) || "
            "type(object.status.conditions) != list || object.status.conditions.all(one, "
            "object.status.conditions.filter(other, other.?type == one.?type).size() == 1)"
        ),
    ),
}
"""The invariants that a scenario can name, with the kinds to which they apply."""
