"""What a kubelet checks before it starts the containers of a pod, in its order and with its messages. Pure.

First the volumes of the whole pod are mounted. Then each container is created when its turn comes, also at a restart: its image,
its user, its mounts and its environment are checked. A check that fails is repeated later.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from typing import Any, Final, Protocol

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.images import InvalidImage, parse_image
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import CONFIG_MAPS, SECRETS
from mockube.client.verbs import AnyResource
from mockube.container_runtime.config.environment import References, decoded_data, security_context
from mockube.container_runtime.config.projections import NOT_ISSUED, PodCredential, trust_anchors
from mockube.container_runtime.config.volumes import config_error, missing_token, mounted_volumes

CONFIG_ERROR: Final = "CreateContainerConfigError"
CREATE_ERROR: Final = "CreateContainerError"
INVALID_IMAGE_NAME: Final = "InvalidImageName"


class ReferencedObjects(Protocol):
    """The objects that a pod refers to."""

    def config_map(self, name: str) -> ReadOnlyTree | None: ...

    def secret(self, name: str) -> ReadOnlyTree | None: ...

    def trust_bundles(self) -> Iterable[ReadOnlyTree]:
        """Return all ClusterTrustBundles."""

    def credential(self, volume: str, index: int) -> PodCredential:
        """Return the key and the certificates of a source of a volume, or why there are none."""

    @property
    def attaches_volumes(self) -> bool:
        """Whether volumes are attached to nodes. Otherwise nobody may do that, and pods do not wait for it."""

    def cached_object(self, resource: AnyResource, name: str) -> ReadOnlyTree | None:
        """Return an object of the pod's storage from a cache."""


class _NoObjects:
    attaches_volumes = False

    def config_map(self, _: str) -> ReadOnlyTree | None:
        return None

    def secret(self, _: str) -> ReadOnlyTree | None:
        return None

    def trust_bundles(self) -> Iterable[ReadOnlyTree]:
        return ()

    def credential(self, _volume: str, _index: int) -> PodCredential:
        return PodCredential(problem=NOT_ISSUED)

    def cached_object(self, _resource: AnyResource, _name: str) -> ReadOnlyTree | None:
        return None


NO_OBJECTS: Final[ReferencedObjects] = _NoObjects()


class _AnyKeys(dict[str, Any]):
    def __contains__(self, _: object) -> bool:
        return True


_ANY_OBJECT: Final[ReadOnlyTree] = {}
"""An object that nobody knows; each key counts as present."""


class PossibleObjects:
    """The objects of a namespace in which a program that is not simulated may have created the missing ones."""

    def __init__(self, objects: ReferencedObjects, resources: Collection[AnyResource]) -> None:
        """`resources` are those of which the program may create objects."""
        self._objects = objects
        self._config_map = _ANY_OBJECT if CONFIG_MAPS in resources else None
        self._secret = _ANY_OBJECT if SECRETS in resources else None

    def config_map(self, name: str) -> ReadOnlyTree | None:
        return self._objects.config_map(name) or self._config_map

    def secret(self, name: str) -> ReadOnlyTree | None:
        return self._objects.secret(name) or self._secret

    def trust_bundles(self) -> Iterable[ReadOnlyTree]:
        return self._objects.trust_bundles()

    def credential(self, volume: str, index: int) -> PodCredential:
        return self._objects.credential(volume, index)

    @property
    def attaches_volumes(self) -> bool:
        return self._objects.attaches_volumes

    def cached_object(self, resource: AnyResource, name: str) -> ReadOnlyTree | None:
        return self._objects.cached_object(resource, name)


class StartFailure(Struct, frozen=True, kw_only=True):
    """Why a container is not created: the reason and message of its waiting state, and what its events report."""

    reason: str
    message: str
    events: tuple[tuple[str, str], ...]
    """The reasons and the messages of the Warning events."""


def pod_reference(pod: ReadOnlyTree) -> str:
    """Return a pod as a kubelet's messages name it: NAME_NAMESPACE(UID)."""
    return f"{meta.name(pod)}_{meta.namespace(pod)}({kubelet_uid(pod)})"


# --- the volumes of a pod


def mount_failures(pod: ReadOnlyTree, objects: ReferencedObjects) -> dict[str, str]:
    """Return the message of each volume that cannot be mounted, by the volume's name."""
    volumes = pod["spec"].get("volumes")
    if not volumes:
        return {}
    mounted = mounted_names(pod)
    failures = {
        volume["name"]: volume_failure(pod, volume, objects)
        for volume in volumes
        if volume["name"] in mounted
    }
    return {name: message for name, message in failures.items() if message}


def mounted_names(pod: ReadOnlyTree) -> set[str]:
    """Return the names of the volumes that containers of the pod mount."""
    return {
        mount["name"]
        for container in every_container(pod["spec"])
        for mount in container.get("volumeMounts") or ()
    }


def volume_failure(pod: ReadOnlyTree, volume: ReadOnlyTree, objects: ReferencedObjects) -> str:
    """Return why the ConfigMaps, the Secrets or the fields of the pod in a volume cannot be read; "" if they can."""
    projected = volume.get("projected")
    if projected is None:
        return next(_source_failures(pod, volume, objects), "")
    messages = [
        message
        for index, source in enumerate(projected.get("sources") or ())
        for message in (
            *_source_failures(pod, source, objects),
            *_certificate_failures(volume["name"], index, source, objects),
        )
    ]
    distinct = [*dict.fromkeys(messages)]
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


def _source_failures(pod: ReadOnlyTree, source: ReadOnlyTree, objects: ReferencedObjects) -> Iterator[str]:
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        if problem := _missing_container(pod, item.get("resourceFieldRef")):
            yield problem
    for field, prefix in (("configMap", "configmap references non-existent config key"), _SECRET):
        selector = source.get(field)
        if not selector or selector.get("optional"):
            continue
        name = selector.get("secretName") or selector.get("name") or ""
        keys = _config_map_keys(name, objects) if field == "configMap" else _secret_keys(name, objects)
        if keys is None:
            yield f'{field.lower()} "{name}" not found'
            continue
        items = selector.get("items") or ()
        missing = next((item["key"] for item in items if item["key"] not in keys), None)
        if missing is not None:
            yield f"{prefix}: {missing}"


def _certificate_failures(
    volume: str, index: int, source: ReadOnlyTree, objects: ReferencedObjects
) -> Iterator[str]:
    if bundle := source.get("clusterTrustBundle"):
        _, problem = trust_anchors(bundle, objects.trust_bundles())
        if problem:
            yield problem
    if source.get("podCertificate") and (problem := objects.credential(volume, index).problem):
        yield problem


_SECRET: Final = ("secret", "references non-existent secret key")


def unmounted_volume(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> tuple[str, str]:
    """Return a container's first volume that cannot be mounted, also for lack of a token, and the reason; ("", "") if all can."""
    for volume in mounted_volumes(pod, container):
        message = volume_failure(pod, volume, references) or missing_token(pod, volume, references)
        if message:
            return volume["name"], message
    return "", ""


def missing_pull_secrets(pod: ReadOnlyTree, objects: ReferencedObjects) -> list[str]:
    """Return the names of the pull secrets that do not exist; the pod starts without them."""
    names = [reference.get("name") or "" for reference in pod["spec"].get("imagePullSecrets") or ()]
    return [name for name in names if name and objects.secret(name) is None]


# --- one container


def start_failure(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    objects: ReferencedObjects,
    image_user: int | str | None = None,
    *,
    has_command: bool = True,
) -> StartFailure | None:
    """Return why a container cannot be created now; None if it can. It cannot if neither it nor its image `has_command`."""
    image = container.get("image") or ""
    try:
        parse_image(image)
    except InvalidImage as error:
        problem = (
            f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {error}'
        )
        events = (("InspectFailed", problem), ("Failed", f"Error: {INVALID_IMAGE_NAME}"))
        return StartFailure(reason=INVALID_IMAGE_NAME, message=problem, events=events)
    message = (
        environment_failure(pod, container, objects)
        or config_error(pod, container)
        or identity_failure(pod, container, image_user=image_user)
    )
    if not message and not has_command:
        container_id = sha256(f"{meta.uid(pod)}/{container['name']}".encode()).hexdigest()
        problem = f"failed to generate container {quote(container_id)} spec: failed to generate spec: no command specified"
        return StartFailure(reason=CREATE_ERROR, message=problem, events=(("Failed", f"Error: {problem}"),))
    if not message:
        return None
    return StartFailure(reason=CONFIG_ERROR, message=message, events=(("Failed", f"Error: {message}"),))


def identity_failure(
    pod: ReadOnlyTree, container: ReadOnlyTree, *, image_user: int | str | None = None
) -> str:
    """Return why the container, which must not run as root, would; "" if it may run.

    Nobody knows the user of an image that is not in the table of images: None counts as another user than root.
    """
    context = security_context(pod, container)
    if not context.get("runAsNonRoot"):
        return ""
    user = context.get("runAsUser")
    reference = f'(pod: "{pod_reference(pod)}", container: {container["name"]})'
    if user is None and image_user == 0:
        return f"container has runAsNonRoot and image will run as root {reference}"
    if user is None and isinstance(image_user, str):
        return (
            f"container has runAsNonRoot and image has non-numeric user ({image_user}), "
            f"cannot verify user is non-root {reference}"
        )
    return f"container's runAsUser breaks non-root policy {reference}" if user == 0 else ""


def environment_failure(pod: ReadOnlyTree, container: ReadOnlyTree, objects: ReferencedObjects) -> str:
    """Return why a variable of the environment cannot be set; "" if all can."""
    failures = chain(_missing_sources(container, objects), _value_failures(pod, container, objects))
    return next(failures, "")


def _missing_sources(container: ReadOnlyTree, objects: ReferencedObjects) -> Iterator[str]:
    for source in container.get("envFrom") or ():
        for field, find_keys in (("configMapRef", _config_map_values), ("secretRef", _secret_keys)):
            selector = source.get(field)
            if selector and not selector.get("optional"):
                name = selector.get("name") or ""
                if find_keys(name, objects) is None:
                    yield f'{field.removesuffix("Ref").lower()} "{name}" not found'


def _value_failures(pod: ReadOnlyTree, container: ReadOnlyTree, objects: ReferencedObjects) -> Iterator[str]:
    for entry in container.get("env") or ():
        value = entry.get("valueFrom") or {}
        if problem := _missing_container(pod, value.get("resourceFieldRef")):
            yield problem
        for field, kind, find_keys in (
            ("configMapKeyRef", "ConfigMap", _config_map_values),
            ("secretKeyRef", "Secret", _secret_keys),
        ):
            selector = value.get(field)
            if not selector or selector.get("optional"):
                continue
            name, keys = selector.get("name") or "", find_keys(selector.get("name") or "", objects)
            if keys is None:
                yield f'{kind.lower()} "{name}" not found'
            elif selector["key"] not in keys:
                yield f"couldn't find key {selector['key']} in {kind} {meta.namespace(pod)}/{name}"


def _missing_container(pod: ReadOnlyTree, selector: ReadOnlyTree | None) -> str:
    """Return the problem of a resource of a container that the pod does not have; "" if there is none."""
    name = (selector or {}).get("containerName")
    if not name:
        return ""
    spec = pod["spec"]
    containers = (*spec["containers"], *(spec.get("initContainers") or ()))
    return "" if any(other["name"] == name for other in containers) else f"container {name} not found"


def _config_map_values(name: str, objects: ReferencedObjects) -> Mapping[str, Any] | None:
    """Return the texts of a ConfigMap; variables cannot have its binary data."""
    config_map = objects.config_map(name)
    if config_map is _ANY_OBJECT:
        return _AnyKeys()
    return None if config_map is None else config_map.get("data") or {}


def _config_map_keys(name: str, objects: ReferencedObjects) -> Mapping[str, Any] | None:
    config_map = objects.config_map(name)
    if config_map is None:
        return None
    if config_map is _ANY_OBJECT:
        return _AnyKeys()
    return {**(config_map.get("data") or {}), **(config_map.get("binaryData") or {})}


def _secret_keys(name: str, objects: ReferencedObjects) -> Mapping[str, Any] | None:
    secret = objects.secret(name)
    if secret is _ANY_OBJECT:
        return _AnyKeys()
    return None if secret is None else decoded_data(secret)
