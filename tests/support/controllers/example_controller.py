"""A minimal controller to test the runtime with: a ConfigMap has as many Secrets as its `data.copies` says."""

from mockube.apimachinery import meta
from mockube.client.kinds import CONFIG_MAPS, SECRETS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Patch,
    Plan,
)
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of


def key_of(obj):
    return Key(meta.namespace(obj), meta.name(obj))


def own_key(_, change):
    yield key_of(change.new or change.old)


def owners_key(_, change):
    for obj in filter(None, change):
        reference = meta.controller_of(obj)
        if reference:
            yield Key(meta.namespace(obj), reference["name"])


def reconcile(caches, key, now):
    parent = caches.of(CONFIG_MAPS).get(*key)
    if parent is None or "copies" not in (parent.get("data") or {}):
        return EMPTY_PLAN
    desired_copies = int(parent["data"]["copies"])
    copies = caches.of(SECRETS).by_index(BY_OWNER, meta.uid(parent))
    have = [copy for copy in copies if not meta.is_deleting(copy)]
    missing = desired_copies - len(have)
    if missing > 0:
        body = {
            "metadata": {
                "namespace": key.namespace,
                "generateName": f"{key.name}-",
                "ownerReferences": [meta.controller_reference(parent)],
            }
        }
        event = EventTemplate(
            about=parent,
            on_success=("SuccessfulCreate", "Created copy: {name}"),
            on_failure=("FailedCreate", "Error creating: {error}"),
        )
        return Plan(actions=(Create(resource=SECRETS, bodies=(body,) * missing, event=event),))
    if missing < 0:
        refs = tuple(ObjectRef(key_of(copy), meta.uid(copy)) for copy in have[missing:])
        return Plan(actions=(Delete(resource=SECRETS, objects=refs),))
    if parent["data"].get("have") != str(desired_copies):
        return Plan(
            actions=(Patch(resource=CONFIG_MAPS, key=key, body={"data": {"have": str(desired_copies)}}),)
        )
    return EMPTY_PLAN


COPIES = Controller(
    name="copies-controller",
    queue="copies",
    service_account="copies-controller",
    watches=(Watch(resource=CONFIG_MAPS, keys=own_key), Watch(resource=SECRETS, keys=owners_key)),
    reconcile=reconcile,
    workers=3,
    indexes={SECRETS: {BY_OWNER: owner_of}},
)


def parent(name, copies):
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"copies": str(copies)}}
