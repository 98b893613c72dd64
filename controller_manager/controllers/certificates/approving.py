"""The controller that approves requests of kubelets for client certificates.

A request is approved if its user is authorized to create requests of this kind.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.kinds import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from mockube.client.queue.reconcile_loop import ReconcileLoop, RequeueWithBackoff
from mockube.client.queue.workqueue import RateLimiter
from mockube.client.resources import Key
from mockube.controller_manager.control.runnable import Context, Runnable

from . import requests
from .requests import BadCertificateRequest, RequestedCertificate
from .signing import ACCOUNT, QUEUE, RETRIES

_SELF, _NODE = "selfnodeclient", "nodeclient"
MESSAGES: Final = {
    _SELF: "Auto approving self kubelet client certificate after SubjectAccessReview.",
    _NODE: "Auto approving kubelet client certificate after SubjectAccessReview.",
}


def recognized_subresources(csr: ReadOnlyTree, request: RequestedCertificate) -> Iterator[str]:
    """Yield the subresources for which authorization is checked; one permission is enough for the approval."""
    spec = csr["spec"]
    if spec["signerName"] != requests.KUBELET_CLIENT or requests.kubelet_client_problem(
        request, spec.get("usages") or ()
    ):
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
            subresources = [*recognized_subresources(csr, requests.parse(csr["spec"]["request"]))]
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
    return not requests.is_issued(csr) and not requests.types_of_conditions(csr) & {"Approved", "Denied"}


CSR_APPROVING: Final = Runnable(
    name="certificatesigningrequest-approving-controller", service_account=ACCOUNT, build=Approver
)
