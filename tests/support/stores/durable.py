"""Helpers for tests of the durable store."""

import asyncio

from mockube.etcd.errors import KVError
from mockube.etcd.kv import Compare, Put, Range, Target
from tests.support.event_loop import until, yield_to_loop

ALL = Range(key=b"\x00", range_end=b"\x00")
ABSENT = Compare(key=b"a", target=Target.VERSION, operand=0)


def put(key, value=b"1", lease=0):
    return Put(key=key, value=value, lease=lease)


async def state(store):
    found = await store.range(ALL)
    return found.revision, {kv.key: kv.value for kv in found.kvs}


async def start_on_held_disk(disk, *works):
    """Start tasks that wait for a blocked disk."""
    disk.hold()
    tasks = [asyncio.create_task(work) for work in works]
    await until(lambda: disk.waiting)
    await yield_to_loop(20)
    return tasks


async def outcome(work):
    """Return a call's result, or the error that it raises."""
    try:
        return await work
    except KVError as error:
        return error
