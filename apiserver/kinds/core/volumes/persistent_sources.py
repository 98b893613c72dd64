"""The volume sources of PersistentVolumes. Most have the rules of the sources of pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apiserver.kinds.common.checks import Check, all_of, optional, pointer, report, require
from mockube.apiserver.kinds.core.volumes import legacy, sources
from mockube.apiserver.kinds.core.volumes.projected import check_no_backsteps
from mockube.apiserver.kinds.core.volumes.sources import SOURCES

_LABEL: Final = report(names.check_dns1123_label)

_SECRET: Final = all_of(require("name"), require("namespace"))
_CHECKED_SECRET: Final = all_of(
    require("name", report(names.check_dns1123_subdomain)), require("namespace", _LABEL)
)


def _check_namespace(namespace: str, path: Path) -> Iterable[FieldError]:
    if not namespace:
        problem = "if the endpointnamespace is set, it must be a valid namespace name"
        return (errors.invalid(path, namespace, problem),)
    return _LABEL(namespace, path)


def _check_not_empty(value: str, path: Path) -> Iterator[FieldError]:
    if not value:
        yield errors.required(path)


_CSI_SECRETS: Final = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip

_CSI: Final = all_of(
    require("driver", sources.check_driver_name),
    require("volumeHandle"),
    *(pointer(name, _CHECKED_SECRET) for name in _CSI_SECRETS),
)

PERSISTENT_SOURCES: Final[Mapping[str, Check]] = {
    "hostPath": SOURCES["hostPath"],
    "gcePersistentDisk": SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": SOURCES["awsElasticBlockStore"],
    "glusterfs": all_of(
        require("endpoints"), require("path"), pointer("endpointsNamespace", _check_namespace)
    ),
    "flocker": SOURCES["flocker"],
    "nfs": SOURCES["nfs"],
    "rbd": SOURCES["rbd"],
    "quobyte": SOURCES["quobyte"],
    "cephfs": SOURCES["cephfs"],
    "iscsi": all_of(legacy.check_persistent_iscsi, pointer("secretRef", require("name"))),
    "cinder": all_of(require("volumeID"), pointer("secretRef", _SECRET)),
    "fc": SOURCES["fc"],
    "flexVolume": SOURCES["flexVolume"],
    "azureFile": all_of(
        require("secretName"), require("shareName"), pointer("secretNamespace", _check_not_empty)
    ),
    "vsphereVolume": SOURCES["vsphereVolume"],
    "photonPersistentDisk": SOURCES["photonPersistentDisk"],
    "portworxVolume": SOURCES["portworxVolume"],
    "azureDisk": SOURCES["azureDisk"],
    "scaleIO": SOURCES["scaleIO"],
    "local": require("path", check_no_backsteps),
    "storageos": all_of(
        require("volumeName", _LABEL), optional("volumeNamespace", _LABEL), pointer("secretRef", _SECRET)
    ),
    "csi": _CSI,
}
