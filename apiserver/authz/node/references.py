"""The references of pods and volumes to the objects that a node's kubelet needs."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mockube.apimachinery.pods import every_container, secret_names

SECRET, CONFIG_MAP, ACCOUNT, CLAIM, RESOURCE_CLAIM, POD, VOLUME, ATTACHMENT, SLICE, CERTIFICATE_REQUEST = (
    "secrets",
    "configmaps",
    "serviceaccounts",
    "persistentvolumeclaims",
    "resourceclaims",
    "pods",
    "persistentvolumes",
    "volumeattachments",
    "resourceslices",
    "podcertificaterequests",
)

Reference = tuple[str, str, str]
"""Resource, namespace and name."""
_Object = Mapping[str, Any]

_MIRROR: Final = "kubernetes.io/config.mirror"
_SECRET_FIELDS: Final = {
    "cephfs": ("secretRef",),
    "cinder": ("secretRef",),
    "flexVolume": ("secretRef",),
    "rbd": ("secretRef",),
    "scaleIO": ("secretRef",),
    "iscsi": ("secretRef",),
    "storageos": ("secretRef",),
    "csi": ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"),
}
"""The secret references of a volume that the kubelet reads; the others are for controllers."""
_WITH_OWN_NAMESPACE: Final = frozenset({"cinder", "storageos", "csi"})
"""Sources whose references have a namespace; others default to that of the claim."""


def of_pod(pod: _Object) -> Iterator[Reference]:
    """Yield the references of a pod. A mirror pod has only itself, because its node created it."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    namespace, name = metadata["namespace"], metadata["name"]
    yield POD, namespace, name
    if _MIRROR in (metadata.get("annotations") or {}):
        return
    references = [
        (ACCOUNT, spec.get("serviceAccountName")),
        *((SECRET, secret) for secret in secret_names(spec)),
        *(
            (CONFIG_MAP, config_map)
            for container in every_container(spec)
            for config_map in _config_maps_of_environment(container)
        ),
        *(
            reference
            for volume in spec.get("volumes") or ()
            for reference in _volume_references(volume, name)
        ),
        *((RESOURCE_CLAIM, claim) for claim in _resource_claims(pod)),
    ]
    yield from ((resource, namespace, other) for resource, other in references if other)


def _config_maps_of_environment(container: _Object) -> Iterator[Any]:
    for source in container.get("envFrom") or ():
        yield (source.get("configMapRef") or {}).get("name")
    for variable in container.get("env") or ():
        yield ((variable.get("valueFrom") or {}).get("configMapKeyRef") or {}).get("name")


def _volume_references(volume: _Object, pod: str) -> Iterator[tuple[str, Any]]:
    yield CONFIG_MAP, (volume.get("configMap") or {}).get("name")
    for projected in (volume.get("projected") or {}).get("sources") or ():
        yield CONFIG_MAP, (projected.get("configMap") or {}).get("name")
    yield CLAIM, (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if volume.get("ephemeral") is not None:
        yield CLAIM, f"{pod}-{volume['name']}"


def _resource_claims(pod: _Object) -> Iterator[Any]:
    status = pod.get("status") or {}
    generated_names = {
        entry["name"]: entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()
    }
    for claim in (pod.get("spec") or {}).get("resourceClaims") or ():
        yield claim.get("resourceClaimName") or generated_names.get(claim["name"])
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")


def claim_of(volume: _Object) -> Reference | None:
    """Return the claim that a persistent volume is bound to."""
    claim = (volume.get("spec") or {}).get("claimRef")
    return None if claim is None else (CLAIM, claim.get("namespace", ""), claim.get("name", ""))


def secrets_of_volume(volume: _Object) -> Iterator[Reference]:
    """Yield the Secrets that a kubelet needs for a persistent volume."""
    spec = volume.get("spec") or {}
    default = (spec.get("claimRef") or {}).get("namespace", "")
    azure = spec.get("azureFile") or {}
    if azure.get("secretName"):
        yield SECRET, azure.get("secretNamespace") or default, azure["secretName"]
    for source, fields in _SECRET_FIELDS.items():
        for field in fields:
            reference = (spec.get(source) or {}).get(field) or {}
            if reference.get("name"):
                own = reference.get("namespace", "")
                yield SECRET, own if source in _WITH_OWN_NAMESPACE else own or default, reference["name"]
