"""The slots of concurrent bindings: which of them wait, and which end with the scheduler."""

import asyncio

from mockube.scheduler.binder import BindingSlots
from tests.support.event_loop import yield_to_loop


async def test_binding_that_waits_leaves_its_slot_to_another():
    slots, claim_bound = BindingSlots(1), asyncio.Event()
    await slots.acquire()

    async def wait_for_claim():
        async with slots.left():
            await claim_bound.wait()

    waiting = asyncio.create_task(wait_for_claim())
    await yield_to_loop()
    await slots.acquire()
    claim_bound.set()
    await yield_to_loop(3)
    assert not waiting.done(), "it needs a slot to go on"
    slots.release()
    await waiting


async def test_only_bindings_that_wait_are_cancelled():
    slots, response = BindingSlots(2), asyncio.Event()

    async def wait_for_claim():
        async with slots.left():
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait_for_claim())
    sending = asyncio.create_task(response.wait())
    for _ in range(2):
        await slots.acquire()
    await yield_to_loop()
    slots.cancel_waiting()
    await yield_to_loop(3)
    assert waiting.cancelled()
    response.set()
    assert await sending


async def test_binding_that_goes_on_after_its_wait_is_not_cancelled():
    slots, response = BindingSlots(1), asyncio.Event()

    async def wait_and_send():
        async with slots.left():
            pass
        return await response.wait()

    await slots.acquire()
    binding = asyncio.create_task(wait_and_send())
    await yield_to_loop()
    slots.cancel_waiting()
    response.set()
    assert await binding
