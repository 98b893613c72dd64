"""Informers that run within a test, and what they told."""

import asyncio
import contextlib

from mockube.apimachinery import meta
from mockube.apimachinery.clock import RealClock
from mockube.apimachinery.randomness import SeededRandom
from mockube.controller_manager.cache.informer import MutationDetector
from mockube.controller_manager.cache.informers import Informers, Settings


@contextlib.asynccontextmanager
async def informers_of(client, *resources, clock=None, **options):
    """Informers that run, of resources that are synced. At the end nobody may have changed what they hold."""
    detector = MutationDetector()
    settings = Settings(clock=clock or RealClock(), random=SeededRandom(), detector=detector, **options)
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
    """A handler that remembers changes as words: `+a` came, `~a` changed, `-a` went."""

    def __init__(self, informer):
        self.words = []
        self._tree = informer.resource.tree
        informer.add_handler(self)

    def __call__(self, change):
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        view = change.old if change.new is None else change.new
        self.words.append(sign + meta.name(self._tree(view)))
