"""The controllers that delete old CertificateSigningRequests and PodCertificateRequests."""

import asyncio
import base64
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component import Runner
from mockube.client.kinds import CERTIFICATE_SIGNING_REQUESTS, POD_CERTIFICATE_REQUESTS
from mockube.client.resources import Key, Resource
from mockube.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable, WaitForKinds

from .requests import is_issued
from .signing import ACCOUNT

LOG: Final = logging.getLogger(__name__)


class Cleaner:
    """Deletes the obsolete requests of a resource, periodically."""

    def __init__(
        self,
        context: Context,
        resource: Resource[ReadOnlyTree],
        *,
        name: str,
        is_obsolete: Callable[[ReadOnlyTree, datetime], bool],
        period: float,
    ) -> None:
        """Create a cleaner. `name` is the name of the resource in the log, `period` the seconds between two runs."""
        self._client, self._clock = context.client, context.clock
        self._resource, self._name = resource, name
        self._is_obsolete, self._period = is_obsolete, period
        self._requests = context.informers.of(resource)
        self._requests.add_handler(lambda _: self._has_requests.set())
        self._has_requests = asyncio.Event()

    async def run(self) -> None:
        await self._requests.wait_synced()
        while True:
            now = self._clock.now()
            requests = self._requests.lister.all()
            for request in requests:
                if self._is_obsolete(request, now):
                    await self._delete(request)
            if not requests:
                self._has_requests.clear()
                await self._has_requests.wait()
            await self._clock.sleep(self._period)

    async def _delete(self, request: ReadOnlyTree) -> None:
        key = Key.of(request)
        try:
            await self._client.delete(self._resource, key, uid=meta.uid(request))
        except NotFound:  # its user has deleted it
            return
        except (ApiError, NoResponse) as error:
            LOG.warning('unable to delete %s "%s": %s', self._name, key, error)


# --- CertificateSigningRequests

_PERIOD: Final = 3600.0
_MAX_AGE_DECIDED: Final = timedelta(hours=1)
_MAX_AGE_PENDING: Final = timedelta(hours=24)
"""The period and the ages of upstream (pkg/controller/certificates/cleaner/cleaner.go)."""


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


def _build_csr_cleaner(context: Context) -> Runner:
    return Cleaner(context, CERTIFICATE_SIGNING_REQUESTS, name="CSR", is_obsolete=is_obsolete, period=_PERIOD)


CSR_CLEANER: Final = Runnable(
    name="certificatesigningrequest-cleaner-controller", service_account=ACCOUNT, build=_build_csr_cleaner
)


# --- PodCertificateRequests: a kubelet waits for one of them for some minutes only

_POD_REQUEST_PERIOD: Final = 300.0
_MAX_AGE_POD_REQUEST: Final = timedelta(minutes=15)


def _is_old(request: ReadOnlyTree, now: datetime) -> bool:
    created = meta.creation_timestamp(request)
    return created is not None and now >= created + _MAX_AGE_POD_REQUEST


def _build_pod_request_cleaner(context: Context) -> Runner:
    def build() -> Runner:
        return Cleaner(
            context,
            POD_CERTIFICATE_REQUESTS,
            name=POD_CERTIFICATE_REQUESTS.kind,
            is_obsolete=_is_old,
            period=_POD_REQUEST_PERIOD,
        )

    return WaitForKinds((POD_CERTIFICATE_REQUESTS,), build, context)


POD_REQUEST_CLEANER: Final = Runnable(
    name="podcertificaterequest-cleaner-controller",
    service_account="podcertificaterequestcleaner",
    build=_build_pod_request_cleaner,
)
