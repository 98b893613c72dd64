"""Errors about missing objects that a container refers to, with a kubelet's messages. Pure."""

from collections.abc import Iterator
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.environment import References, decoded_data


def missing_variable(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> str:
    """Return why a variable of the environment cannot be set; "" if all can."""
    return next(_missing_variables(pod, container, references), "")


def _missing_variables(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> Iterator[str]:
    for source in container.get("envFrom") or ():
        for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
            selector = source.get(field)
            if (
                selector
                and not selector.get("optional")
                and _find_keys(kind, selector.get("name"), references) is None
            ):
                yield f'{kind} "{selector.get("name")}" not found'
    for entry in container.get("env") or ():
        value = entry.get("valueFrom") or {}
        for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
            if selector := value.get(field):
                yield from _missing_key(kind, selector, meta.namespace(pod), references)


def _missing_key(kind: str, selector: ReadOnlyTree, namespace: str, references: References) -> Iterator[str]:
    if selector.get("optional"):
        return
    name, key = selector.get("name"), selector["key"]
    keys = _find_keys(kind, name, references)
    if keys is None:
        yield f'{kind} "{name}" not found'
    elif key not in keys:
        title = "ConfigMap" if kind == "configmap" else "Secret"
        yield f"couldn't find key {key} in {title} {namespace}/{name}"


def missing_volume(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> tuple[str, str]:
    """Return the first volume that cannot be mounted, and the reason; ("", "") if all can."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] in names:
            for problem in _missing_sources(volume, pod, references):
                return volume["name"], problem
    return "", ""


def _missing_sources(volume: ReadOnlyTree, pod: ReadOnlyTree, references: References) -> Iterator[str]:
    projected = (volume.get("projected") or {}).get("sources") or ()
    for source in (volume, *projected):
        for kind, field, name_field in (
            ("configmap", "configMap", "name"),
            ("secret", "secret", "secretName"),
        ):
            selector = source.get(field)
            if not selector or selector.get("optional"):
                continue
            name = selector.get(name_field) or selector.get("name")
            keys = _find_keys(kind, name, references)
            if keys is None:
                yield f'{kind} "{name}" not found'
            else:
                yield from _missing_items(kind, selector, keys)
        token = source.get("serviceAccountToken")
        if (
            token
            and (token.get("audience") or "", token.get("expirationSeconds") or 3600) not in references.tokens
        ):
            account = pod["spec"].get("serviceAccountName") or "default"
            yield f"failed to fetch token: no token for the service account {account}"


def _missing_items(kind: str, selector: ReadOnlyTree, keys: dict[str, Any]) -> Iterator[str]:
    for item in selector.get("items") or ():
        if item["key"] not in keys:
            yield f"references non-existent {'config' if kind == 'configmap' else 'secret'} key: {item['key']}"


def _find_keys(kind: str, name: Any, references: References) -> dict[str, Any] | None:
    """Return the data of a ConfigMap or Secret by key; None if the object does not exist."""
    objects = references.config_maps if kind == "configmap" else references.secrets
    obj = objects.get(name or "")
    if obj is None:
        return None
    if kind == "secret":
        return dict(decoded_data(obj))
    return {**(obj.get("data") or {}), **(obj.get("binaryData") or {})}
