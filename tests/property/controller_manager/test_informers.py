"""A cache converges to the server's objects, and a handler's changes build an exact copy of the cache."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SeededRandom
from mockube.client.cache.informer import Informers, InformerSettings
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.service_accounts import SharedIdentity
from mockube.client.verbs import Client
from mockube.component_base.metrics import MetricsRegistry
from tests.support.controllers.forgetful_server import ForgetfulServer
from tests.support.event_loop import until, yield_to_loop
from tests.support.instant_clock import InstantClock

NAMES = st.sampled_from("abcdef")
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("bookmark")),
    st.tuples(st.just("forget")),
    st.tuples(st.just("cut"), st.integers(0, 300), NAMES),
    st.tuples(st.just("delete_between_pages"), NAMES),
    st.tuples(st.just("away"), st.integers(1, 6)),
    st.tuples(st.just("rest"), st.integers(1, 12)),
)


async def apply_step(server, step):
    match step:
        case ("away", requests):
            server.away = requests
        case ("rest", count):
            await yield_to_loop(count)
        case (name, *arguments):
            getattr(server, name)(*arguments)


class Copy:
    """A copy built from a handler's changes; every change must be consistent with the copy."""

    def __init__(self):
        self.versions = {}

    def __call__(self, change):
        name = meta.name(change.new or change.old)
        held = self.versions.pop(name, None)
        assert held == (change.old and meta.resource_version(change.old))
        if change.new is not None:
            assert held is None or int(held) < int(meta.resource_version(change.new))
            self.versions[name] = meta.resource_version(change.new)


def versions(trees):
    return {meta.name(tree): meta.resource_version(tree) for tree in trees}


@example(there={"a"}, steps=[("cut", 0, "a")], streams_lists=False)
@settings(max_examples=150)
@given(there=st.sets(NAMES), steps=st.lists(STEPS, max_size=40), streams_lists=st.booleans())
async def test_informer_cache_converges_to_server_state(there, steps, streams_lists):
    server = ForgetfulServer(streams_lists=streams_lists)
    for name in sorted(there):
        server.put(name)
    clock = InstantClock()
    sender = Sender(
        transport=server,
        credential=FixedToken(),
        agent="manager",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )
    client = Client(sender, SharedIdentity(sender=sender, rate=None))
    informers = Informers(client, InformerSettings(clock=clock, random=SeededRandom()))
    informer = informers.of(CONFIG_MAPS)
    informer.add_index("name", lambda tree: [meta.name(tree)])
    copy = Copy()
    informer.add_handler(copy)
    running = asyncio.create_task(informers.run())
    try:
        for step in steps:
            await apply_step(server, step)
        server.put("last")
        # The last stream may be cut as well, which deletes an object after "last" has come.
        await until(lambda: informer.lister.get("default", "last") and informer.revision == server.revision)
        expected = versions(server.objects.values())
        assert versions(informer.lister.all()) == expected == copy.versions
        assert all(len(informer.lister.by_index("name", name)) == (name in expected) for name in "abcdef")
    finally:
        running.cancel()
        await asyncio.wait([running])
