"""The volumes of a pod that cannot be mounted: what they name does not exist, or a claim is not bound."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.groups import SECRETS, GroupResource
from mockube.apimachinery.pods import claim_name
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.volumes import storage_class_name
from mockube.client.component_helpers.volumes import SELECTED_NODE, waits_for_consumer

from .commands import explanation_command
from .explanation import Evidence, ObjectName, Origin, Remedy
from .facts import Facts, Member
from .nearest import nearest
from .owners import template_origin
from .remedies import MERGE, created, patched

CONFIG_MAPS: Final = GroupResource("", "configmaps")
CLAIMS: Final = GroupResource("", "persistentvolumeclaims")
CLASSES: Final = GroupResource("storage.k8s.io", "storageclasses")
VOLUMES: Final = GroupResource("", "persistentvolumes")
_CLAIM: Final = "PersistentVolumeClaim"
_NAMED: Final = 3
"""The classes that a remedy names."""


class Problem(Struct, frozen=True, kw_only=True):
    """What is wrong with one thing that a pod needs."""

    subject: ObjectName
    cause: str
    evidence: Sequence[Evidence] = ()
    remedies: Sequence[Remedy] = ()
    origins: Sequence[Origin] = ()


def claim_names(pod: ReadOnlyTree) -> Sequence[str]:
    """Return the names of the claims of a pod's volumes, also of those that are made for the pod."""
    return [
        claim_name(pod, volume)
        for volume in pod["spec"].get("volumes") or ()
        if volume.get("persistentVolumeClaim") or "ephemeral" in volume
    ]


def claim_problems(pod: ReadOnlyTree, facts: Facts) -> Iterator[Problem]:
    """Yield the claims of a pod that do not exist, or are not bound."""
    namespace = meta.namespace(pod)
    for name in claim_names(pod):
        reference = template_origin(pod, facts, "volumes")
        subject = ObjectName(kind=_CLAIM, api_version="v1", namespace=namespace, name=name)
        if facts.is_missing(CLAIMS, namespace, name):
            yield Problem(
                subject=subject,
                cause=f"the PersistentVolumeClaim {name} does not exist",
                origins=[Origin(object=subject), reference],
                remedies=[Remedy(text=f"Create the PersistentVolumeClaim {name} in {namespace}.")],
            )
            continue
        claim = facts.find(CLAIMS, namespace, name)
        phase = ((claim or {}).get("status") or {}).get("phase")
        if claim is not None and phase != "Bound" and not _waits_for_scheduler(pod, claim, facts):
            absent = missing_class(claim, facts)
            yield Problem(
                subject=subject,
                cause=f"the PersistentVolumeClaim {name} is not bound: {absent.cause if absent else f'its phase is {phase}'}",
                origins=[*(absent.origins if absent else ()), Origin(object=subject)],
                remedies=[
                    *(absent.remedies if absent else ()),
                    Remedy(
                        text="Why the claim is not bound:",
                        command=explanation_command(_CLAIM, namespace, name),
                    ),
                ],
            )


def missing_class(claim: ReadOnlyTree, facts: Facts) -> Problem | None:
    """Return that the StorageClass of a claim does not exist; None if it exists, or a volume has it nevertheless."""
    name = storage_class_name(claim)
    if not name or claim["spec"].get("volumeName") or not facts.is_missing(CLASSES, "", name):
        return None
    if any(storage_class_name(volume) == name for volume in facts.list(VOLUMES)):
        return None
    names = [meta.name(each) for each in facts.list(CLASSES)]
    similar = nearest(name, names) or ", or ".join(names[:_NAMED])
    subject = ObjectName(kind="StorageClass", api_version="storage.k8s.io/v1", name=name)
    other = [Remedy(text=f"Name one that exists, such as {similar}, in a new claim.")] if similar else []
    return Problem(
        subject=subject,
        cause=f"the StorageClass {name} does not exist",
        remedies=[*other, Remedy(text=f"Create the StorageClass {name}.")],
        origins=[Origin(object=subject), Origin.of(claim, "spec", "storageClassName")],
    )


def _waits_for_scheduler(pod: ReadOnlyTree, claim: ReadOnlyTree, facts: Facts) -> bool:
    """Return whether a claim is bound when its pod is scheduled: then it is not what the pod waits for."""
    if pod["spec"].get("nodeName") or SELECTED_NODE in meta.annotations(claim):
        return False
    return waits_for_consumer(facts.find(CLASSES, "", storage_class_name(claim)))


def volume_problems(pod: ReadOnlyTree, facts: Facts) -> Iterator[Problem]:
    """Yield what the volumes of a pod name and cannot have."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            reference = template_origin(pod, facts, "volumes", Member(volume["name"]))
            yield from _source_problems(facts, source, f"the volume {volume['name']}", reference)
    yield from claim_problems(pod, facts)


def environment_problems(
    pod: ReadOnlyTree, facts: Facts, container: ReadOnlyTree, place: str
) -> Iterator[Problem]:
    """Yield what the environment of a container, in a list of a pod's spec, names and cannot have."""
    consumer, path = f"the container {container['name']}", (place, Member(container["name"]))
    for entry in container.get("envFrom") or ():
        origin = template_origin(pod, facts, *path, "envFrom")
        yield from _reference_problems(facts, entry.get("configMapRef"), CONFIG_MAPS, consumer, origin)
        yield from _reference_problems(facts, entry.get("secretRef"), SECRETS, consumer, origin)
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        of_variable = f"{consumer}, variable {variable['name']},"
        origin = template_origin(pod, facts, *path, "env", Member(variable["name"]))
        for field, resource in (("configMapKeyRef", CONFIG_MAPS), ("secretKeyRef", SECRETS)):
            reference = source.get(field)
            keys = (reference["key"],) if reference and reference.get("key") else ()
            yield from _reference_problems(facts, reference, resource, of_variable, origin, keys)


def sub_path_problems(
    pod: ReadOnlyTree, facts: Facts, container: ReadOnlyTree, place: str
) -> Iterator[Problem]:
    """Yield the mounts of a container whose subPath is no file of their ConfigMap or Secret: a kubelet mounts an empty folder there."""
    volumes = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        volume, sub_path = volumes.get(mount["name"], {}), mount.get("subPath") or ""
        for field, resource in (("configMap", CONFIG_MAPS), ("secret", SECRETS)):
            reference = volume.get(field) or {}
            paths = [item["path"] for item in reference.get("items") or ()]
            if not sub_path or (paths and any(f"{path}/".startswith(f"{sub_path}/") for path in paths)):
                continue
            origin = template_origin(pod, facts, place, Member(container["name"]), "volumeMounts")
            consumer = f"subPath of the mount at {mount['mountPath']}"
            yield from _reference_problems(facts, reference, resource, consumer, origin, [sub_path])


def _source_problems(facts: Facts, source: ReadOnlyTree, consumer: str, origin: Origin) -> Iterator[Problem]:
    for field, resource in (("configMap", CONFIG_MAPS), ("secret", SECRETS)):
        reference = source.get(field)
        keys = [item["key"] for item in (reference or {}).get("items") or ()]
        yield from _reference_problems(facts, reference, resource, consumer, origin, keys)


_KINDS: Final = {CONFIG_MAPS: "ConfigMap", SECRETS: "Secret"}
_TEXT_FIELDS: Final = {CONFIG_MAPS: "data", SECRETS: "stringData"}
"""Where a value is written as text."""
VALUE: Final = "VALUE"
"""In place of a value that only the user knows."""


def _reference_problems(
    facts: Facts,
    reference: Any,
    resource: GroupResource,
    consumer: str,
    origin: Origin,
    keys: Iterable[str] = (),
) -> Iterator[Problem]:
    """Yield why a reference, which is in the field of `origin`, does not lead to what it names."""
    name = (reference or {}).get("name") or (reference or {}).get("secretName")
    if not name or (reference or {}).get("optional"):
        return
    namespace, kind = origin.object.namespace, _KINDS[resource]
    subject = ObjectName(kind=kind, api_version="v1", namespace=namespace, name=name)
    if facts.is_missing(resource, namespace, name):
        similar = nearest(name, map(meta.name, facts.list(resource, namespace)))
        other = (
            [Remedy(text=f"Name the {kind} {similar}, which exists, in {origin.object}.")] if similar else []
        )
        yield Problem(
            subject=subject,
            cause=f"{consumer} needs the {kind} {name}, which does not exist",
            remedies=[*other, _creation(resource, namespace, name, keys)],
            origins=[Origin(object=subject), origin],
        )
        return
    found = facts.find(resource, namespace, name)
    for key in keys:
        if found is not None and not any(
            key in (found.get(field) or {}) for field in ("data", "binaryData", "stringData")
        ):
            yield Problem(
                subject=subject,
                cause=f"{consumer} needs the key {key} of the {kind} {name}, which has no such key",
                remedies=[
                    *_other_key(key, found, origin),
                    patched(
                        "Add the key, such as:",
                        found,
                        {_TEXT_FIELDS[resource]: {key: VALUE}},
                        media_type=MERGE,
                    ),
                ],
                origins=[Origin(object=subject, path=("data", key)), origin],
            )


def _other_key(key: str, found: ReadOnlyTree, origin: Origin) -> Iterator[Remedy]:
    keys = [each for field in ("data", "binaryData") for each in found.get(field) or ()]
    if similar := nearest(key, keys):
        yield Remedy(text=f"Name the key {similar}, which it has, in {origin.object}.")


def _creation(resource: GroupResource, namespace: str, name: str, keys: Iterable[str]) -> Remedy:
    generic = ("secret", "generic") if resource == SECRETS else ("configmap",)
    obj: Tree = {
        "apiVersion": "v1",
        "kind": _KINDS[resource],
        "metadata": {"name": name, "namespace": namespace},
        _TEXT_FIELDS[resource]: dict.fromkeys(keys, VALUE),
    }
    literals = [f"--from-literal={key}={VALUE}" for key in keys]
    return created("Create it, such as:", obj, *generic, name, *literals)
