"""The controller that deletes PodCertificateRequests, which are decided or forgotten within minutes."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import POD_CERTIFICATE_REQUESTS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable, Runner, WaitForKinds

LOG = logging.getLogger(__name__)
_MAX_AGE: Final = timedelta(minutes=15)
_PERIOD_SECONDS: Final = 300.0


def old_requests(requests: Iterator[ReadOnlyTree], now: datetime) -> list[ReadOnlyTree]:
    return [
        request
        for request in requests
        if now >= parse_time(meta.metadata(request)["creationTimestamp"]) + _MAX_AGE
    ]


class PodRequestCleaner:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._requests = context.informers.of(POD_CERTIFICATE_REQUESTS)

    async def run(self) -> None:
        await self._requests.wait_synced()
        while True:
            for request in old_requests(iter(self._requests.lister.all()), self._clock.now()):
                await self._delete(request)
            await self._clock.sleep(_PERIOD_SECONDS)

    async def _delete(self, request: ReadOnlyTree) -> None:
        key = Key.of(request)
        try:
            await self._client.delete(POD_CERTIFICATE_REQUESTS, key, uid=meta.uid(request))
        except NotFound:
            return
        except (ApiError, NoResponse) as error:
            LOG.warning('unable to delete PodCertificateRequest "%s": %s', key, error)


def _build(context: Context) -> Runner:
    return WaitForKinds((POD_CERTIFICATE_REQUESTS,), lambda: PodRequestCleaner(context), context)


POD_REQUEST_CLEANER: Final = Runnable(
    name="podcertificaterequest-cleaner-controller",
    service_account="podcertificaterequestcleaner",
    build=_build,
)
