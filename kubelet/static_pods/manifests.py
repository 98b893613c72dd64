"""Reads the manifests of static pods, and makes the mirror pods of them. Pure."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD, NAMESPACE_DEFAULT
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

FOLDER: Final = "/etc/kubernetes/manifests"
"""The `staticPodPath` that kubeadm sets."""
ANNOTATION_HASH: Final = "kubernetes.io/config.hash"
ANNOTATION_SEEN: Final = "kubernetes.io/config.seen"
ANNOTATION_SOURCE: Final = "kubernetes.io/config.source"
MAX_BYTES: Final = 512 << 10
"""A pod with more does not fit into the API. A kubelet reads 10 MiB, but here all nodes share an event loop."""
MAX_FILES: Final = 200
"""How many manifests of a node are read: more pods than a node has."""
_DIGEST_BYTES: Final = 16
_TOLERATION: Final = {"operator": "Exists", "effect": "NoExecute"}


class ManifestError(ValueError):
    """A manifest has no static pod; the message is a kubelet's."""


def static_pod(data: bytes, path: str, node: str) -> Tree:
    """Return the pod of a manifest with a kubelet's defaults; raise `ManifestError`."""
    if len(data) > MAX_BYTES:
        raise ManifestError(f"{path}: the file is too large: {len(data)} bytes, at most {MAX_BYTES}")
    try:
        tree = load(data).tree
    except YamlError as error:
        raise ManifestError(f"{path}: couldn't parse as pod({error}), please check config file") from error
    if not isinstance(tree, dict) or not tree.get("kind"):
        raise ManifestError(
            f"{path}: couldn't parse as pod(Object 'Kind' is missing), please check config file"
        )
    if (tree["kind"], tree.get("apiVersion")) != ("Pod", "v1"):
        kind = f"{tree.get('apiVersion')}, Kind={tree['kind']}"
        raise ManifestError(f"{path}: couldn't parse as pod(invalid pod: {kind}), please check config file")
    metadata, spec = tree.get("metadata"), tree.get("spec")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise ManifestError("invalid pod: name is needed for the pod")
    if not isinstance(spec, dict) or not _has_shape(metadata, spec):
        raise ManifestError(f"{path}: couldn't parse as pod(invalid pod), please check config file")
    for reference in _references(spec):
        raise ManifestError(f"static pods may not reference {reference}")
    return _with_defaults(metadata, spec, path, node)


def _has_shape(metadata: ReadOnlyTree, spec: ReadOnlyTree) -> bool:
    """Return whether what is read here has the types of a pod; the API server checks the rest."""
    maps = (metadata.get(name) for name in ("annotations", "labels"))
    lists = [spec.get(name) for name in ("containers", "initContainers", "volumes", "tolerations")]
    return (
        all(each is None or isinstance(each, dict) for each in maps)
        and all(each is None or isinstance(each, list) for each in lists)
        and all(isinstance(entry, dict) for each in lists for entry in each or ())
        and isinstance(metadata.get("namespace") or "", str)
    )


def _references(spec: ReadOnlyTree) -> Iterator[str]:
    """Yield the kinds of objects of the API to which a pod refers: a kubelet may run it without an API server."""
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        yield "serviceaccounts"
    for volume in spec.get("volumes") or ():
        for field, resource in _VOLUMES.items():
            if volume.get(field):
                yield resource
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for source in (*_parts(container, "envFrom"), *_sources_of_variables(container)):
            for field, resource in _VARIABLES.items():
                if source.get(field):
                    yield resource
    if spec.get("resourceClaims"):
        yield "resourceclaims"


_VOLUMES: Final = {
    "configMap": "configmaps",
    "secret": "secrets",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims",
}
_VARIABLES: Final = {
    "configMapRef": "configmaps",
    "secretRef": "secrets",
    "configMapKeyRef": "configmaps",
    "secretKeyRef": "secrets",
}


def _parts(container: ReadOnlyTree, field: str) -> list[ReadOnlyTree]:
    entries = container.get(field)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _sources_of_variables(container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    for variable in _parts(container, "env"):
        if isinstance(source := variable.get("valueFrom"), dict):
            yield source


def _with_defaults(metadata: Tree, spec: Tree, path: str, node: str) -> Tree:
    content = msgspec.json.encode((metadata, spec, node, path), order="sorted")
    digest = blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION_HASH: digest, ANNOTATION_SOURCE: "file"}
    tolerations = spec.get("tolerations") or []
    if _TOLERATION not in tolerations:
        tolerations = [*tolerations, _TOLERATION]
    optional = {name: metadata[name] for name in ("labels", "finalizers") if metadata.get(name)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-{node.lower()}",
            "namespace": metadata.get("namespace") or NAMESPACE_DEFAULT,
            **optional,
            "annotations": annotations,
        },
        "spec": {**spec, "nodeName": node, "tolerations": tolerations},
    }


def hash_of(pod: ReadOnlyTree) -> str:
    """Return the hash of a static pod, or of the one that a mirror pod shows."""
    return meta.annotations(pod).get(ANNOTATION_HASH, "")


def is_mirror(pod: ReadOnlyTree) -> bool:
    return ANNOTATION_MIRROR_POD in meta.annotations(pod)


def mirror_pod(pod: Mapping[str, Any], node: ReadOnlyTree, seen: str) -> Tree:
    """Return the mirror pod of a static pod, which its node owns. `seen` is when the kubelet first had the manifest."""
    metadata = pod["metadata"]
    annotations = {**metadata["annotations"], ANNOTATION_SEEN: seen, ANNOTATION_MIRROR_POD: hash_of(pod)}
    owner = {
        "apiVersion": "v1", "kind": "Node", "name": meta.name(node), "uid": meta.uid(node), "controller": True
    }  # fmt: skip
    return {**pod, "metadata": {**metadata, "annotations": annotations, "ownerReferences": [owner]}}
