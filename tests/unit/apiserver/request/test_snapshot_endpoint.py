"""The page of snapshots, without a server."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import BadRequest
from mockube.apiserver.request.snapshot_endpoint import PATH, page
from mockube.component_base.clock import SteppedClock
from tests.support.server.handler_requests import request_of


async def test_snapshot_is_not_restored_into_etcd_that_others_may_use():
    backend = SimpleNamespace(clock=SteppedClock())
    with pytest.raises(BadRequest, match="`mockube snapshot restore FILE --etcd-servers URL`"):
        await page(backend, object(), [])(request_of("PUT", PATH))
