"""Names of kinds, as kubectl takes them: `Deployment`, `deployment`, `deployments`, `deploy`, `deployments.apps`, `deployments.v1.apps`.

Resources are found by discovery, which is repeated for an unknown name, so that new CustomResourceDefinitions are found.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from mockube.apimachinery.groups import GroupVersion
from mockube.client.discovery import DiscoveredResource, discover
from mockube.client.verbs import Client
from mockube.component_base.suggestions import did_you_mean, nearest

from .errors import InvalidType, InvalidValue, KindNotServed


class ResourceNames:
    """The resources of a server, by the names of their kinds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._resources: Sequence[DiscoveredResource] = ()
        self._versions: Mapping[str, Sequence[str]] = {}
        """The versions by group."""

    def with_client(self, client: Client) -> "ResourceNames":
        """Return the same resources for another client, as of a fork of the server."""
        names = ResourceNames(client)
        names._resources, names._versions = self._resources, self._versions
        return names

    async def find(self, name: str) -> DiscoveredResource:
        """Return the resource of a name; raise KindNotServed if there is none."""
        if (found := find_resource(self._resources, name)) is None:
            await self.discover()
            found = find_resource(self._resources, name)
        if found is None:
            raise KindNotServed(_unknown_kind(self._resources, name))
        return found

    async def find_kind(self, api_version: str, kind: str) -> DiscoveredResource:
        """Return the resource of an object, in the object's version."""
        group, version = _group_version(api_version)
        if (found := self._in_version(kind, group, version)) is None:
            await self.discover()
            found = self._in_version(kind, group, version)
        if found is None:
            raise KindNotServed(_unknown_version(self._resources, api_version, kind))
        return found

    def _in_version(self, kind: str, group: str, version: str) -> DiscoveredResource | None:
        if version not in self._versions.get(group, ()):
            return None
        found = find_in_group(self._resources, kind, group)
        return found and replace(found, resource=replace(found.resource, version=version))

    async def all(self) -> Sequence[DiscoveredResource]:
        if not self._resources:
            await self.discover()
        return self._resources

    async def discover(self) -> None:
        discovery = await discover(self._client)
        self._versions = discovery.versions
        self._resources = [
            replace(found, resource=replace(found.resource, metadata_only=False))
            for found in discovery.resources
            if not found.verbs.isdisjoint(("get", "create"))
        ]


def check_kind(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidType(f'a kind is a str such as "Deployment", not {type(name).__name__}')
    if not name:
        raise InvalidValue('the kind is empty: write it as "Deployment", "deployments" or "deployments.apps"')


def find_resource(resources: Sequence[DiscoveredResource], name: str) -> DiscoveredResource | None:
    """Return the first resource of a name. A short name counts only if it is no other resource's name."""
    short_name_match = None
    for kind, version, group in _readings(name):
        for found in resources:
            if group is not None and found.resource.group != group:
                continue
            if kind in _names(found):
                return _in_version(found, version)
            if short_name_match is None and kind in found.short_names:
                short_name_match = _in_version(found, version)
    return short_name_match


def find_in_group(
    resources: Sequence[DiscoveredResource], kind: str, group: str
) -> DiscoveredResource | None:
    return next(
        (found for found in resources if (found.resource.kind, found.resource.group) == (kind, group)), None
    )


def _readings(name: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield kind, version and group: `a.b.c` has the group `b.c`, or the version `b`. None is any group."""
    kind, dot, group = name.lower().partition(".")
    yield kind, "", group if dot else None
    version, dot, rest = group.partition(".")
    if dot:
        yield kind, version, rest


def _in_version(found: DiscoveredResource, version: str) -> DiscoveredResource:
    return replace(found, resource=replace(found.resource, version=version)) if version else found


def _names(found: DiscoveredResource) -> tuple[str, str, str]:
    return found.resource.plural, found.resource.kind.lower(), found.singular


def _group_version(api_version: str) -> GroupVersion:
    try:
        return GroupVersion.parse(api_version)
    except ValueError as error:
        raise InvalidValue(f'"{api_version}" is not an apiVersion, such as "v1" or "apps/v1"') from error


def _unknown_kind(resources: Sequence[DiscoveredResource], name: str) -> str:
    message = f'the server doesn\'t have a resource type "{name}"'
    kind = name.partition(".")[0]
    has_upper_case = kind != kind.lower()
    same_kind = find_resource(resources, kind)
    if same_kind is not None:
        found = same_kind.resource
        return f'{message}: did you mean "{found.group_kind if has_upper_case else found.group_resource}"?'
    if has_upper_case:
        candidate = nearest(kind, (found.resource.kind for found in resources))
    else:
        candidate = nearest(kind, (candidate for found in resources for candidate in _names(found)[:2]))
        # A short name is similar to much, so that it counts only if no other name does.
        candidate = candidate or nearest(kind, (short for found in resources for short in found.short_names))
    return f'{message}: did you mean "{candidate}"?' if candidate else message


def _unknown_version(resources: Sequence[DiscoveredResource], api_version: str, kind: str) -> str:
    message = f'no matches for kind "{kind}" in version "{api_version}"'
    same_kind = next((found.resource for found in resources if found.resource.kind == kind), None)
    if same_kind is not None:
        return f'{message}: did you mean apiVersion "{same_kind.api_version}"?'
    return message + did_you_mean(kind, (found.resource.kind for found in resources))
