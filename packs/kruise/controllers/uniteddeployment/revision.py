"""The revision history of a UnitedDeployment's template: creation of revisions, and deletion of old ones."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.kinds import CONTROLLER_REVISIONS
from mockube.controller_manager.control.actions import Action, Create, Delete, EventTemplate, Update
from mockube.controller_manager.workloads import revisions
from mockube.controller_manager.workloads.ownership import object_ref
from mockube.controller_manager.workloads.revisions import DesiredRevision

from .spec import UnitedView
from .subset import REASON_FAILED_REVISION


class History(Struct, frozen=True, kw_only=True):
    expected: str
    """The name of the revision with the present template, which exists or is created by the actions."""
    current: str
    """The last revision of all pods, or the expected one if that revision does not exist."""
    actions: tuple[Action, ...]


def sync_revisions(caches: Caches, view: UnitedView, recorded: Sequence[ReadOnlyTree]) -> History:
    ordered = revisions.in_order(recorded)
    desired = DesiredRevision(
        owner=view.object,
        data=revisions.data_of(view.object["spec"]["template"]),
        labels=meta.labels(view.template),
        annotations={},
    )
    get_revision = partial(caches.of(CONTROLLER_REVISIONS).get, view.key.namespace)
    synced = revisions.sync_revision(desired, ordered, view.status.get("collisionCount") or 0, get_revision)
    expected = meta.name(synced.revision)
    current = view.status.get("currentRevision") or expected
    deletions = _delete_oldest(view, ordered, {expected, current})
    return History(
        expected=expected,
        current=current if any(meta.name(revision) == current for revision in ordered) else expected,
        actions=(*deletions, *(_with_failure_event(view, action) for action in synced.actions)),
    )


def _delete_oldest(view: UnitedView, ordered: Sequence[ReadOnlyTree], used: set[str]) -> tuple[Action, ...]:
    """Delete the oldest revisions beyond the limit, except those in use."""
    live = {*used, (view.status.get("updateStatus") or {}).get("updatedRevision")}
    oldest = ordered[: max(len(ordered) - view.revision_history_limit, 0)]
    surplus = tuple(
        object_ref(CONTROLLER_REVISIONS, revision) for revision in oldest if meta.name(revision) not in live
    )
    return (Delete(resource=CONTROLLER_REVISIONS, objects=surplus),) if surplus else ()


def _with_failure_event(view: UnitedView, action: Create | Update) -> Create | Update:
    failed = (REASON_FAILED_REVISION, "{error}")
    return replace(action, event=EventTemplate(about=view.object, on_failure=failed))
