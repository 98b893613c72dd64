"""The controllers that approve requests of kubelets for client certificates, and delete old requests.

A request is approved if its user is authorized to create requests of this kind.
"""

import base64
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.kinds import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import ReconcileLoop, RequeueWithBackoff
from mockube.controller_manager.controllers.certificates.requests import (
    KUBELET_CLIENT,
    BadCertificateRequest,
    RequestedCertificate,
    is_issued,
    kubelet_client_problem,
    parse,
    types_of_conditions,
)
from mockube.controller_manager.controllers.certificates.signing import ACCOUNT, QUEUE, RETRIES
from mockube.controller_manager.queue.workqueue import RateLimiter

LOG = logging.getLogger(__name__)

_SELF, _NODE = "selfnodeclient", "nodeclient"
MESSAGES: Final = {
    _SELF: "Auto approving self kubelet client certificate after SubjectAccessReview.",
    _NODE: "Auto approving kubelet client certificate after SubjectAccessReview.",
}


def recognized_subresources(csr: ReadOnlyTree, request: RequestedCertificate) -> Iterator[str]:
    """Yield the subresources for which authorization is checked; one permission is enough for the approval."""
    spec = csr["spec"]
    if spec["signerName"] != KUBELET_CLIENT or kubelet_client_problem(request, spec.get("usages") or ()):
        return
    if spec.get("username", "") == request.common_name:
        yield _SELF
    yield _NODE


def access_review(csr: ReadOnlyTree, subresource: str) -> ReadOnlyTree:
    """Return the SubjectAccessReview whether the requesting user may create requests of this kind."""
    spec = csr["spec"]
    attributes = {
        "group": CERTIFICATE_SIGNING_REQUESTS.group,
        "resource": CERTIFICATE_SIGNING_REQUESTS.plural,
        "verb": "create",
        "subresource": subresource,
        "version": "*",
    }
    fields = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}
    requestor = {field: spec[name] for field, name in fields.items() if spec.get(name)}
    return {
        "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {**requestor, "resourceAttributes": attributes},
    }


def approved_request(csr: ReadOnlyTree, subresource: str) -> ReadOnlyTree:
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": MESSAGES[subresource],
    }
    status: dict[str, Any] = {
        **(csr.get("status") or {}),
        "conditions": [*conditions.of(csr), condition],
    }
    return {**csr, "status": status}


class Approver:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._loop = ReconcileLoop(
            QUEUE, self._reconcile, workers=5, clock=context.clock, metrics=context.metrics
        )
        self._loop.limiter = RateLimiter(context.clock, RETRIES)
        self._requests = context.informers.of(CERTIFICATE_SIGNING_REQUESTS)
        self._requests.add_handler(self._on_change)

    async def run(self) -> None:
        await self._loop.run()

    def _on_change(self, change: Change) -> None:
        if change.new is not None and _is_pending(change.new):
            self._loop.add(Key("", meta.name(change.new)))

    async def _reconcile(self, key: Key) -> timedelta | None:
        csr = self._requests.lister.get(*key)
        if csr is None or not _is_pending(csr):
            return None
        try:
            subresources = [*recognized_subresources(csr, parse(csr["spec"]["request"]))]
        except BadCertificateRequest as error:
            raise RequeueWithBackoff(f'unable to parse csr "{key.name}": {error}') from error
        for subresource in subresources:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, access_review(csr, subresource))
            if answer["status"].get("allowed"):
                body = approved_request(csr, subresource)
                await self._client.update(CERTIFICATE_SIGNING_REQUESTS, body, subresource="approval")
                return None
        if subresources:
            raise RequeueWithBackoff(
                f'recognized csr "{key.name}" as [{" ".join(subresources)}] but subject access review was not approved'
            )
        return None


def _is_pending(csr: ReadOnlyTree) -> bool:
    return not is_issued(csr) and not types_of_conditions(csr) & {"Approved", "Denied"}


CSR_APPROVING: Final = Runnable(
    name="certificatesigningrequest-approving-controller", service_account=ACCOUNT, build=Approver
)


# --- cleanup

_CLEANUP_PERIOD: Final = 3600.0
_MAX_AGE_DECIDED: Final = timedelta(hours=1)
_MAX_AGE_PENDING: Final = timedelta(hours=24)


def is_obsolete(csr: ReadOnlyTree, now: datetime) -> bool:
    """Return whether a request was decided too long ago, is pending for too long, or its certificate has expired."""
    csr_conditions = conditions.of(csr)
    issued = is_issued(csr)
    if not csr_conditions:
        return _is_older(meta.metadata(csr).get("creationTimestamp"), _MAX_AGE_PENDING, now)
    for condition in csr_conditions:
        updated = condition.get("lastUpdateTime")
        match condition["type"]:
            case "Denied" | "Failed":
                max_age = _MAX_AGE_DECIDED
            case "Approved":
                max_age = _MAX_AGE_DECIDED if issued else _MAX_AGE_PENDING
                if issued and _is_expired(csr["status"]["certificate"], now):
                    return True
            case _:
                continue
        if _is_older(updated, max_age, now):
            return True
    return False


def _is_older(time: str | None, span: timedelta, now: datetime) -> bool:
    return time is not None and now - parse_time(time) > span


def _is_expired(encoded: str, now: datetime) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(base64.b64decode(encoded))
    except ValueError:
        return False
    return now > certificate.not_valid_after_utc


class Cleaner:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._requests = context.informers.of(CERTIFICATE_SIGNING_REQUESTS)

    async def run(self) -> None:
        await self._requests.wait_synced()
        while True:
            now = self._clock.now()
            for csr in self._requests.lister.all():
                if is_obsolete(csr, now):
                    await self._delete(csr)
            await self._clock.sleep(_CLEANUP_PERIOD)

    async def _delete(self, csr: ReadOnlyTree) -> None:
        try:
            await self._client.delete(CERTIFICATE_SIGNING_REQUESTS, Key.of(csr), uid=meta.uid(csr))
        except NotFound:
            return
        except (ApiError, NoResponse) as error:
            LOG.warning('unable to delete CSR "%s": %s', meta.name(csr), error)


CSR_CLEANER: Final = Runnable(
    name="certificatesigningrequest-cleaner-controller", service_account=ACCOUNT, build=Cleaner
)
