"""Discovery of this server and of others as one: groups by priority, and in each group its versions by priority."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery.tree import Tree
from mockube.apiserver.aggregation.remotes import Documents, Remote
from mockube.apiserver.discovery import aggregated
from mockube.apiserver.kinds.kind import Group

CUSTOM: Final = (1000, 100)
"""The priorities of what definitions bring."""
_ABOVE_ALL: Final = 1 << 40
"""Of the group that serves the others, which is not in the list itself."""


class Version(NamedTuple):
    """A version of a group, and the server of it: another one, or this one."""

    name: str
    priority: int
    remote: Remote | None = None


class MergedGroup(NamedTuple):
    name: str
    priority: int
    versions: Sequence[Version]
    own: Group | None = None

    def legacy_form(self) -> Tree:
        """As the list of groups has it."""
        versions = [
            {"groupVersion": f"{self.name}/{version.name}", "version": version.name}
            for version in self.versions
        ]
        return {"name": self.name, "versions": versions, "preferredVersion": versions[0]}

    def aggregated_form(self, documents: Mapping[str, Documents]) -> Tree:
        """With all resources, as far as they are known."""
        return {
            "metadata": {"name": self.name},
            "versions": [self._version(version, documents) for version in self.versions],
        }

    def _version(self, version: Version, documents: Mapping[str, Documents]) -> Any:
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
    remotes: Iterable[Remote],
    priorities: Mapping[str, int],
    of_versions: Mapping[tuple[str, str], int],
) -> Sequence[MergedGroup]:
    """The named groups of this server, whose built-in ones have the given priorities, and those of others among them."""
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


def _add(merged_groups: list[MergedGroup], remote: Remote) -> None:
    name, (priority, of_version) = remote.served.group, remote.priority
    version = Version(remote.served.version, of_version, remote)
    at = next((index for index, group in enumerate(merged_groups) if group.name == name), None)
    if at is not None:
        group = merged_groups.pop(at)
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
    merged_groups.insert(position if at is None or priority == group.priority else at, group)


class OtherGroups(Struct, frozen=True, kw_only=True):
    """What other servers have a part in."""

    remotes: Sequence[Remote] = ()
    documents: Mapping[str, Documents] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    """Of the built-in groups of this server."""
    of_versions: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def merge(self, groups: Iterable[Group]) -> Sequence[MergedGroup]:
        return merge_groups(groups, self.remotes, self.priorities, self.of_versions)


NO_OTHERS: Final = OtherGroups()
