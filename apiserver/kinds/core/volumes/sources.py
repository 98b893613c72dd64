"""The sources of volumes in pods and of PersistentVolumes: their validation, and the defaults of those in pods.

The pull policy of an image as a volume has the default of containers, in `pod/defaults.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.resource_names import check_not_negative

from . import legacy, projected
from .claim_spec import check_claim_template

_LABEL: Final = checks.report(names.check_dns1123_label)
_PARTITION: Final = checks.field(
    "partition",
    checks.require_that(lambda number: 0 <= number <= 255, "must be between 1 and 255, inclusive"),
    absent=0,
)
"""0 is the whole disk. Upstream's message does not mention it."""
_NAMED_SECRET: Final = checks.pointer("secretRef", checks.require("name"))
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


# --- single sources


def _check_empty_dir(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and any(check_not_negative(limit, path)):
        detail = "SizeLimit field must be a valid resource quantity"
        yield errors.forbidden(path.child("sizeLimit"), detail)
    yield from _EMPTY_DIR_MODE(source, path)


_EMPTY_DIR_MODE: Final = checks.pointer(
    "mode",
    checks.require_that(
        lambda mode: 0 <= mode <= 0o1777, "must be a number between 0 and 01777 (octal), both inclusive"
    ),
)

_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip


def _check_host_path(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the path, and the type if there is a path."""
    yield from checks.require("path", projected.check_no_backsteps)(source, path)
    if source.get("path"):
        yield from checks.pointer("type", checks.one_of(*_HOST_PATH_TYPES))(source, path)


_NFS: Final = checks.all_of(
    checks.require("server"),
    checks.require("path"),
    checks.field(
        "path", checks.require_that(lambda path: path.startswith("/"), "must be an absolute path"), absent=""
    ),
)
_STORAGE_OS: Final = checks.all_of(
    checks.require("volumeName", _LABEL), checks.optional("volumeNamespace", _LABEL), _NAMED_SECRET
)


def check_driver_name(name: str, path: Path) -> Iterator[FieldError]:
    """Check the name of a CSI driver. Its case is ignored."""
    yield from checks.max_bytes(63)(name, path)
    for problem in names.check_dns1123_subdomain(name.lower()):
        yield errors.invalid(path, name, problem)


def _check_publish_secret(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the reference to a secret. As upstream, an invalid name is reported at the path of the source."""
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield errors.required(path.child("nodePublishSecretRef", "name"))
    elif secret is not None:
        yield from checks.report(names.check_dns1123_subdomain)(secret["name"], path.child("name"))


def _check_image(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from checks.require("pullPolicy", checks.one_of(*PULL_POLICIES))(source, path)


SOURCES: Final[Mapping[str, Check]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "gitRepo": checks.all_of(
        checks.require("repository"), checks.field("directory", projected.check_descending, absent="")
    ),
    "gcePersistentDisk": checks.all_of(checks.require("pdName"), _PARTITION),
    "awsElasticBlockStore": checks.all_of(checks.require("volumeID"), _PARTITION),
    "secret": checks.all_of(checks.require("secretName"), projected.keys_and_mode),
    "nfs": _NFS,
    "iscsi": legacy.check_iscsi,
    "glusterfs": checks.all_of(checks.require("endpoints"), checks.require("path")),
    "flocker": legacy.check_flocker,
    "persistentVolumeClaim": checks.require("claimName"),
    "rbd": checks.all_of(checks.require("monitors"), checks.require("image")),
    "cinder": checks.all_of(checks.require("volumeID"), _NAMED_SECRET),
    "cephfs": checks.require("monitors"),
    "quobyte": legacy.check_quobyte,
    "downwardAPI": projected.check_downward,
    "fc": legacy.check_fc,
    "flexVolume": legacy.check_flex,
    "configMap": checks.all_of(checks.require("name"), projected.keys_and_mode),
    "azureFile": checks.all_of(checks.require("secretName"), checks.require("shareName")),
    "vsphereVolume": checks.require("volumePath"),
    "photonPersistentDisk": checks.require("pdID"),
    "portworxVolume": checks.require("volumeID"),
    "azureDisk": legacy.check_azure_disk,
    "storageos": _STORAGE_OS,
    "projected": projected.check_projected,
    "scaleIO": checks.all_of(
        checks.require("gateway"), checks.require("system"), checks.require("volumeName")
    ),
    "csi": checks.all_of(checks.require("driver", check_driver_name), _check_publish_secret),
    "ephemeral": checks.require("volumeClaimTemplate", check_claim_template),
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

_SECRET: Final = checks.all_of(checks.require("name"), checks.require("namespace"))
_CHECKED_SECRET: Final = checks.all_of(
    checks.require("name", checks.report(names.check_dns1123_subdomain)), checks.require("namespace", _LABEL)
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

_CSI: Final = checks.all_of(
    checks.require("driver", check_driver_name),
    checks.require("volumeHandle"),
    *(checks.pointer(name, _CHECKED_SECRET) for name in _CSI_SECRETS),
)

PERSISTENT_SOURCES: Final[Mapping[str, Check]] = {
    "hostPath": SOURCES["hostPath"],
    "gcePersistentDisk": SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": SOURCES["awsElasticBlockStore"],
    "glusterfs": checks.all_of(
        checks.require("endpoints"),
        checks.require("path"),
        checks.pointer("endpointsNamespace", _check_namespace),
    ),
    "flocker": SOURCES["flocker"],
    "nfs": SOURCES["nfs"],
    "rbd": SOURCES["rbd"],
    "quobyte": SOURCES["quobyte"],
    "cephfs": SOURCES["cephfs"],
    "iscsi": legacy.persistent_iscsi(""),
    "cinder": checks.all_of(checks.require("volumeID"), checks.pointer("secretRef", _SECRET)),
    "fc": SOURCES["fc"],
    "flexVolume": SOURCES["flexVolume"],
    "azureFile": checks.all_of(
        checks.require("secretName"),
        checks.require("shareName"),
        checks.pointer("secretNamespace", _check_not_empty),
    ),
    "vsphereVolume": SOURCES["vsphereVolume"],
    "photonPersistentDisk": SOURCES["photonPersistentDisk"],
    "portworxVolume": SOURCES["portworxVolume"],
    "azureDisk": SOURCES["azureDisk"],
    "scaleIO": SOURCES["scaleIO"],
    "local": checks.require("path", projected.check_no_backsteps),
    "storageos": checks.all_of(
        checks.require("volumeName", _LABEL),
        checks.optional("volumeNamespace", _LABEL),
        checks.pointer("secretRef", _SECRET),
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
