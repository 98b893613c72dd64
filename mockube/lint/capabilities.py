"""The API versions that helm finds by discovery in a cluster of a minor: `policy/v1` and `policy/v1/PodDisruptionBudget`.

`helm template` has no cluster: a template that asks for a kind by `.Capabilities.APIVersions.Has` would always get the answer
that there is none. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.served_kinds import kinds_of

_SCALE = "Scale"


@cache
def built_in_versions(minor: str) -> Sequence[str]:
    """Return the API versions of the kinds that Kubernetes itself serves, with those of their subresources, as discovery lists them."""
    found: dict[str, None] = {}
    for group in kinds_of(minor).groups:
        for row in group.resources:
            kinds = (row.kind, *(subresource.kind or row.kind for subresource in row.subresources))
            found |= dict.fromkeys((row.api_version, *(f"{row.api_version}/{kind}" for kind in kinds)))
    return tuple(found)


def defined_versions(definitions: Iterable[ReadOnlyTree]) -> Iterator[str]:
    """Yield the API versions that definitions of custom resources serve. Definitions that are no valid objects have none."""
    for definition in definitions:
        spec = definition.get("spec")
        names = spec.get("names") if isinstance(spec, dict) else None
        versions = spec.get("versions") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(versions, list):
            continue
        for version in versions:
            if isinstance(version, dict) and version.get("served"):
                api_version = f"{spec.get('group')}/{version.get('name')}"
                subresources = version.get("subresources")
                has_scale = isinstance(subresources, dict) and "scale" in subresources
                yield from (api_version, f"{api_version}/{names.get('kind')}")
                yield from [f"{api_version}/{_SCALE}"] if has_scale else ()
