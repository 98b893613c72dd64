"""Merges the discovery of this server and of others: groups, and the versions of each group, by priority."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery.tree import Tree
from mockube.apiserver.discovery import aggregated
from mockube.apiserver.kinds.kind import Group

from .remotes import RemoteAPIService, RemoteDocuments

CUSTOM: Final = (1000, 100)
"""The priorities of the group and versions of custom resources."""
_ABOVE_ALL: Final = 1 << 40
"""The priority of the group apiregistration.k8s.io, which has no APIService."""


class Version(NamedTuple):
    """A version of a group; `remote` is None if this server serves it."""

    name: str
    priority: int
    remote: RemoteAPIService | None = None


class MergedGroup(NamedTuple):
    name: str
    priority: int
    versions: Sequence[Version]
    own: Group | None = None

    def legacy_form(self) -> Tree:
        """Return the group as an item of an APIGroupList."""
        versions = [
            {"groupVersion": f"{self.name}/{version.name}", "version": version.name}
            for version in self.versions
        ]
        return {"name": self.name, "versions": versions, "preferredVersion": versions[0]}

    def aggregated_form(self, documents: Mapping[str, RemoteDocuments]) -> Tree:
        """Return the group as an item of an APIGroupDiscoveryList, with all known resources."""
        return {
            "metadata": {"name": self.name},
            "versions": [self._version(version, documents) for version in self.versions],
        }

    def _version(self, version: Version, documents: Mapping[str, RemoteDocuments]) -> Any:
        if version.remote is None:
            assert self.own is not None
            return aggregated.version_document(self.own, version.name)
        remote_documents = documents.get(version.remote.name)
        if remote_documents is None or remote_documents.resources is None:
            return {"version": version.name, "freshness": "Stale"}
        resources = {"resources": remote_documents.resources} if remote_documents.resources else {}
        return {"version": version.name, **resources, "freshness": "Current"}


def merge_groups(
    groups: Iterable[Group],
    remotes: Iterable[RemoteAPIService],
    priorities: Mapping[str, int],
    of_versions: Mapping[tuple[str, str], int],
) -> Sequence[MergedGroup]:
    """Return the named groups of this server and of others in order; `priorities` are those of the built-in groups."""
    merged_groups: list[MergedGroup] = []
    for group in groups:
        if group.name:
            is_custom = bool(group.resources) and group.resources[0].custom
            priority = CUSTOM[0] if is_custom else priorities.get(group.name, _ABOVE_ALL)
            versions = [
                Version(name, CUSTOM[1] if is_custom else of_versions.get((group.name, name), 15))
                for name in group.versions
            ]
            merged_groups.append(MergedGroup(group.name, priority, versions, group))
    for remote in sorted(remotes, key=lambda remote: remote.name):
        _add(merged_groups, remote)
    return merged_groups


def _add(merged_groups: list[MergedGroup], remote: RemoteAPIService) -> None:
    name, (priority, of_version) = remote.served.group, remote.priority
    version = Version(remote.served.version, of_version, remote)
    old_index = next((index for index, group in enumerate(merged_groups) if group.name == name), None)
    if old_index is not None:
        group = merged_groups.pop(old_index)
        versions = [other for other in group.versions if other.name != version.name] + [version]
        versions.sort(key=lambda entry: -entry.priority)
        group = group._replace(versions=versions, priority=max(group.priority, priority))
    else:
        group = MergedGroup(name, priority, [version])
    position = next(
        (
            index
            for index, other in enumerate(merged_groups)
            if (other.priority, name) < (group.priority, other.name)
        ),
        len(merged_groups),
    )
    merged_groups.insert(position if old_index is None or priority == group.priority else old_index, group)


class OtherGroups(Struct, frozen=True, kw_only=True):
    """The groups of other servers, and the priorities by which they are merged."""

    remotes: Sequence[RemoteAPIService] = ()
    documents: Mapping[str, RemoteDocuments] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    """The priorities of the built-in groups."""
    of_versions: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def merge(self, groups: Iterable[Group]) -> Sequence[MergedGroup]:
        return merge_groups(groups, self.remotes, self.priorities, self.of_versions)


NO_OTHERS: Final = OtherGroups()
