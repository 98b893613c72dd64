"""Approve the requests of kubelets for client certificates, where the user is authorized to create them.

And remove requests that are no longer needed.
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
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import Loop, RequeueWithBackoff
from mockube.controller_manager.controllers.certificates.requests import (
    KUBELET_CLIENT,
    BadRequest,
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


def permissions_to_try(csr: ReadOnlyTree, request: RequestedCertificate) -> Iterator[str]:
    """The subresources of which any is enough for the approval."""
    spec = csr["spec"]
    if spec["signerName"] != KUBELET_CLIENT or kubelet_client_problem(request, spec.get("usages") or ()):
        return
    if spec.get("username", "") == request.common_name:
        yield _SELF
    yield _NODE


def review(csr: ReadOnlyTree, subresource: str) -> ReadOnlyTree:
    """The access review: may the requesting user create requests of this kind?"""
    spec = csr["spec"]
    attributes = {
        "group": CERTIFICATE_SIGNING_REQUESTS.group,
        "resource": CERTIFICATE_SIGNING_REQUESTS.plural,
        "verb": "create",
        "subresource": subresource,
        "version": "*",
    }
    named = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}
    requestor = {field: spec[name] for field, name in named.items() if spec.get(name)}
    return {
        "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {**requestor, "resourceAttributes": attributes},
    }


def approve(csr: ReadOnlyTree, subresource: str) -> ReadOnlyTree:
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
        self._loop = Loop(QUEUE, self._reconcile, workers=5, clock=context.clock, metrics=context.metrics)
        self._loop.limiter = RateLimiter(context.clock, RETRIES)
        self._requests = context.informers.of(CERTIFICATE_SIGNING_REQUESTS)
        self._requests.add_handler(self._on_change)

    async def run(self) -> None:
        await self._loop.run()

    def _on_change(self, change: Change) -> None:
        if change.new is not None and _is_undecided(change.new):
            self._loop.add(Key("", meta.name(change.new)))

    async def _reconcile(self, key: Key) -> timedelta | None:
        csr = self._requests.lister.get(*key)
        if csr is None or not _is_undecided(csr):
            return None
        try:
            tried = [*permissions_to_try(csr, parse(csr["spec"]["request"]))]
        except BadRequest as error:
            raise RequeueWithBackoff(f'unable to parse csr "{key.name}": {error}') from error
        for subresource in tried:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, review(csr, subresource))
            if answer["status"].get("allowed"):
                body = approve(csr, subresource)
                await self._client.update(CERTIFICATE_SIGNING_REQUESTS, body, subresource="approval")
                return None
        if tried:
            raise RequeueWithBackoff(
                f'recognized csr "{key.name}" as [{" ".join(tried)}] but subject access review was not approved'
            )
        return None


def _is_undecided(csr: ReadOnlyTree) -> bool:
    return not is_issued(csr) and not types_of_conditions(csr) & {"Approved", "Denied"}


CSR_APPROVING: Final = Runnable(
    name="certificatesigningrequest-approving-controller", service_account=ACCOUNT, build=Approver
)


# --- removing

PERIOD: Final = 3600.0
_DECIDED: Final = timedelta(hours=1)
_WAITING: Final = timedelta(hours=24)


def is_obsolete(csr: ReadOnlyTree, now: datetime) -> bool:
    """Whether it was decided or is pending for too long, or its certificate has expired."""
    csr_conditions = conditions.of(csr)
    issued = is_issued(csr)
    if not csr_conditions:
        return _is_older(meta.metadata(csr).get("creationTimestamp"), _WAITING, now)
    for condition in csr_conditions:
        updated = condition.get("lastUpdateTime")
        match condition["type"]:
            case "Denied" | "Failed":
                max_age = _DECIDED
            case "Approved":
                max_age = _DECIDED if issued else _WAITING
                if issued and _has_ended(csr["status"]["certificate"], now):
                    return True
            case _:
                continue
        if _is_older(updated, max_age, now):
            return True
    return False


def _is_older(time: str | None, span: timedelta, now: datetime) -> bool:
    return time is not None and now - parse_time(time) > span


def _has_ended(encoded: str, now: datetime) -> bool:
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
            await self._clock.sleep(PERIOD)

    async def _delete(self, csr: ReadOnlyTree) -> None:
        try:
            await self._client.delete(CERTIFICATE_SIGNING_REQUESTS, Key.of(csr), uid=meta.uid(csr))
        except NotFound:
            return
        except (ApiError, NoAnswer) as error:
            LOG.warning('unable to delete CSR "%s": %s', meta.name(csr), error)


CSR_CLEANER: Final = Runnable(
    name="certificatesigningrequest-cleaner-controller", service_account=ACCOUNT, build=Cleaner
)
