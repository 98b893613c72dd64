"""The deletion of a namespace's content, pods first, and the conditions about remaining content.

Every resource that can be deleted and listed is read. The messages of the conditions are upstream's.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.status import ApiError, MethodNotSupported, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import Discovery
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client

_POD_GRACE: Final = timedelta(seconds=30)
"""The grace period of a pod without one."""
_FINALIZER_ESTIMATE: Final = timedelta(seconds=15)
"""The estimated time until finalizers of other objects than pods are removed."""


class RemainingContent(Struct):
    """The content that remains after one round of deletion, and the failures."""

    counts: Counter[GroupResource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    discovery_failures: list[str] = field(default_factory=list)
    deletion_failures: list[str] = field(default_factory=list)
    estimate: timedelta = timedelta()

    @property
    def is_empty(self) -> bool:
        return not (self.counts or self.discovery_failures or self.deletion_failures)

    def add(self, resource: GroupResource, objects: Sequence[ReadOnlyTree], estimate: timedelta) -> None:
        if objects:
            self.counts[resource] += len(objects)
            self.finalizers.update(finalizer for obj in objects for finalizer in meta.finalizers(obj))
            self.estimate = max(self.estimate, estimate)


def estimate_of(resource: GroupResource, objects: Iterable[ReadOnlyTree], now: datetime) -> timedelta:
    """Return the estimated time until the objects are deleted."""
    if resource != PODS:
        return _FINALIZER_ESTIMATE if any(meta.finalizers(obj) for obj in objects) else timedelta()
    return max((_remaining_grace_period(pod, now) for pod in objects), default=timedelta())


def _remaining_grace_period(pod: ReadOnlyTree, now: datetime) -> timedelta:
    deadline = meta.deletion_timestamp(pod)
    return max(deadline - now, timedelta()) if deadline else _POD_GRACE


def with_conditions(
    namespace: ReadOnlyTree, content: RemainingContent, now: datetime
) -> dict[str, Any] | None:
    """Return the namespace with conditions about remaining content; None if they do not differ."""
    new_conditions = [
        condition for condition in _conditions(content) if not conditions.has_condition(namespace, condition)
    ]
    if not new_conditions:
        return None
    updated = dict(namespace)
    for condition in new_conditions:
        updated = conditions.with_condition(updated, condition, now)
    return updated


def _conditions(content: RemainingContent) -> list[dict[str, str]]:
    failed = content.deletion_failures
    return [
        _condition(
            "NamespaceDeletionDiscoveryFailure",
            ("ResourcesDiscovered", "All resources successfully discovered"),
            ("DiscoveryFailed", _discovery_text(content.discovery_failures)),
            is_true=bool(content.discovery_failures),
        ),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ("GroupVersionParsingFailed", ""),
            is_true=False,
        ),
        _condition(
            "NamespaceDeletionContentFailure",
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            (
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(failed)} remaining: {', '.join(sorted(failed))}",
            ),
            is_true=bool(failed),
        ),
        _condition(
            "NamespaceContentRemaining",
            ("ContentRemoved", "All content successfully removed"),
            ("SomeResourcesRemain", f"Some resources are remaining: {_resources_text(content.counts)}"),
            is_true=bool(content.counts),
        ),
        _condition(
            "NamespaceFinalizersRemaining",
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {_finalizers_text(content.finalizers)}",
            ),
            is_true=bool(content.finalizers),
        ),
    ]


def _condition(
    condition_type: str, when_false: tuple[str, str], when_true: tuple[str, str], *, is_true: bool
) -> dict[str, str]:
    reason, message = when_true if is_true else when_false
    return {"type": condition_type, "status": str(is_true), "reason": reason, "message": message}


def _discovery_text(failures: Sequence[str]) -> str:
    return f"Discovery failed for some groups, {len(failures)} failing: {'; '.join(failures)}"


def _resources_text(counts: Counter[GroupResource]) -> str:
    return ", ".join(
        sorted(
            f"{_group_resource_text(resource)} has {count} resource instances"
            for resource, count in counts.items()
        )
    )


def _group_resource_text(resource: GroupResource) -> str:
    # Upstream appends a dot and the group even if the group is empty.
    return f"{resource.resource}.{resource.group}"


def _finalizers_text(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{name} in {count} resource instances" for name, count in counts.items()))


async def delete_content(
    client: Client, discovery: Discovery, namespace: str, now: datetime
) -> RemainingContent:
    """Delete the pods of a namespace, and all other objects when no pods remain; return the remaining content."""
    content = RemainingContent(discovery_failures=list(discovery.failures))
    resources = [resource for resource in discovery.with_verbs("delete", "list") if resource.namespaced]
    pod_resources = [resource for resource in resources if resource.group_resource == PODS]
    await _delete_all(client, pod_resources, namespace, now, content)
    if not content.counts:
        await _delete_all(
            client,
            [resource for resource in resources if resource not in pod_resources],
            namespace,
            now,
            content,
        )
    return content


async def _delete_all(
    client: Client,
    resources: Sequence[Resource[ReadOnlyTree]],
    namespace: str,
    now: datetime,
    content: RemainingContent,
) -> None:
    for resource in resources:
        try:
            remaining = await _delete(client, resource, namespace)
        except ApiError as error:
            content.deletion_failures.append(str(error))
            continue
        content.add(resource.group_resource, remaining, estimate_of(resource.group_resource, remaining, now))


async def _delete(client: Client, resource: Resource[ReadOnlyTree], namespace: str) -> Sequence[ReadOnlyTree]:
    """Delete all objects of a resource in a namespace; return the remaining ones."""
    present = (await client.list(resource, namespace)).items
    if not present:
        return ()
    try:
        await client.delete_collection(resource, namespace, propagation="Background")
    except MethodNotSupported:
        await _delete_one_by_one(client, resource, present)
    return (await client.list(resource, namespace)).items


async def _delete_one_by_one(
    client: Client, resource: Resource[ReadOnlyTree], objects: Sequence[ReadOnlyTree]
) -> None:
    for obj in objects:
        metadata = obj["metadata"]
        try:
            await client.delete(
                resource, Key(metadata["namespace"], metadata["name"]), propagation="Background"
            )
        except NotFound:
            continue
