"""CertificateSigningRequests with a server: which are approved, and when they are deleted."""

from pathlib import Path

import orjson
import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.certificates.approving import CSR_APPROVING
from mockube.controller_manager.controllers.certificates.cleaner import CSR_CLEANER
from tests.support.controllers.running_manager import running_cluster

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SPECS = {
    case["name"]: case["spec"]
    for case in map(orjson.loads, Path(__file__).with_name("signed.jsonl").read_text().splitlines())
}
HOUR = 3600


@pytest.fixture
async def cluster():
    runnables = [CSR_APPROVING, CSR_CLEANER]
    async with running_cluster(clock=SteppedClock(), runnables=runnables) as (server, manager):
        yield server, manager


async def create(server, manager, case, name="r"):
    spec = {field: SPECS[case][field] for field in ("request", "signerName", "usages")}
    answer = await server.post(CSRS, {"metadata": {"name": name}, "spec": spec})
    assert answer.status == 201, answer.body
    await manager.settle()


async def pass_hours(manager, hours):
    """Advance the clock at once: stepping to everything that is due in a day takes long."""
    for _ in range(hours):
        manager.clock.advance(HOUR)
        await manager.settle()


async def conditions(server, name="r"):
    answer = await server.get(f"{CSRS}/{name}")
    if answer.status == 404:
        return None
    return [(each["type"], each["reason"]) for each in answer.body["status"].get("conditions", ())]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("a kubelet's client", [("Approved", "AutoApproved")]),
        ("a kubelet's server", []),
        ("a client", []),
    ],
)
async def test_request_for_the_client_of_a_kubelet_is_approved(cluster, case, expected):
    server, manager = cluster
    await create(server, manager, case)
    await manager.step(5)
    assert await conditions(server) == expected


async def test_denied_request_is_not_approved(cluster):
    server, manager = cluster
    denied = {"type": "Denied", "status": "True", "reason": "No", "message": "n"}
    await create(server, manager, "a kubelet's server")
    csr = (await server.get(f"{CSRS}/r")).body
    answer = await server.put(f"{CSRS}/r/approval", {**csr, "status": {"conditions": [denied]}})
    assert answer.status == 200, answer.body
    await manager.step(5)
    assert await conditions(server) == [("Denied", "No")]
    await pass_hours(manager, 2)
    assert await conditions(server) is None, "it was decided an hour ago"


async def test_pending_request_is_deleted_after_a_day(cluster):
    server, manager = cluster
    await create(server, manager, "a client")
    await pass_hours(manager, 23)
    assert await conditions(server) == []
    await pass_hours(manager, 2)
    assert await conditions(server) is None
