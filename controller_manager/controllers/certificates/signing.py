"""The controller that signs approved CertificateSigningRequests with the authorities that flags specify for signers."""

import base64
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.component import IdleRunner, Runner
from mockube.client.kinds import CERTIFICATE_SIGNING_REQUESTS
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.queue.workqueue import RetryBackoff
from mockube.client.resources import Key
from mockube.controller_manager.config.signing import SignerFiles, signer_files
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import ControllerRunner

from . import requests
from .authority import (
    CertificateAuthority,
    CertificateAuthorityFiles,
    CertificateTemplate,
    SigningError,
    issue,
)
from .requests import BadCertificateRequest, RequestedCertificate

LOG = logging.getLogger(__name__)

NAME: Final = "certificatesigningrequest-signing-controller"
ACCOUNT: Final = "certificate-controller"
QUEUE: Final = "certificate"
RETRIES: Final = RetryBackoff(base=0.2, max_seconds=1000.0)
MIN_DURATION: Final = timedelta(minutes=10)
"""The minimum lifetime of a certificate, if the request specifies a shorter one."""
_REQUEST_CHECKS: Final[Mapping[str, Callable[[RequestedCertificate, Collection[str]], str]]] = {
    requests.KUBELET_SERVING: requests.kubelet_serving_problem,
    requests.KUBELET_CLIENT: requests.kubelet_client_problem,
    requests.API_SERVER_CLIENT: requests.client_usages_problem,
    requests.LEGACY_UNKNOWN: requests.no_problem,
}


class CertificateSigner(Struct, frozen=True, kw_only=True):
    """The authorities and the maximum lifetime of certificates."""

    authorities: Mapping[str, Callable[[], CertificateAuthority]]
    """The authorities by the names of signers."""
    max_lifetime: timedelta
    random: Random


def reconcile(signer: CertificateSigner, caches: Caches, key: Key, now: datetime) -> Plan:
    csr = caches.of(CERTIFICATE_SIGNING_REQUESTS).get(*key)
    if csr is None or not _needs_certificate(csr) or csr["spec"]["signerName"] not in signer.authorities:
        return EMPTY_PLAN
    spec = csr["spec"]
    try:
        request = requests.parse(spec["request"])
    except BadCertificateRequest as error:
        raise RequeueWithBackoff(f'unable to parse csr "{key.name}": {error}') from error
    usages = spec.get("usages") or ()
    if problem := _REQUEST_CHECKS[spec["signerName"]](request, usages):
        return _failure(csr, problem, now)
    lifetime = lifetime_of(spec.get("expirationSeconds"), signer.max_lifetime)
    try:
        template = CertificateTemplate(usages=usages, lifetime=lifetime, now=now)
        certificate = issue(signer.authorities[spec["signerName"]](), request.parsed, template, signer.random)
    except SigningError as error:
        raise RequeueWithBackoff(f"error auto signing csr: {error}") from error
    return _status(csr, certificate=base64.b64encode(certificate).decode())


def _needs_certificate(csr: ReadOnlyTree) -> bool:
    types = requests.types_of_conditions(csr)
    has_failed = any(
        condition["type"] == "Failed" and condition.get("status", "") in ("", "True")
        for condition in conditions.of(csr)
    )
    return not requests.is_issued(csr) and "Approved" in types and "Denied" not in types and not has_failed


def lifetime_of(seconds: int | None, max_lifetime: timedelta) -> timedelta:
    if seconds is None or timedelta(seconds=seconds) > max_lifetime:
        return max_lifetime
    return max(timedelta(seconds=seconds), MIN_DURATION)


def _failure(csr: ReadOnlyTree, problem: str, now: datetime) -> Plan:
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": problem,
        "lastUpdateTime": format_time(now),
    }
    return _status(csr, conditions=[*conditions.of(csr), failed])


def _status(csr: ReadOnlyTree, **changes: Any) -> Plan:
    body = {**csr, "status": {**(csr.get("status") or {}), **changes}}
    return Plan(actions=(Update(resource=CERTIFICATE_SIGNING_REQUESTS, body=body, subresource="status"),))


def _request_key(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or requests.is_issued(change.new) else (Key("", meta.name(change.new)),)


def csr_signing_controller(signer: CertificateSigner) -> Controller:
    return Controller(
        name=NAME,
        queue=QUEUE,
        service_account=ACCOUNT,
        watches=(Watch(resource=CERTIFICATE_SIGNING_REQUESTS, keys=_request_key),),
        reconcile=partial(reconcile, signer),
        retries=RETRIES,
        workers=5,
    )


def _build(context: Context) -> Runner:
    flags = context.options.signing
    signers = {
        name: CertificateAuthorityFiles(pair.certificate, pair.key).current
        for name, pair in _files_by_signer(signer_files(flags)).items()
        if pair is not None
    }
    if not signers:
        LOG.info("%s is disabled: there is no --cluster-signing-cert-file", NAME)
        return IdleRunner(context.clock)
    max_lifetime = timedelta(seconds=flags.cluster_signing_duration)
    signer = CertificateSigner(authorities=signers, max_lifetime=max_lifetime, random=context.random)
    return ControllerRunner(csr_signing_controller(signer), context)


def _files_by_signer(files: SignerFiles) -> Mapping[str, Any]:
    return {
        requests.KUBELET_SERVING: files.kubelet_serving,
        requests.KUBELET_CLIENT: files.kubelet_client,
        requests.API_SERVER_CLIENT: files.kube_apiserver_client,
        requests.LEGACY_UNKNOWN: files.legacy_unknown,
    }


CSR_SIGNING: Final = Runnable(name=NAME, service_account=ACCOUNT, build=_build)
