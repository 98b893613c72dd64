"""The status of faults, without a server."""

import asyncio
from types import MappingProxyType

import pytest

from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.control.effects import EFFECTS
from mockube.apiserver.control.fault_objects import _EFFECTS, FAULT, Faults
from mockube.apiserver.control.fault_summary import summary
from mockube.apiserver.control.faults import FaultInjector
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.stored_object import StoredObject, canonical_custom
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.control import control_object
from tests.support.server.handler_requests import request_of


class Broken(Exception):
    pass


class Cache:
    """Is always fresh."""

    async def fresh(self):
        return None


class Objects:
    """Finds no object; a function is called before each read."""

    clock = SteppedClock()
    rows = MappingProxyType({FAULT.group_resource: None})
    watch_cache = Cache()

    def __init__(self, before_read):
        self.reads = 0
        self._before_read = before_read

    async def find(self, _row, _namespace, _name):
        await yield_to_loop()
        self.reads += 1
        self._before_read()


def fault(spec, generation=1):
    tree = control_object("Fault", "f", spec=spec)
    tree["metadata"] |= {"uid": "u", "creationTimestamp": "2030-01-01T00:00:00Z", "generation": generation}
    return StoredObject(f"/{CONTROL}/faults/f".encode(), canonical_custom(tree), generation)


def faults_with(objects):
    faults = Faults(objects, FaultInjector(SteppedClock()))
    faults._registry = objects
    faults.handle_change(Change(ChangeKind.ADDED, fault({"refuse": {"status": 503}}), None, 0.0))
    return faults


def hit(faults):
    faults._note_hit("f", faults._injected["f"][2], request_of("GET", "/api"))


async def test_error_of_a_status_does_not_let_readers_wait_and_is_repaired():
    def fail_once():
        if objects.reads == 1:
            raise Broken

    objects = Objects(fail_once)
    faults = faults_with(objects)
    hit(faults)
    reader = asyncio.create_task(faults._wait_written())
    await yield_to_loop(5)
    assert not reader.done()
    with pytest.raises(Broken):
        await faults.run()
    await asyncio.wait_for(reader, 10)
    await asyncio.wait_for(faults._wait_written(), 10)
    running = asyncio.create_task(faults.run())
    await until(lambda: objects.reads == 2)
    running.cancel()


async def test_reader_waits_for_the_hits_before_it_and_not_for_those_that_follow():
    objects = Objects(lambda: hit(faults))  # there is a hit during each write
    faults = faults_with(objects)
    hit(faults)
    running = asyncio.create_task(faults.run())
    await asyncio.wait_for(faults._wait_written(), 10)
    running.cancel()
    assert objects.reads < 10


def test_every_effect_has_a_schema():
    assert {effect.name for effect in EFFECTS} - _EFFECTS.keys() == set()


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        pytest.param(
            {"match": {"user": "ada", "verbs": ["get", "list"]}, "refuse": {"status": 409, "message": "no"}},
            {"effect": "refuse 409", "requests": "user=ada verbs=get,list"},
            id="criteria",
        ),
        pytest.param(
            {"cut": {"when": "after"}, "delay": {"seconds": 2.5}, "times": 3},
            {"effect": "delay 2.5s, cut after", "requests": "all of users", "left": "1/3"},
            id="several effects",
        ),
        pytest.param(
            {"match": {"resource": "pods"}, "hold": {"untilWrite": True, "seconds": 60}},
            {"effect": "hold 60s until write", "requests": "resource=pods"},
            id="condition of its end",
        ),
        pytest.param(
            {"match": {"node": "node-1"}, "partition": {}},
            {"effect": "partition", "requests": "node=node-1"},
            id="partition",
        ),
    ],
)
def test_table_shows_what_a_fault_does(spec, shown):
    assert summary({"spec": spec, "status": {"hits": 2}}) == shown
