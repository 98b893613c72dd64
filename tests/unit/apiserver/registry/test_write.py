"""A `Write` and the stages that fill it: their order, where they run, and what is repeated."""

import threading

import pytest

from mockube.apiserver.event_loop import LARGE
from mockube.apiserver.kinds.kind import NotConverted
from mockube.apiserver.registry.request_context import ObjectResult
from mockube.apiserver.registry.stages import ADMISSION, READING, STORAGE
from mockube.apiserver.registry.write import Write, run
from tests.support.server.memory_api import CORE

CONFIG_MAPS = f"{CORE}/configmaps"


def config_map(value):
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": value}}


@pytest.fixture
def write(api):
    """A write that creates a config map."""
    context = api.context("POST", CONFIG_MAPS)
    return Write(registry=api.registry, context=context, make=lambda _: config_map("v"))


async def test_creation_runs_stages_of_admission_and_storage(api, write):
    await run(write, ADMISSION)
    assert (write.new["metadata"]["namespace"], write.result) == ("default", None)
    assert await api.stored(f"{CONFIG_MAPS}/a") is None
    await run(write, STORAGE)
    assert (write.result.code, write.result.stored.value) == (201, write.value)
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["data"] == {"k": "v"}


async def test_change_of_stored_object_runs_all_stages(api):
    await api.create(CONFIG_MAPS, config_map("old"))
    context = api.context("PUT", f"{CONFIG_MAPS}/a")
    stored = await api.registry.find(context.resource, "default", "a")

    def change(_write, old):
        return {**old, "data": {"k": "new"}}

    write = Write(registry=api.registry, context=context, change=change, stored=stored)
    for stages in (READING, ADMISSION, STORAGE):
        await run(write, stages)
    assert (write.old["data"], write.new["data"], write.result.code) == ({"k": "old"}, {"k": "new"}, 200)
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["data"] == {"k": "new"}


async def test_stages_end_with_the_first_result(write):
    called = []

    def first(_write):
        called.append("first")

    async def second(write):
        called.append("second")
        write.result = ObjectResult(code=200)

    def third(_write):
        called.append("third")

    await run(write, (first, second, third))
    assert called == ["first", "second"]


@pytest.mark.parametrize(("size", "is_on_loop"), [(0, True), (LARGE, False)])
async def test_stages_of_large_object_compute_in_another_thread(write, size, is_on_loop):
    threads = []

    def compute(_write):
        threads.append(threading.get_ident())

    async def wait(_write):
        threads.append(threading.get_ident())

    write.context.work.measure(size)
    await run(write, (compute, wait))
    assert [thread == threading.get_ident() for thread in threads] == [is_on_loop, True]


async def test_stage_that_needs_conversion_is_repeated_after_it_and_warns_once(write):
    prepared = []

    class Conversion:
        async def prepare_version(self, _tree, api_version):
            prepared.append(api_version)

    def stage(write):
        write.context.report.warn("deprecated")
        if len(prepared) < 2:
            raise NotConverted(Conversion(), {}, f"example.com/v{len(prepared)}")

    write.context.report.warn("before")
    await run(write, (stage,))
    assert (prepared, write.context.report.warnings) == (
        ["example.com/v0", "example.com/v1"],
        ["before", "deprecated"],
    )
