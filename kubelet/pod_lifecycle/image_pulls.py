"""Whether the images of a pod are on its node, or can be pulled: the decisions of a kubelet's image manager. Pure.

Upstream: pkg/kubelet/images/image_manager.go. A pull takes no time here. After one that failed, a kubelet looks at the pod
again when it notices the pod's sandbox, and then in the period of a pod worker whose pod has an error; each time it pulls the image,
or reports that it waits for its back-off.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.image_service import PullFailed, StoredImage
from mockube.kubelet.step_effects import EmitEvent

from .backoff import BACKOFF_RESET, pull_delay

SYNC_PERIOD: Final = timedelta(seconds=10)
RELIST_PERIOD: Final = timedelta(seconds=1)

ERR_IMAGE_PULL: Final = "ErrImagePull"
IMAGE_PULL_BACKOFF: Final = "ImagePullBackOff"
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
_CRI_ERRORS: Final = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}
"""The errors of a run-time that become reasons, by the beginning of their messages."""
PULL_REASONS: Final = frozenset({ERR_IMAGE_PULL, IMAGE_PULL_BACKOFF, ERR_IMAGE_NEVER_PULL, *_CRI_ERRORS})
_CHECKS_CREDENTIALS_SINCE: Final = 35
"""The minor version since which kubelets check whether a pod may use an image that another pod has pulled."""
_BYTES_PER_SECOND: Final = 60_000_000
_REQUEST_SECONDS: Final = 0.4
"""The speed of downloads and the duration of the requests before them, of which the message about a pull is computed."""


class EnsuredImage(Struct, frozen=True, kw_only=True):
    """The end of an attempt to have an image on the node."""

    events: tuple[EmitEvent, ...] = ()
    """Events about the container, without its path."""
    pod_events: tuple[EmitEvent, ...] = ()
    """Events about the pod."""
    reason: str = ""
    """Why the container waits; "" if the node has the image."""
    message: str = ""
    retry_at: datetime | None = None
    was_tried: bool = True
    """Whether this is the result of an attempt, and not of waiting for the next one."""


class PodImages(Protocol):
    """The images of one pod, during one step of it."""

    def ensure(self, container: ReadOnlyTree, restarts: int) -> EnsuredImage:
        """Have the image of a container on the node, before the run that is due."""

    def ensure_volumes(self, container: ReadOnlyTree) -> EnsuredImage:
        """Have the images of all volumes of the pod on the node; the result is about those that a container mounts."""

    def hold(self, container: ReadOnlyTree, restarts: int, ensured: EnsuredImage) -> None:
        """Note that the run of a container did not start yet, so that the result is also that of the next step."""


class _PresentImages:
    """Every image is on the node."""

    def ensure(self, container: ReadOnlyTree, _: int) -> EnsuredImage:
        return _present(container.get("image") or "")

    def ensure_volumes(self, _: ReadOnlyTree) -> EnsuredImage:
        return EnsuredImage()

    def hold(self, *_: object) -> None:
        pass


PRESENT_IMAGES: Final[PodImages] = _PresentImages()


def images_of(pod: ReadOnlyTree) -> set[str]:
    """Return the images of a pod's containers and volumes, as the pod names them."""
    containers = (container.get("image") for container in every_container(pod["spec"]))
    volumes = ((volume.get("image") or {}).get("reference") for volume in pod["spec"].get("volumes") or ())
    return {image for image in (*containers, *volumes) if image}


class FailedPull(Struct, frozen=True, kw_only=True):
    """The last pull of an image that failed."""

    at: datetime
    delay: timedelta = timedelta()
    """The time until the next pull."""
    problem: str = ""
    """Its reason and message."""


class PullState(Struct, frozen=True, kw_only=True):
    """What a kubelet remembers of the images of a pod between two steps."""

    next_sync: datetime | None = None
    """The time of the next attempt for the images that are not on the node."""
    failures: Mapping[str, FailedPull] = {}
    """By image."""
    results: Mapping[tuple[str, int], EnsuredImage] = {}
    """The results for runs that did not start yet, by the container's name and the number of restarts."""


NO_PULLS: Final = PullState()


class ImagesOfNode(Struct, frozen=True, kw_only=True):
    """The images of a node, and the registries."""

    find: Callable[[str], StoredImage | None]
    """Returns an image that is on the node."""
    pull: Callable[..., StoredImage]
    """Returns the image of a registry, with `has_credentials` for it or not; raises `PullFailed`."""
    has_credentials: Callable[[str], bool]
    """Returns whether the pod has credentials for the registry of an image."""
    kubelet_minor: int = 0


class PodPulls:
    """The pulls of one step of a pod: `PodImages`, and what to remember after the step."""

    def __init__(self, pod: ReadOnlyTree, state: PullState, images: ImagesOfNode, now: datetime) -> None:
        self._pod = pod
        self._state = state
        self._images = images
        self._now = now
        self.pulled: dict[str, StoredImage] = {}
        """The images that the step has pulled, by the names in the pod."""
        self._failures: dict[str, FailedPull] = {}
        self._results: dict[tuple[str, int], EnsuredImage] = {}
        self._volumes: dict[str, EnsuredImage] | None = None
        self._next_sync: datetime | None = None

    @property
    def state(self) -> PullState:
        """What to remember after the step."""
        waiting = images_of(self._pod).difference(self.pulled)
        failures = {
            image: failure
            for image, failure in {**self._state.failures, **self._failures}.items()
            if image in waiting
        }
        next_sync = self._next_sync or self._state.next_sync
        return PullState(next_sync=next_sync, failures=failures, results=self._results)

    def hold(self, container: ReadOnlyTree, restarts: int, ensured: EnsuredImage) -> None:
        self._results[container["name"], restarts] = ensured

    def ensure(self, container: ReadOnlyTree, restarts: int) -> EnsuredImage:
        result = self._state.results.get((container["name"], restarts))
        if result is not None:
            return result
        return self._ensure(container.get("image") or "", container.get("imagePullPolicy") or "IfNotPresent")

    def ensure_volumes(self, container: ReadOnlyTree) -> EnsuredImage:
        volumes = [volume for volume in self._pod["spec"].get("volumes") or () if "image" in volume]
        if not volumes:
            return EnsuredImage()
        events: tuple[EmitEvent, ...] = ()
        if self._volumes is None:
            self._volumes = {
                volume["name"]: self._ensure(source["reference"], source.get("pullPolicy") or "IfNotPresent")
                for volume in volumes
                if (source := volume["image"]).get("reference")
            }
            # The containers report the failures.
            events = tuple(
                event
                for ensured in self._volumes.values()
                for event in (ensured.events[:-1] if ensured.reason else ensured.events)
            )
        mounted = (mount["name"] for mount in container.get("volumeMounts") or ())
        failures = [
            ensured for name in mounted if (ensured := self._volumes.get(name)) is not None and ensured.reason
        ]
        if not failures:
            return EnsuredImage(pod_events=events)
        last = failures[-1]
        return EnsuredImage(
            events=tuple(ensured.events[-1] for ensured in failures if ensured.events),
            pod_events=events,
            reason=last.reason,
            message=last.message,
            retry_at=last.retry_at,
            was_tried=any(ensured.was_tried for ensured in failures),
        )

    def _ensure(self, image: str, policy: str) -> EnsuredImage:
        image_on_node = self.pulled.get(image) or self._images.find(image)
        if image_on_node is not None and image_on_node.is_local:
            return _present(image, kubelet_minor=self._images.kubelet_minor)
        if policy != "Always" and image_on_node is not None and self._may_use(image, image_on_node):
            return _present(image, kubelet_minor=self._images.kubelet_minor)
        failure, next_sync = self._failure(image), self._state.next_sync
        waits = next_sync is not None and self._now < next_sync and image in self._state.failures
        if policy == "Never":
            return self._never_pulled(image, next_sync if waits else None)
        if failure is not None and (waits or self._now < failure.at + failure.delay):
            return self._back_off(image, failure, next_sync if waits else None)
        return self._pull(image, failure)

    def _may_use(self, image: str, present: StoredImage) -> bool:
        """Return whether the pod may use an image for which another pod had the credentials."""
        return (
            not _checks_credentials(self._images.kubelet_minor)
            or not present.needs_credentials
            or self._images.has_credentials(image)
        )

    def _failure(self, image: str) -> FailedPull | None:
        failure = self._failures.get(image) or self._state.failures.get(image)
        is_recent = failure is not None and self._now - failure.at <= BACKOFF_RESET
        return failure if is_recent else None

    def _sync_again(self, image: str) -> datetime:
        """Return the time of the next attempt for an image that is not on the node."""
        retry_at = self._now + (SYNC_PERIOD if image in self._state.failures else RELIST_PERIOD)
        self._next_sync = retry_at if self._next_sync is None else min(self._next_sync, retry_at)
        return retry_at

    def _never_pulled(self, image: str, next_sync: datetime | None) -> EnsuredImage:
        message = f'Container image "{image}" is not present with pull policy of Never'
        if next_sync is None:
            self._failures[image] = FailedPull(at=self._now)
        event = EmitEvent("Warning", "ErrImageNeverPull", message)
        return self._not_pulled(image, ERR_IMAGE_NEVER_PULL, message, event, next_sync)

    def _back_off(self, image: str, failure: FailedPull, next_sync: datetime | None) -> EnsuredImage:
        back_off = f'Back-off pulling image "{image}"'
        event = EmitEvent("Normal", "BackOff", back_off)
        return self._not_pulled(image, IMAGE_PULL_BACKOFF, f"{back_off}: {failure.problem}", event, next_sync)

    def _not_pulled(
        self, image: str, reason: str, message: str, event: EmitEvent, next_sync: datetime | None
    ) -> EnsuredImage:
        """Return the result for an image that is not pulled now; events are recorded at each attempt, not while one is awaited."""
        if next_sync is not None:
            return EnsuredImage(reason=reason, message=message, retry_at=next_sync, was_tried=False)
        return EnsuredImage(
            events=(event, EmitEvent("Warning", "Failed", f"Error: {reason}")),
            reason=reason,
            message=message,
            retry_at=self._sync_again(image),
        )

    def _pull(self, image: str, failure: FailedPull | None) -> EnsuredImage:
        pulling_event = EmitEvent("Normal", "Pulling", f'Pulling image "{image}"')
        try:
            pulled_image = self._pulled_image(image)
        except PullFailed as error:
            reason, message = _reason_and_message(image, str(error))
            delay = pull_delay(timedelta(0) if failure is None else failure.delay)
            retry_at = self._sync_again(image)
            self._failures[image] = FailedPull(at=self._now, delay=delay, problem=f"{reason}: {message}")
            return EnsuredImage(
                events=(
                    pulling_event,
                    EmitEvent("Warning", "Failed", f'Failed to pull image "{image}": {error}'),
                    EmitEvent("Warning", "Failed", f"Error: {reason}"),
                ),
                reason=reason,
                message=message,
                retry_at=retry_at,
            )
        is_new = image not in self.pulled and self._images.find(image) is None
        self.pulled[image] = pulled_image
        seconds = _REQUEST_SECONDS + (pulled_image.size / _BYTES_PER_SECOND if is_new else 0)
        duration = format_duration(round(seconds * 1000) * 10**6)
        pulled_message = (
            f'Successfully pulled image "{image}" in {duration} ({duration} including waiting). '
            f"Image size: {pulled_image.size} bytes."
        )
        return EnsuredImage(events=(pulling_event, EmitEvent("Normal", "Pulled", pulled_message)))

    def _pulled_image(self, image: str) -> StoredImage:
        """Pull an image. Most need no credentials, so that those of the pod, which may have to be requested, are used only if needed."""
        try:
            return self._images.pull(image, has_credentials=False)
        except PullFailed:
            if not self._images.has_credentials(image):
                raise
        return self._images.pull(image, has_credentials=True)


def _checks_credentials(kubelet_minor: int) -> bool:
    """Return whether a kubelet checks them; one of an unknown version does."""
    return not 0 < kubelet_minor < _CHECKS_CREDENTIALS_SINCE


def _present(image: str, *, kubelet_minor: int = 0) -> EnsuredImage:
    access = " and can be accessed by the pod" if _checks_credentials(kubelet_minor) else ""
    message = f'Container image "{image}" already present on machine{access}'
    return EnsuredImage(events=(EmitEvent("Normal", "Pulled", message),))


def _reason_and_message(image: str, problem: str) -> tuple[str, str]:
    for reason, cause in _CRI_ERRORS.items():
        if problem.startswith(reason):
            return reason, f"image pull failed for {image} because {cause}{problem.removeprefix(reason)}"
    return ERR_IMAGE_PULL, problem
