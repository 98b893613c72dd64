"""The sources of volumes in pods and of PersistentVolumes: their validation, and the defaults of those in pods.

The pull policy of an image as a volume has the default of containers, in `pod/defaults.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.checks import (
    Check,
    all_of,
    field,
    max_bytes,
    one_of,
    optional,
    pointer,
    report,
    require,
    require_that,
)
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.resource_names import check_not_negative
from mockube.apiserver.kinds.core.volumes import legacy
from mockube.apiserver.kinds.core.volumes.claim_spec import check_claim_template
from mockube.apiserver.kinds.core.volumes.projected import (
    check_descending,
    check_downward,
    check_no_backsteps,
    check_projected,
    keys_and_mode,
)

_LABEL: Final = report(names.check_dns1123_label)
_PARTITION: Final = field(
    "partition",
    require_that(lambda number: 0 <= number <= 255, "must be between 1 and 255, inclusive"),
    absent=0,
)
"""0 is the whole disk. Upstream's message does not mention it."""
_NAMED_SECRET: Final = pointer("secretRef", require("name"))
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


# --- single sources


def _check_empty_dir(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and any(check_not_negative(limit, path)):
        detail = "SizeLimit field must be a valid resource quantity"
        yield errors.forbidden(path.child("sizeLimit"), detail)
    yield from _EMPTY_DIR_MODE(source, path)


_EMPTY_DIR_MODE: Final = pointer(
    "mode",
    require_that(
        lambda mode: 0 <= mode <= 0o1777, "must be a number between 0 and 01777 (octal), both inclusive"
    ),
)

_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip


def _check_host_path(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the path, and the type if there is a path."""
    yield from require("path", check_no_backsteps)(source, path)
    if source.get("path"):
        yield from pointer("type", one_of(*_HOST_PATH_TYPES))(source, path)


_NFS: Final = all_of(
    require("server"),
    require("path"),
    field("path", require_that(lambda path: path.startswith("/"), "must be an absolute path"), absent=""),
)
_STORAGE_OS: Final = all_of(require("volumeName", _LABEL), optional("volumeNamespace", _LABEL), _NAMED_SECRET)


def check_driver_name(name: str, path: Path) -> Iterator[FieldError]:
    """Check the name of a CSI driver. Its case is ignored."""
    yield from max_bytes(63)(name, path)
    for problem in names.check_dns1123_subdomain(name.lower()):
        yield errors.invalid(path, name, problem)


def _check_publish_secret(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the reference to a secret. As upstream, an invalid name is reported at the path of the source."""
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield errors.required(path.child("nodePublishSecretRef", "name"))
    elif secret is not None:
        yield from report(names.check_dns1123_subdomain)(secret["name"], path.child("name"))


def _check_image(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from require("pullPolicy", one_of(*PULL_POLICIES))(source, path)


SOURCES: Final[Mapping[str, Check]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "gitRepo": all_of(require("repository"), field("directory", check_descending, absent="")),
    "gcePersistentDisk": all_of(require("pdName"), _PARTITION),
    "awsElasticBlockStore": all_of(require("volumeID"), _PARTITION),
    "secret": all_of(require("secretName"), keys_and_mode),
    "nfs": _NFS,
    "iscsi": legacy.check_iscsi,
    "glusterfs": all_of(require("endpoints"), require("path")),
    "flocker": legacy.check_flocker,
    "persistentVolumeClaim": require("claimName"),
    "rbd": all_of(require("monitors"), require("image")),
    "cinder": all_of(require("volumeID"), _NAMED_SECRET),
    "cephfs": require("monitors"),
    "quobyte": legacy.check_quobyte,
    "downwardAPI": check_downward,
    "fc": legacy.check_fc,
    "flexVolume": legacy.check_flex,
    "configMap": all_of(require("name"), keys_and_mode),
    "azureFile": all_of(require("secretName"), require("shareName")),
    "vsphereVolume": require("volumePath"),
    "photonPersistentDisk": require("pdID"),
    "portworxVolume": require("volumeID"),
    "azureDisk": legacy.check_azure_disk,
    "storageos": _STORAGE_OS,
    "projected": check_projected,
    "scaleIO": all_of(require("gateway"), require("system"), require("volumeName")),
    "csi": all_of(require("driver", check_driver_name), _check_publish_secret),
    "ephemeral": require("volumeClaimTemplate", check_claim_template),
    "image": _check_image,
}

_INNER_PATHS: Final = {"gcePersistentDisk": "persistentDisk"}
_REFUSED_PATHS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""The names of sources in upstream's errors: in errors of their fields, and in errors of a second source."""


def check_source(
    volume: ReadOnlyTree, path: Path, sources: Mapping[str, Check] = SOURCES, unlimited: str = ""
) -> Iterator[FieldError]:
    """Check the source of a volume. Further sources are refused, except the `unlimited` one."""
    present = [name for name in sources if volume.get(name) is not None]
    if not present:
        yield errors.required(path, "must specify a volume type")
    for index, name in enumerate(present):
        if index and name != unlimited:
            detail = "may not specify more than 1 volume type"
            yield errors.forbidden(path.child(_REFUSED_PATHS.get(name, name)), detail)
        else:
            yield from sources[name](volume[name], path.child(_INNER_PATHS.get(name, name)))


# --- sources of PersistentVolumes

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
    require("driver", check_driver_name),
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
    "iscsi": legacy.persistent_iscsi(""),
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


# --- defaults

_DEFAULT_MODE: Final = 0o644


def _default_source(volume: Tree) -> None:
    """Make a volume without a source an empty directory."""
    if len(volume) == 1:
        volume["emptyDir"] = {}


DEFAULTS: Final = defaults_table(
    "io.k8s.api.core.v1",
    {
        "Volume": _default_source,
        "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "kind": "Shared"},
        "ConfigMapVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "DownwardAPIVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "HostPathVolumeSource": {"type": ""},
        "ProjectedVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "SecretVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    },
)
