"""Who waits for a revision of the watch cache, and when the wait ends."""

import asyncio

from mockube.apiserver.storage.progress import CacheProgress
from tests.support.event_loop import yield_to_loop


async def test_wait_ends_when_its_revision_is_reached():
    progress = CacheProgress()
    with progress.waiting_for(5) as fifth, progress.waiting_for(7) as seventh:
        assert progress.is_awaited
        progress.advance(4)
        assert (fifth.done(), seventh.done()) == (False, False)
        progress.advance(6)
        assert (fifth.done(), seventh.done(), progress.revision) == (True, False, 6)
        progress.advance(9)
        assert seventh.done()
    assert not progress.is_awaited


async def test_revision_never_decreases():
    progress = CacheProgress()
    progress.advance(5)
    progress.advance(3)  # of an earlier notification
    assert progress.revision == 5


async def test_abandoned_wait_is_forgotten():
    progress = CacheProgress()
    with progress.waiting_for(5) as reached:
        reached.cancel()
        progress.advance(5)
    assert not progress.is_awaited


async def test_readers_of_many_objects_wait_while_the_caches_have_a_part_of_a_revision():
    progress = CacheProgress()
    await progress.wait_consistent()
    progress.begin_part()
    assert not progress.is_consistent
    reader = asyncio.create_task(progress.wait_consistent())
    await yield_to_loop()
    assert not reader.done()
    progress.advance(2)
    assert progress.is_consistent
    await reader


async def test_reader_that_runs_after_the_next_part_has_begun_waits_for_its_end():
    progress = CacheProgress()
    progress.begin_part()
    reader = asyncio.create_task(progress.wait_consistent())
    await yield_to_loop()
    progress.advance(2)
    progress.begin_part()  # before the reader runs
    await yield_to_loop(3)
    assert not reader.done()
    progress.advance(3)
    await reader


async def test_first_list_is_noted_once_and_for_all():
    progress = CacheProgress()
    assert not progress.is_listed
    progress.note_listed()
    await progress.wait_listed()
    assert progress.is_listed
