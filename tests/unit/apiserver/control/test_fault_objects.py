"""The status of faults, without a server."""

import asyncio
from types import MappingProxyType

import pytest

from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.control.fault_objects import FAULT, Faults
from mockube.apiserver.control.faults import FaultInjector
from mockube.apiserver.storage.change_history import Change, ChangeKind
from mockube.apiserver.storage.stored_object import StoredObject, canonical_custom
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until
from tests.support.server.control import control_object
from tests.support.server.handler_requests import request_of


class Broken(Exception):
    pass


class Objects:
    """Finds no object; the first time, it fails."""

    clock = SteppedClock()
    rows = MappingProxyType({FAULT.group_resource: None})
    reads = 0

    async def find(self, _row, _namespace, _name):
        self.reads += 1
        if self.reads == 1:
            raise Broken


async def test_error_of_a_status_does_not_let_readers_wait_and_is_repaired():
    injector, objects = FaultInjector(SteppedClock()), Objects()
    faults = Faults(objects, injector)
    faults._registry = objects
    tree = control_object("Fault", "f", spec={"refuse": {"status": 503}})
    tree["metadata"] |= {"uid": "u", "creationTimestamp": "2030-01-01T00:00:00Z", "generation": 1}
    stored = StoredObject(f"/{CONTROL}/faults/f".encode(), canonical_custom(tree), 1)
    faults.handle_change(Change(ChangeKind.ADDED, stored, None, 0.0))
    faults._note_hit("f", faults._injected["f"][2], request_of("GET", "/api"))
    with pytest.raises(Broken):
        await faults.run()
    await asyncio.wait_for(faults._is_written.wait(), 10)
    running = asyncio.create_task(faults.run())
    await until(lambda: objects.reads == 2)
    running.cancel()
