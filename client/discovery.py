"""Discover the resources of a server by aggregated discovery, for controllers that handle all kinds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree

from .resources import Resource, whole_tree
from .verbs import Client

ROOTS: Final = ("/api", "/apis")
ACCEPT: Final = ", ".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
_STALE: Final = "Stale"


class DiscoveredResource(Struct, frozen=True, kw_only=True):
    """A resource in the preferred version that serves it, with its verbs and subresources."""

    resource: Resource[ReadOnlyTree]
    verbs: frozenset[str]
    subresources: frozenset[str]
    singular: str = ""
    short_names: tuple[str, ...] = ()


class Discovery(Struct, frozen=True, kw_only=True):
    """The result of discovery."""

    resources: tuple[DiscoveredResource, ...]
    failures: tuple[str, ...] = ()
    """The group versions that are stale because their API server is unavailable."""
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The versions by group, the preferred one first."""

    def with_verbs(self, *verbs: str) -> list[Resource[ReadOnlyTree]]:
        """Return the resources that support all these verbs."""
        return [entry.resource for entry in self.resources if entry.verbs >= {*verbs}]


async def discover(client: Client) -> Discovery:
    documents = [await client.raw("GET", root, accept=ACCEPT) for root in ROOTS]
    return parse(documents)


def parse(documents: Sequence[ReadOnlyTree]) -> Discovery:
    """Parse APIGroupDiscoveryLists."""
    resources: list[DiscoveredResource] = []
    failures: list[str] = []
    versions: dict[str, tuple[str, ...]] = {}
    for document in documents:
        for group in document.get("items") or ():
            name = group["metadata"].get("name", "")
            failures += (
                f"{name}/{version['version']}" for version in group["versions"] if _is_stale(version)
            )
            versions[name] = tuple(
                version["version"] for version in group["versions"] if not _is_stale(version)
            )
            resources += _resources_of(name, group["versions"])
    return Discovery(resources=tuple(resources), failures=tuple(failures), versions=versions)


def _resources_of(group: str, versions: Sequence[ReadOnlyTree]) -> Iterator[DiscoveredResource]:
    """Return each resource once, in its preferred version."""
    seen: set[str] = set()
    for version in versions:
        for resource in version.get("resources") or ():
            plural = resource["resource"]
            if plural not in seen:
                seen.add(plural)
                yield _discovered_resource(group, version["version"], resource)


def _discovered_resource(group: str, version: str, resource: ReadOnlyTree) -> DiscoveredResource:
    return DiscoveredResource(
        resource=Resource(
            group=group,
            version=version,
            plural=resource["resource"],
            kind=resource["responseKind"]["kind"],
            namespaced=resource["scope"] == "Namespaced",
            view=whole_tree,
            metadata_only=True,
        ),
        verbs=frozenset(resource.get("verbs") or ()),
        subresources=frozenset(
            subresource["subresource"] for subresource in resource.get("subresources") or ()
        ),
        singular=resource.get("singularResource") or "",
        short_names=tuple(resource.get("shortNames") or ()),
    )


def _is_stale(version: ReadOnlyTree) -> bool:
    return version.get("freshness") == _STALE
