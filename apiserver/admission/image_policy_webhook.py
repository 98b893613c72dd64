"""ImagePolicyWebhook: a webhook reviews the images of each pod by ImageReviews."""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from mockube.apimachinery import meta, status
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.outgoing import OutgoingDependencies, Reviewer, ReviewFailed
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .configurations import ImagePolicySettings
from .plugin import POD, WRITE, Plugin, forbidden

LOG: Final = logging.getLogger(__name__)
MAX_CACHED_ANSWERS: Final = 1024
"""As upstream (plugin/pkg/admission/imagepolicy/admission.go)."""
MAX_KNOWN_SIZE: Final = 64 * 1024
"""Bytes of a review; the response to a longer one is not cached, to bound the memory."""
_VERSION: Final = "imagepolicy.k8s.io/v1alpha1"
_PREFIX: Final = "imagepolicywebhook.image-policy.k8s.io/"
_MARK: Final = ".image-policy.k8s.io/"
_EPHEMERAL: Final = "", "pods", "ephemeralcontainers"


class ImagePolicyWebhook(Plugin):
    operations = WRITE
    targets = frozenset({POD, _EPHEMERAL})

    def __init__(self, settings: ImagePolicySettings, outbound: OutgoingDependencies) -> None:
        self._settings = settings
        self._reviewer = Reviewer(
            endpoint=settings.endpoint,
            send=outbound.send,
            clock=outbound.clock.real,
            retry_seconds=settings.retry_seconds,
            kind="v1alpha1.ImageReview",
        )
        self._clock = outbound.clock
        self._answers: OrderedDict[bytes, tuple[float, Mapping[str, Any]]] = OrderedDict()

    async def validate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        spec = review_spec(pod, attributes)
        key = orjson.dumps(spec)
        answer = self._answer(key)
        if answer is None:
            try:
                answer = await self._call_webhook(spec)
            except ReviewFailed as error:
                self._fail(attributes, error)
                return
            self._cache_review(key, answer)
        for name, value in (answer.get("auditAnnotations") or {}).items():
            attributes.context.report.annotations[f"{_PREFIX}{name}"] = value
        if not answer.get("allowed"):
            reason = answer.get("reason")
            message = f"image policy webhook backend denied one or more images: {reason}" if reason else ""
            raise forbidden(attributes, message or "one or more images rejected by webhook backend")

    async def _call_webhook(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        review = {"kind": "ImageReview", "apiVersion": _VERSION, "metadata": {}, "spec": spec}
        return await self._reviewer.review(review | {"status": {"allowed": False}})

    def _fail(self, attributes: AdmissionAttributes, error: ReviewFailed) -> None:
        """Refuse the pod, or admit it with an audit annotation."""
        LOG.info("error contacting webhook backend: %s", error)
        if not self._settings.default_allow:
            refused = (
                status.generic(403, server_message=str(error)) if error.code == HTTPStatus.FORBIDDEN else None
            )
            raise refused or forbidden(attributes, str(error)) from error
        attributes.context.report.annotations[f"{_PREFIX}failed-open"] = "true"

    def _answer(self, key: bytes) -> Mapping[str, Any] | None:
        until, answer = self._answers.get(key, (0.0, None))
        if answer is None or until <= self._clock.monotonic():
            return None
        self._answers.move_to_end(key)
        return answer

    def _cache_review(self, key: bytes, answer: Mapping[str, Any]) -> None:
        settings = self._settings
        seconds = settings.allow_seconds if answer.get("allowed") else settings.deny_seconds
        if seconds <= 0 or len(key) > MAX_KNOWN_SIZE:
            return
        self._answers[key] = self._clock.monotonic() + seconds, answer
        self._answers.move_to_end(key)
        if len(self._answers) > MAX_CACHED_ANSWERS:
            self._answers.popitem(last=False)


def review_spec(pod: ReadOnlyTree, attributes: AdmissionAttributes) -> dict[str, Any]:
    """Return the spec of an ImageReview, without empty fields, as Go encodes it."""
    lists = ("ephemeralContainers",) if attributes.target == _EPHEMERAL else ("containers", "initContainers")
    containers = [
        {"image": container["image"]} if container.get("image") else {}
        for name in lists
        for container in pod["spec"].get(name) or ()
    ]
    annotations = {name: value for name, value in meta.annotations(pod).items() if _MARK in name}
    spec = {
        "containers": containers,
        "annotations": dict(sorted(annotations.items())),
        "namespace": attributes.namespace,
    }
    return {name: value for name, value in spec.items() if value}
