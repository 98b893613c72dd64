"""Reads at random revisions equal what was recorded when these were the newest, with definitions that come and go."""

import os

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.seeded import Random
from tests.support.server.apiserver import running
from tests.support.server.definitions import DEFINITIONS, WIDGETS, define, definition, until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NAMES = [f"n{number}" for number in range(12)]
FULL_SIZE = bool(os.environ.get("MOCKUBE_FULL_SIZE"))
WRITES, READS = (10_000, 1_000) if FULL_SIZE else (120, 20)


class Writer:
    """Random writes, and after each one the content of the cluster as it must be."""

    def __init__(self, client, choice):
        self.client, self.choice = client, choice
        self.config_maps, self.widgets = {}, None
        self.recorded = []

    async def step(self, number):
        draw = self.choice.random()
        if draw < 0.04:
            await self._toggle_definition()
        elif draw < 0.3 and self.widgets is not None:
            await self._write(WIDGETS, self.widgets, f"{number}")
        else:
            await self._write(
                CONFIG_MAPS, self.config_maps, f"{number}" + "x" * self.choice.choice((1, 5000))
            )
        widgets = None if self.widgets is None else dict(self.widgets)
        self.recorded.append((await self._revision(), dict(self.config_maps), widgets))

    async def _write(self, path, objects, value):
        name = self.choice.choice(NAMES)
        if name in objects and self.choice.random() < 0.3:
            assert (await self.client.delete(f"{path}/{name}")).status == 200
            del objects[name]
            return
        fields = {"data": {"v": value}} if path == CONFIG_MAPS else {"spec": {"v": value}}
        head = {} if path == CONFIG_MAPS else {"apiVersion": "example.com/v1", "kind": "Widget"}
        if name in objects:
            answer = await self.client.patch(f"{path}/{name}", fields)
        else:
            answer = await self.client.post(path, {**head, "metadata": {"name": name}, **fields})
        assert answer.status in (200, 201), answer.body
        objects[name] = value

    async def _toggle_definition(self):
        if self.widgets is None:
            await define(self.client, definition())
            self.widgets = {}
        else:
            await self.client.delete(f"{DEFINITIONS}/widgets.example.com")
            await until(self.client, "widgets.example.com", lambda seen: seen is None)
            self.widgets = None

    async def _revision(self):
        return (await self.client.get("/mockube/at/now")).body["revision"]


async def content(client, revision):
    """The ConfigMaps and the widgets of a moment; None if there is no such kind."""
    config_maps = (await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}")).body["items"]
    widgets = await client.get(f"/mockube/at/{revision}{WIDGETS}")
    kinds = (await client.get(f"/mockube/at/{revision}/apis")).body["groups"]
    assert (widgets.status == 200) is ("example.com" in {group["name"] for group in kinds})
    return (
        {item["metadata"]["name"]: item["data"]["v"] for item in config_maps},
        {item["metadata"]["name"]: item["spec"]["v"] for item in widgets.body["items"]}
        if widgets.status == 200
        else None,
    )


@pytest.mark.parametrize("seed", [1, 2])
async def test_random_revisions_equal_what_was_recorded(seed):
    choice, clock = Random(seed), SteppedClock()
    async with running(clock=clock, kv=MemoryStore(clock=clock)) as client:
        writer = Writer(client, choice)
        for number in range(WRITES):
            await writer.step(number)
            clock.advance(1)  # old values are compressed meanwhile
        for revision, config_maps, widgets in choice.sample(writer.recorded, READS):
            assert await content(client, revision) == (config_maps, widgets)
        before = writer.recorded[choice.randrange(WRITES)]
        answer = await client.post(
            "/apis/control.mockube.dev/v1alpha1/rewinds",
            {
                "apiVersion": "control.mockube.dev/v1alpha1",
                "kind": "Rewind",
                "metadata": {},
                "spec": {"to": str(before[0])},
            },
        )
        assert answer.status == 201, answer.body
        assert await content(client, answer.body["status"]["revision"]) == before[1:]
