"""What pods take from ConfigMaps, Secrets and claims: keys, files of volumes, whole objects. Pure."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from mockube.apimachinery.groups import GroupKind

from .existence import external, missing
from .fields import DataFields, DataSource, KeyReference, Volume
from .misspellings import misspelt_as
from .object_set import CLAIM, CONFIG_MAP, SECRET, STATEFUL_SET, ContainerAt, ObjectSet, PodTemplate
from .problem import Problem

_TOKEN_SECRET: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type
_INJECTED: Final = ("inject-trusted-cabundle", "inject-cabundle")
"""The ends of labels and annotations with which clusters add keys to ConfigMaps."""


class DataReference(NamedTuple):
    """A pod's reference to an object that must exist."""

    field: str
    kind: GroupKind
    name: str
    key: str = ""


def data_keys(objects: ObjectSet) -> Iterator[Problem]:
    """Find keys that a ConfigMap or Secret of the files does not have: the containers do not start."""
    for pod in objects.all_pods():
        for reference in data_references(pod):
            keys = _keys(objects, reference.kind, pod.namespace, reference.name) if reference.key else None
            if keys is not None and reference.key not in keys:
                words = f'{str(reference.kind).lower()} "{reference.name}" has no key "{reference.key}"'
                yield Problem(
                    item=pod.item, field=reference.field, message=f"{words}{_hint(reference.key, keys)}"
                )


def sub_paths(objects: ObjectSet) -> Iterator[Problem]:
    """Find mounts of a file that a volume of a ConfigMap or Secret does not have: a folder is mounted instead."""
    for pod in objects.all_pods():
        volumes = {each.name: each for _, each in pod.volumes}
        for at in pod.containers:
            for index, mount in enumerate(at.fields.volume_mounts):
                volume = volumes.get(mount.name)
                if volume is None or not mount.sub_path:
                    continue
                files = _files(objects, pod, volume)
                path = mount.sub_path.strip("/").removeprefix("./")
                if files is not None and not any(f"{file}/".startswith(f"{path}/") for file in files):
                    message = f'volume "{mount.name}" has no file "{path}"{_hint(path, files)}'
                    field = f"{at.path}.volumeMounts[{index}].subPath"
                    yield Problem(item=pod.item, field=field, message=message)


def volume_mounts(objects: ObjectSet) -> Iterator[Problem]:
    """Find mounts of volumes that a StatefulSet's pods do not have, which a server refuses only when the pods are created."""
    for pod in objects.all_pods():
        if pod.item.group_kind == STATEFUL_SET:
            names = {*(each.name for each in pod.spec.volumes), *(each.metadata.name for each in pod.claims)}
            for at in pod.containers:
                for index, mount in enumerate(at.fields.volume_mounts):
                    if mount.name not in names:
                        message = f'neither a volume nor a claim template is named "{mount.name}"{_hint(mount.name, names)}'
                        yield Problem(
                            item=pod.item, field=f"{at.path}.volumeMounts[{index}].name", message=message
                        )


def missing_data(objects: ObjectSet) -> Iterator[Problem]:
    """Find ConfigMaps, Secrets and claims that cannot exist as pods name them."""
    for pod, reference in _references(objects):
        reason = missing(objects, reference.kind, pod.namespace, reference.name)
        if reason:
            yield Problem(item=pod.item, field=reference.field, message=reason)


def external_data(objects: ObjectSet) -> Iterator[Problem]:
    """Find ConfigMaps, Secrets and claims of pods that the cluster has to have already."""
    for pod, reference in _references(objects):
        resources = {SECRET: ("secrets",), CONFIG_MAP: ("configmaps",)}.get(reference.kind, ())
        if not (resources and objects.creates(resources)):
            reason = external(objects, reference.kind, pod.namespace, reference.name)
            if reason:
                yield Problem(item=pod.item, field=reference.field, message=reason)


def _references(objects: ObjectSet) -> Iterator[tuple[PodTemplate, DataReference]]:
    """Yield each reference of each pod, once for an object."""
    for pod in objects.all_pods():
        if pod.is_complete:
            seen = set()
            for reference in (*data_references(pod), *_claims(objects, pod)):
                if (reference.kind, reference.name) not in seen:
                    seen.add((reference.kind, reference.name))
                    yield pod, reference


def _claims(objects: ObjectSet, pod: PodTemplate) -> Iterator[DataReference]:
    of_stateful_sets = [
        f"{claim.metadata.name}-{other.item.name}-"
        for other in objects.pods.get(pod.namespace, ())
        for claim in other.claims
    ]
    for index, volume in pod.volumes:
        source = volume.persistent_volume_claim
        if source is not None and not any(source.claim_name.startswith(each) for each in of_stateful_sets):
            yield DataReference(
                f"{pod.field('volumes')}[{index}].persistentVolumeClaim.claimName", CLAIM, source.claim_name
            )


def data_references(pod: PodTemplate) -> Iterator[DataReference]:
    """Yield the ConfigMaps and Secrets, and keys of them, that pods need."""
    for at in pod.containers:
        yield from _variables(at)
    for index, volume in pod.volumes:
        yield from _volume(volume, f"{pod.field('volumes')}[{index}]")


def _variables(at: ContainerAt) -> Iterator[DataReference]:
    for index, variable in enumerate(at.fields.env):
        path, source = f"{at.path}.env[{index}].valueFrom", variable.value_from
        yield from _key(source.config_map_key_ref, f"{path}.configMapKeyRef", CONFIG_MAP)
        yield from _key(source.secret_key_ref, f"{path}.secretKeyRef", SECRET)
    for index, group in enumerate(at.fields.env_from):
        path = f"{at.path}.envFrom[{index}]"
        yield from _key(group.config_map_ref, f"{path}.configMapRef", CONFIG_MAP)
        yield from _key(group.secret_ref, f"{path}.secretRef", SECRET)


def _key(source: KeyReference | None, path: str, kind: GroupKind) -> Iterator[DataReference]:
    if source is not None and source.name and not source.optional:
        yield DataReference(f"{path}.{'key' if source.key else 'name'}", kind, source.name, source.key)


def _volume(volume: Volume, path: str) -> Iterator[DataReference]:
    yield from _items(volume.config_map, f"{path}.configMap", CONFIG_MAP)
    yield from _items(volume.secret, f"{path}.secret", SECRET)
    for index, source in enumerate(volume.projected.sources if volume.projected is not None else ()):
        inner = f"{path}.projected.sources[{index}]"
        yield from _items(source.config_map, f"{inner}.configMap", CONFIG_MAP)
        yield from _items(source.secret, f"{inner}.secret", SECRET)


def _items(source: DataSource | None, path: str, kind: GroupKind) -> Iterator[DataReference]:
    if source is None or source.optional:
        return
    name = source.name or source.secret_name
    yield DataReference(f"{path}.{'secretName' if source.secret_name else 'name'}", kind, name)
    for index, item in enumerate(source.items):
        yield DataReference(f"{path}.items[{index}].key", kind, name, item.key)


def _keys(objects: ObjectSet, kind: GroupKind, namespace: str, name: str) -> Collection[str] | None:
    """Return the keys of a ConfigMap or Secret; None if it is not in the files, or if something else adds keys to it."""
    keys: set[str] = set()
    for item in objects.find(kind, namespace, name):
        fields = objects.decode(item, DataFields)
        own = {*fields.data, *fields.binary_data, *fields.string_data} if fields is not None else set()
        if not own or fields is None or fields.type == _TOKEN_SECRET or _is_injected(item.body):
            return None
        keys |= own
    return keys or None


def _is_injected(body: bytes) -> bool:
    return any(mark.encode() in body for mark in _INJECTED)


def _files(objects: ObjectSet, pod: PodTemplate, volume: Volume) -> Collection[str] | None:
    """Return the files of a volume; None if it is not one of a ConfigMap or Secret whose keys are known."""
    for source, kind in ((volume.config_map, CONFIG_MAP), (volume.secret, SECRET)):
        if source is not None:
            if source.items:
                return [item.path.removeprefix("./") for item in source.items]
            return _keys(objects, kind, pod.namespace, source.name or source.secret_name)
    return None


def _hint(name: str, names: Collection[str]) -> str:
    near = misspelt_as(name, names)
    if near:
        return f': did you mean "{near}"?'
    return f": it has {', '.join(sorted(names))}" if 0 < len(names) < 6 else ""
