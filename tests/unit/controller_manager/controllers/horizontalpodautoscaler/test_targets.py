"""HorizontalPodAutoscaler: the scale of a target is read, and written again after a conflict."""

import asyncio

import pytest

from mockube.apimachinery.status import Conflict
from mockube.client.kinds import DEPLOYMENTS
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.resources import Key
from mockube.client.sender import FixedToken, Sender
from mockube.client.verbs import Client
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.controllers.horizontalpodautoscaler.targets import MAX_ATTEMPTS, ScaleClient
from tests.support.event_loop import yield_to_loop
from tests.support.stores.scripted_transport import ScriptedTransport, answer, problem

SCALE = {
    "metadata": {"name": "d", "namespace": "ns", "resourceVersion": "1"},
    "spec": {"replicas": 2},
    "status": {"replicas": 2, "selector": "a=1"},
}
NEWER = {**SCALE, "metadata": {**SCALE["metadata"], "resourceVersion": "2"}}
PATH = "/apis/apps/v1/namespaces/ns/deployments/d/scale"


@pytest.fixture
def transport():
    return ScriptedTransport()


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def targets(transport, clock):
    sender = Sender(
        transport=transport,
        credential=FixedToken("admin"),
        agent="test",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )
    return ScaleClient(Client(sender, identities=None), clock)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b!=1,a==2", "a=2,b notin (1)"),
        ("a in (2,1),!b,c", "a in (1,2),!b,c"),
    ],
)
async def test_selectors_are_canonical(transport, targets, text, expected):
    transport.will(answer(body={**SCALE, "status": {"replicas": 2, "selector": text}}))
    scale = await targets.scale(DEPLOYMENTS, Key("ns", "d"))
    assert scale["status"] == {"replicas": 2, "selector": expected}


async def rescale(targets, clock):
    task = asyncio.create_task(targets.rescale(DEPLOYMENTS, SCALE, 5))
    while not task.done():
        await yield_to_loop(5)
        clock.advance(1)
    await task


async def test_scale_conflict_is_retried_with_newest_scale(transport, targets, clock):
    transport.will(problem(409, "Conflict"), answer(body=NEWER), answer())
    await rescale(targets, clock)
    assert transport.targets == [f"PUT {PATH}", f"GET {PATH}", f"PUT {PATH}"]
    assert b'"resourceVersion":"2"' in transport.sent[-1][0].body
    assert b'"spec":{"replicas":5}' in transport.sent[-1][0].body


async def test_scale_conflict_retries_are_limited(transport, targets, clock):
    transport.will(*[problem(409, "Conflict"), answer(body=NEWER)] * MAX_ATTEMPTS)
    with pytest.raises(Conflict):
        await rescale(targets, clock)
    assert [one.split()[0] for one in transport.targets].count("PUT") == MAX_ATTEMPTS
