"""The writes of a binding: claims before their pod, which may wait for the volumes, and what fails."""

import asyncio

import pytest

from mockube.apimachinery.status import Conflict
from mockube.client import kinds
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.scheduler.binder import Binder, BindingFailure, BindingSlots
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.volumes import ClaimBinding
from tests.support.controllers.scheduler_objects import info, pod
from tests.support.controllers.scheduler_parts import SchedulerContext
from tests.support.controllers.scheduler_volumes import claim, volume
from tests.support.event_loop import yield_to_loop

WEB = info(pod())
CLAIM = Key("default", "data")
BINDING = ("create", "pods/binding")
PRE_BIND = 'running PreBind plugin "VolumeBinding": '


class Extender:
    """An extender that binds pods, or does not."""

    def __init__(self, outcome, *, binds=True):
        self.binds, self.outcome, self.bound = binds, outcome, []

    def has_binder(self, _):
        return self.binds

    async def bind(self, pod, node):
        self.bound.append((pod.view.key.name, node))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Bindings(SchedulerContext):
    def __init__(self, extenders=None):
        super().__init__()
        self.slots = BindingSlots(1)
        self.binder = Binder(self.context, self.slots, extenders)

    async def bind(self, *bindings, seconds=600):
        await self.slots.acquire()
        try:
            await self.binder.bind(WEB, "a", bindings, seconds)
        finally:
            self.slots.release()

    async def failure(self, *bindings):
        with pytest.raises(BindingFailure) as failure:
            await self.bind(*bindings)
        return str(failure.value)

    def put_claim(self, tree, version="1"):
        metadata = {**tree["metadata"], "resourceVersion": version}
        self.put({**tree, "metadata": metadata}, resource=kinds.PERSISTENT_VOLUME_CLAIMS)

    @property
    def writes(self):
        return [(verb, what) for verb, what, *_ in self.client.requests]


@pytest.fixture
def bindings():
    return Bindings()


async def test_pod_is_bound_to_its_node(bindings):
    await bindings.bind()
    ((verb, what, body),) = bindings.client.requests
    assert (verb, what) == BINDING
    assert body["metadata"] == {"name": "web", "namespace": "default", "uid": "web"}
    assert body["target"] == {"kind": "Node", "name": "a"}


async def test_bound_claims_are_not_waited_for(bindings):
    bindings.put_claim(claim(volume="disk"))
    await bindings.bind(ClaimBinding(claim(), None))
    assert bindings.writes == [("patch", "persistentvolumeclaims"), BINDING]


async def bound_after(bindings, binding, *changes):
    """Return the writes before the pod is bound, which is after the last change."""
    task = asyncio.create_task(bindings.bind(binding))
    await yield_to_loop(5)
    writes = bindings.client.requests[:]
    for change in changes:
        assert not task.done()
        change()
        await yield_to_loop(5)
    await task
    assert bindings.writes[len(writes) :] == [BINDING]
    return writes


async def test_node_of_a_new_volume_is_written_into_the_claim_which_is_waited_for(bindings):
    bindings.put_claim(claim())
    ((verb, what, key, patch),) = await bound_after(
        bindings,
        ClaimBinding(claim(), None),
        lambda: bindings.put_claim(claim("other"), "2"),
        lambda: bindings.put_claim(claim(labels={}), "3"),
        lambda: bindings.put_claim(claim(volume="disk"), "4"),
    )
    assert (verb, what, key) == ("patch", "persistentvolumeclaims", CLAIM)
    annotations = {"volume.kubernetes.io/selected-node": "a"}
    assert patch == {"metadata": {"uid": "claim-data", "annotations": annotations}}


async def test_claim_is_written_into_its_volume_which_binds_it(bindings):
    ((verb, what, body),) = await bound_after(
        bindings, ClaimBinding(claim(), volume()), lambda: bindings.put_claim(claim(volume="disk"))
    )
    assert (verb, what) == ("update", "persistentvolumes")
    assert body["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    reference = body["spec"]["claimRef"]
    assert (reference["name"], reference["uid"]) == ("data", "claim-data")


async def test_volume_that_names_the_claim_is_not_written(bindings):
    binding = ClaimBinding(claim(), volume(), is_written=True)
    assert await bound_after(bindings, binding, lambda: bindings.put_claim(claim(volume="disk"))) == []


async def test_all_claims_are_waited_for(bindings):
    pair = [ClaimBinding(claim(name), None) for name in ("one", "two")]
    task = asyncio.create_task(bindings.bind(*pair))
    for name in ("two", "one"):
        await yield_to_loop(5)
        assert not task.done()
        bindings.put_claim(claim(name, volume=name))
    await task


async def test_slot_is_free_while_a_claim_is_waited_for(bindings):
    task = asyncio.create_task(bindings.bind(ClaimBinding(claim(), None)))
    await yield_to_loop(5)
    await bindings.slots.acquire()
    bindings.put_claim(claim(volume="disk"))
    await yield_to_loop(5)
    assert not task.done()
    bindings.slots.release()
    await task


async def test_claim_that_is_not_bound_in_time_is_a_failure(bindings):
    task = asyncio.create_task(bindings.failure(ClaimBinding(claim(), None)))
    await yield_to_loop(5)
    bindings.clock.advance(600)
    assert await task == f"{PRE_BIND}binding volumes: context deadline exceeded"
    assert BINDING not in bindings.writes


@pytest.mark.parametrize("error", [Conflict("old"), NoResponse("old")])
async def test_refused_write_is_a_failure_of_its_plugin(bindings, error):
    bindings.client.error = error
    assert await bindings.failure(ClaimBinding(claim(), volume())) == f"{PRE_BIND}old"
    assert await bindings.failure() == 'running Bind plugin "DefaultBinder": old'


@pytest.mark.parametrize(
    ("extender", "writes", "asked"),
    [
        pytest.param(Extender(outcome=True), [], 1, id="that binds it"),
        pytest.param(Extender(outcome=False), [BINDING], 1, id="that leaves it"),
        pytest.param(Extender(outcome=True, binds=False), [BINDING], 0, id="that binds others"),
    ],
)
async def test_extender_binds_the_pod_instead(extender, writes, asked):
    bindings = Bindings(extender)
    await bindings.bind()
    assert (bindings.writes, extender.bound) == (writes, [("web", "a")] * asked)


async def test_failure_of_the_extender_is_one_of_the_binding():
    assert await Bindings(Extender(PluginFailure("down"))).failure() == "down"


async def test_slot_is_free_while_an_extender_binds():
    bindings = Bindings()
    taken = []

    class Slow(Extender):
        async def bind(self, _, node):
            await bindings.slots.acquire()
            taken.append(node)
            bindings.slots.release()
            return True

    bindings.binder = Binder(bindings.context, bindings.slots, Slow(outcome=True))
    await bindings.bind()
    assert taken == ["a"]
