"""Whether an object that others name exists: in the files, in every cluster, or perhaps in this one. Pure.

Most objects that files name and do not contain exist in the cluster. It is a mistake only if the files show what was meant: the
object is in another namespace, its name is misspelt, or it has the name of the release, of which nothing else creates objects.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from mockube.apimachinery import wellknown
from mockube.apimachinery.groups import GroupKind

from .misspellings import misspelt_as
from .object_set import CLUSTER_ROLE, CONFIG_MAP, ROLE, SECRET, SERVICE, SERVICE_ACCOUNT, ObjectSet

PRIORITY_CLASS: Final = GroupKind("scheduling.k8s.io", "PriorityClass")
_IN_EVERY_CLUSTER: Final[Mapping[GroupKind, tuple[str, ...]]] = {
    SERVICE_ACCOUNT: ("default",),
    CONFIG_MAP: ("kube-root-ca.crt",),
    PRIORITY_CLASS: ("system-cluster-critical", "system-node-critical"),
    CLUSTER_ROLE: ("cluster-admin", "admin", "edit", "view"),
    SERVICE: ("kubernetes",),
}
_IN_NAMESPACES: Final[Mapping[tuple[GroupKind, str], tuple[str, ...]]] = {
    (ROLE, wellknown.NAMESPACE_SYSTEM): ("extension-apiserver-authentication-reader",),
    (CONFIG_MAP, wellknown.NAMESPACE_SYSTEM): ("extension-apiserver-authentication",),
}
"""What every cluster has in one namespace only, besides the names with the prefix of built-in objects."""
_BUILT_IN_PREFIX: Final = "system:"
_RESOURCES: Final = {
    CONFIG_MAP: "configmaps",
    SECRET: "secrets",
    SERVICE: "services",
    SERVICE_ACCOUNT: "serviceaccounts",
}


def missing(objects: ObjectSet, kind: GroupKind, namespace: str, name: str) -> str:
    """Return why an object cannot exist as it is named; "" if it may exist."""
    if exists(objects, kind, namespace, name) or (
        namespace and kind.group == "" and name in objects.custom_texts
    ):
        return ""
    words = f'{str(kind).lower()} "{name}"'
    elsewhere = _elsewhere(objects, kind, namespace, name)
    if elsewhere:
        is_known = objects.is_namespace_known(namespace) and objects.is_namespace_known(elsewhere)
        return f'{words} is in namespace "{elsewhere}", and not in "{namespace}"' if is_known else ""
    near = _intended_name(objects, kind, namespace, name)
    if near:
        return f'{words} is not in the files: did you mean "{near}"?'
    resource = _RESOURCES.get(kind)
    if _is_of_release(objects, name) and not (resource and objects.creates((resource,))):
        return f"{words} has the name of the release, and the chart does not create it"
    return ""


def external(objects: ObjectSet, kind: GroupKind, namespace: str, name: str) -> str:
    """Return that an object has to be in the cluster already; "" if it is in the files or in every cluster."""
    if exists(objects, kind, namespace, name) or missing(objects, kind, namespace, name):
        return ""
    elsewhere = _elsewhere(objects, kind, namespace, name)
    if elsewhere:
        return f'{str(kind).lower()} "{name}" is in namespace "{elsewhere}", and not in "{namespace}": name that of the release by --namespace'
    place = f' in namespace "{namespace}"' if namespace else ""
    return f'{str(kind).lower()} "{name}"{place} is not in the files: the cluster must have it'


def _elsewhere(objects: ObjectSet, kind: GroupKind, namespace: str, name: str) -> str:
    """Return another namespace with an object of the name; "" if there is none."""
    return min(
        (other for other, found in objects.names(kind) if found == name and other != namespace), default=""
    )


def exists(objects: ObjectSet, kind: GroupKind, namespace: str, name: str) -> bool:
    in_cluster = (*_IN_EVERY_CLUSTER.get(kind, ()), *_IN_NAMESPACES.get((kind, namespace), ()))
    if objects.find(kind, namespace, name) or name in in_cluster:
        return True
    return name.startswith(_BUILT_IN_PREFIX)


def _intended_name(objects: ObjectSet, kind: GroupKind, namespace: str, name: str) -> str:
    """Return the object of the namespace that was meant: a misspelling, or a name without that of the release."""
    here = [found for other, found in objects.names(kind) if other == namespace]
    return misspelt_as(name, here) or next(_with_release(objects, here, name), "")


def _with_release(objects: ObjectSet, here: list[str], name: str) -> Iterator[str]:
    release = f"{objects.release}-"
    if objects.has_charts and objects.release:
        yield from (found for found in here if found.startswith(release) and found.endswith(f"-{name}"))


def _is_of_release(objects: ObjectSet, name: str) -> bool:
    """Return whether a name begins with that of the release, which only objects of the chart have."""
    return objects.has_charts and len(objects.release) > 2 and f"{name}-".startswith(f"{objects.release}-")
