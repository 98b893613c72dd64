"""CustomResourceDefinitions, which know what versions they ever were stored in, and wait for their objects at the end."""

from typing import Final

from apimachinery import conditions, meta
from apimachinery.groups import GroupResource
from apimachinery.timestamps import parse_time
from apiserver.resources.strategy import MAIN, METADATA, SPEC, STATUS, Request, Strategy, Tree

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that a definition has until its objects are gone."""

_TERMINATING: Final = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}


def _storage_versions(definition: Tree) -> list[str]:
    """The name of the version to store; of several, which validation refuses, the first."""
    versions = definition.get("spec", {}).get("versions") or ()
    return [version.get("name", "") for version in versions if version.get("storage")][:1]


def _begin(definition: Tree, _request: Request) -> None:
    stored = _storage_versions(definition) or None
    definition["status"] = definition["status"] | {"storedVersions": stored}


def _store_version(new: Tree, _old: Tree, _request: Request) -> None:
    """Every version that ever was the one to store is remembered: objects may still be in it."""
    status = new.get("status", {})
    known = status.get("storedVersions") or []
    stored = [name for name in _storage_versions(new) if name not in known]
    new["status"] = status | {"storedVersions": [*known, *stored] or None}


def _is_pending(definition: Tree) -> bool:
    """A definition never goes at once: its objects go first."""
    return not meta.is_deleting(definition) or bool(meta.finalizers(definition))


def _mark(definition: Tree) -> None:
    if not meta.finalizers(definition) or not conditions.is_true(definition, "Terminating"):
        metadata = definition["metadata"]
        finalizers = metadata.get("finalizers", [])
        metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
        now = parse_time(metadata["deletionTimestamp"])
        listed = conditions.updated(conditions.of(definition), _TERMINATING, now)
        definition["status"] = (definition.get("status") or {}) | {"conditions": listed}


STRATEGIES = {
    GroupResource("apiextensions.k8s.io", "customresourcedefinitions"): Strategy(
        resets={MAIN: STATUS, "status": (*SPEC, *METADATA)},
        generation=SPEC,
        first_generation=1,
        unconditional_update=False,
        prepare_create=_begin,
        prepare_update={MAIN: _store_version},
        pending=_is_pending,
        prepare_delete=_mark,
    )
}
