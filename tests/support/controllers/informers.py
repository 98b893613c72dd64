"""Running informers for tests, and a record of the changes that they deliver."""

import asyncio
import contextlib
from contextlib import suppress

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SeededRandom
from mockube.client.cache.informer import Informers, InformerSettings, MutationDetector
from mockube.component_base.clock import RealClock


@contextlib.asynccontextmanager
async def informers_of(client, *resources, clock=None, **options):
    """Run informers of the resources until synced. At the end their cached objects must be unmodified."""
    detector = MutationDetector()
    settings = InformerSettings(
        clock=clock or RealClock(), random=SeededRandom(), detector=detector, **options
    )
    informers = Informers(client, settings)
    for resource in resources:
        informers.of(resource)
    running = asyncio.create_task(informers.run())
    try:
        await informers.wait_synced()
        yield informers
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    detector.check()


class RecordedChanges:
    """A handler that records changes as words: `+a` added, `~a` updated, `-a` deleted."""

    def __init__(self, informer):
        self.words = []
        self._tree = informer.resource.tree
        informer.add_handler(self)

    def __call__(self, change):
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        view = change.old if change.new is None else change.new
        self.words.append(sign + meta.name(self._tree(view)))


def fill(informer, trees, revision):
    """Cache a list, which is short enough to enter the cache without a pause."""
    with suppress(StopIteration):
        informer.replace(trees, revision).send(None)
        raise AssertionError("the list is too long")
