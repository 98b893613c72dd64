"""The page of snapshots, without a server."""

from types import SimpleNamespace

import orjson
import pytest

from mockube.apimachinery.status import BadRequest
from mockube.apiserver.request.snapshot_endpoint import PATH, page
from mockube.component_base.clock import SteppedClock
from mockube.etcd.archive.write import archive
from tests.support.server.handler_requests import request_of
from tests.support.server.memory_api import ALICE, CORE


async def test_snapshot_is_not_restored_into_etcd_that_others_may_use():
    backend = SimpleNamespace(clock=SteppedClock())
    with pytest.raises(BadRequest, match="`mockube snapshot restore FILE --etcd-servers URL`"):
        await page(backend, object(), [])(request_of("PUT", PATH))


@pytest.mark.kills("journal notes no author")
async def test_revision_of_restored_snapshot_has_its_user_as_author_in_journal(api):
    backend = api.registry
    pieces = archive(backend.kv, backend.layout.root, taken_at="2030-01-01T00:00:00Z")
    snapshot = b"".join([piece async for piece in pieces])
    await api.create_all((f"{CORE}/configmaps", {"metadata": {"name": "lost"}}))
    request = request_of("PUT", PATH, snapshot, User_Agent="curl/8")
    request.user, request.query = ALICE, {"replace": ["true"]}
    answer = await page(backend, backend.kv, [])(request)
    author = backend.journal.author(orjson.loads(answer.body)["revision"])
    assert (author.user, author.agent) == ("alice", "curl/8")
    assert (author.verb, author.field_manager) == ("restore", "mockube-restore")
