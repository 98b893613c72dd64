"""Each background task of a server fails once: the server logs it, continues, and recovers."""

import asyncio
import re
from functools import partial

import orjson
import pytest

from mockube.apimachinery.status import Expired
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.background_tasks import TASKS
from mockube.apiserver.bootstrap.identity import keep_alive
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.registry.selection import Selection
from mockube.apiserver.registry.watch_stream import ClientWatch
from mockube.apiserver.request.health import MAX_LAG_SECONDS
from mockube.apiserver.storage.cache_lag import LAG_SECONDS
from mockube.apiserver.storage.compaction import Compactor
from mockube.apiserver.storage.consistency import INTERVAL_SECONDS
from mockube.component_base import task_supervisor
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.component_base.task_supervisor import FIRST_DELAY, OnFailure, TaskFailed
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.event_loop import next_item, until, yield_to_loop
from tests.support.server.apiserver import running
from tests.support.server.definitions import established
from tests.support.stores.wrapped import AlteredWatch, WrappedStore
from tools.packages import ROOT

MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class StoreWithFailingMethod(WrappedStore):
    """A store with one method that raises an unexpected error, for a given number of calls."""

    method = ""
    times = 0
    below = b""

    def _break(self, method):
        if self.method == method and self.times:
            self.times -= 1
            raise RuntimeError("a fault in the program")

    def fail(self, method, times=1, below=b""):
        """Let a method fail this many times; of transactions, only those that write below a prefix."""
        self.method, self.times, self.below = method, times, below

    async def range(self, request):
        self._break("range")
        return await self.store.range(request)

    async def watch(self, request):
        self._break("watch")
        return await self.store.watch(request)

    async def txn(self, request):
        if any(one.key.startswith(self.below) for one in request.then):
            self._break("txn")
        return await self.store.txn(request)

    async def status(self):
        self._break("status")
        return await self.store.status()


class RunningServer:
    def __init__(self, client, kv):
        self.client = client
        self.kv = kv
        self.supervisor = client.server.context.supervisor
        self.watch_cache = client.server.registry.watch_cache

    async def failed(self, task):
        await until(lambda: self.supervisor.problem(task))
        paths = f"/readyz/task-{task}", "/readyz", "/livez"
        alone, ready, live = await asyncio.gather(*map(self.client.get, paths))
        assert (alone.status, alone.data.startswith(b"internal server error: ")) == (500, True)
        assert f"[-]task-{task} failed" in ready.data.decode()
        assert live.data == b"ok"

    def is_local(self, name):
        """Whether an APIService has an Available condition."""
        stored = self.watch_cache.resource_cache(FOLDER).get(FOLDER + name)
        return stored is not None and b"Local" in stored.value

    async def wait_until_repaired(self, task):
        await until(lambda: not self.supervisor.problem(task))
        assert (await self.client.get("/readyz")).data == b"ok"
        metrics = (await self.client.get("/metrics")).data.decode()
        assert re.search(rf'mockube_task_restarts_total{{task="{task}"}} [1-9]', metrics)


@pytest.fixture
async def served(monkeypatch):
    monkeypatch.setattr(task_supervisor, "FIRST_DELAY", 2.0)  # time enough to read the pages of a failed task
    kv = StoreWithFailingMethod(MemoryStore(clock=RealClock()))
    async with running(kv=kv) as client:
        yield RunningServer(client, kv)


async def test_failed_watch_cache_is_listed_again(served):
    await served.client.post(MAPS, {"metadata": {"name": "a"}})
    async with served.client.watch(f"{MAPS}?watch=true") as events:
        assert (await anext(events))["object"]["metadata"]["name"] == "a"
        served.kv.fail("watch")
        await served.watch_cache.rebuild()
        await served.failed("watch-cache")
        await served.wait_until_repaired("watch-cache")
        assert (await anext(events))["object"]["code"] == 410
    await served.client.post(MAPS, {"metadata": {"name": "b"}})
    assert [item["metadata"]["name"] for item in (await served.client.get(MAPS)).body["items"]] == ["a", "b"]


async def test_definitions_are_established_after_task_failure(served):
    created = asyncio.create_task(served.client.post(CRDS, DEFINITION))
    await until(lambda: len(served.watch_cache.resource_cache(DEFINITIONS)))
    served.kv.fail("txn", below=DEFINITIONS)
    assert (await created).status == 201
    await served.failed("crd-establishing")
    await served.wait_until_repaired("crd-establishing")
    await established(served.client, DEFINITION["metadata"]["name"])
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    assert (await served.client.post(widgets, body)).status == 201


async def test_clean_up_of_definition_is_repeated_after_failure(served):
    name, widgets = DEFINITION["metadata"]["name"], "/apis/example.com/v1/namespaces/default/widgets"
    await served.client.post(CRDS, DEFINITION)
    await established(served.client, name)
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    assert (await served.client.post(widgets, body)).status == 201
    served.kv.fail("txn", below=b"/registry/example.com/widgets/")
    assert (await served.client.delete(f"{CRDS}/{name}")).status == 200
    await served.failed("crd-establishing")
    await served.wait_until_repaired("crd-establishing")
    await until(lambda: not len(served.watch_cache.resource_cache(DEFINITIONS)))


async def test_availability_is_checked_after_task_failure(served):
    await served.client.get(SERVICES)
    served.kv.fail("txn")
    await served.kv.store.put(Put(key=FOLDER + b"v1.new", value=api_service("v1.new", '{"group":"new"}')))
    await served.failed("api-service-availability")
    await served.wait_until_repaired("api-service-availability")
    await until(lambda: served.is_local(b"v1.new"))


FOLDER = b"/registry/apiregistration.k8s.io/apiservices/"


def api_service(name, spec):
    head = f'{{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{{"name":"{name}","uid":"u"}},'
    return f'{head}"spec":{spec}}}'.encode()


@pytest.mark.parametrize("spec", ["[7]", '"x"', "null", '{"service":7}'])
async def test_invalid_api_service_does_not_block_others(served, spec):
    await served.kv.put(Put(key=FOLDER + b"v1.bad", value=api_service("v1.bad", spec)))
    await served.kv.put(Put(key=FOLDER + b"v1.good", value=api_service("v1.good", '{"group":"good"}')))
    await until(lambda: served.is_local(b"v1.good"))
    assert not served.supervisor.problem("api-service-availability")
    assert (await served.client.delete(f"{SERVICES}/v1.bad")).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        '"spec":[7]',
        '"spec":null',
        '"spec":{"group":[],"names":{"plural":"bad"},"versions":[]}',
        '"spec":{"group":"example.com","names":7,"versions":[]}',
        '"spec":{"group":"example.com","names":{"plural":"bad"},"versions":7}',
        '"spec":{"group":"example.com","names":{"plural":"bad"},"versions":[7]},"status":[1]',
        '"spec":{"group":"example.com","names":{"plural":"bad","kind":"Bad"},"versions":[7]},"status":{"conditions":[7]}',
    ],
)
async def test_invalid_definition_does_not_block_others(served, fields):
    head = '{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"'
    value = f'{head},"metadata":{{"name":"bad.example.com","uid":"u"}},{fields}}}'.encode()
    await served.kv.put(Put(key=DEFINITIONS + b"bad.example.com", value=value))
    assert (await served.client.post(CRDS, DEFINITION)).status == 201
    await until(
        lambda: (
            b'"Established"'
            in served.watch_cache.resource_cache(DEFINITIONS).get(DEFINITIONS + WIDGETS).value
        )
    )
    assert not served.supervisor.problem("crd-establishing")
    async with running(kv=served.kv) as second:
        assert (await second.get("/apis/example.com/v1/widgets")).status == 200
        assert (await second.delete(f"{CRDS}/bad.example.com")).status == 200


DEFINITIONS, WIDGETS = b"/registry/apiextensions.k8s.io/customresourcedefinitions/", b"widgets.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


async def test_failed_start_leaves_no_tasks():
    """The establishing controller runs once before the server is ready."""
    kv = StoreWithFailingMethod(MemoryStore(clock=RealClock()))
    await kv.put(Put(key=DEFINITIONS + WIDGETS, value=orjson.dumps(stored_definition())))
    kv.fail("txn", below=DEFINITIONS)
    server = ApiServer(kv, ServerEnvironment(trust=Trust(tokens={}), clock=RealClock()))
    with pytest.raises(RuntimeError, match="a fault in the program"):
        await server.__aenter__()
    assert len(asyncio.all_tasks()) == 1
    await kv.close()


def stored_definition():
    head = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"}
    return head | DEFINITION | {"metadata": DEFINITION["metadata"] | {"uid": "u", "generation": 1}}


@pytest.fixture
async def stepped_server():
    clock = SteppedClock()
    kv = StoreWithFailingMethod(MemoryStore(clock=clock))
    async with running(kv=kv, clock=clock) as client:
        yield RunningServer(client, kv)


async def test_lag_is_measured_after_task_failure(stepped_server):
    served = stepped_server
    clock = served.client.server.registry.clock
    served.kv.fail("status", 1)
    clock.advance(LAG_SECONDS)
    await served.failed("watch-cache-lag")
    clock.advance(FIRST_DELAY)
    await served.wait_until_repaired("watch-cache-lag")


class StalledStore(WrappedStore):
    """A store whose watches deliver no events after a given time."""

    def __init__(self, store):
        super().__init__(store)
        self.going = asyncio.Event()
        self.going.set()

    async def watch(self, request):
        async def change_batches(watch):
            async for batch in watch:
                await self.going.wait()
                yield batch

        return AlteredWatch(await self.store.watch(request), change_batches)


async def test_lagging_watch_cache_fails_readiness_by_name():
    clock = SteppedClock()
    kv = StalledStore(MemoryStore(clock=clock))
    async with running(kv=kv, clock=clock) as client:
        clock.advance(3600)
        assert (await client.get("/readyz/informer-sync")).data == b"ok"
        kv.going.clear()
        await client.post(MAPS, {"metadata": {"name": "a"}})
        assert (await client.get("/readyz/informer-sync")).data == b"ok"
        clock.advance(MAX_LAG_SECONDS + LAG_SECONDS)
        answer = await client.get("/readyz/informer-sync")
        assert (answer.status, answer.data) == (
            500,
            b"internal server error: the watch cache is 15 s behind the store\n",
        )
        assert [(await client.get(path)).status for path in ("/readyz", "/livez")] == [500, 200]
        kv.going.set()
        await client.server.registry.watch_cache.fresh()
        assert (await client.get("/readyz")).data == b"ok"


async def test_compaction_lease_and_check_run_after_task_failure(served):
    """As `running` starts them; what they do is tested elsewhere."""
    compactor = Compactor(served.kv, clock=served.client.server.registry.clock, interval=0.01)
    served.kv.fail("txn")
    served.supervisor.start("compaction", compactor.run)
    await served.failed("compaction")
    await served.wait_until_repaired("compaction")


async def test_server_lease_is_renewed_after_task_failure(served):
    server = served.client.server
    renew = partial(
        keep_alive,
        server.registry,
        server.catalog.rows.__getitem__,
        host="h",
        name="apiserver-x",
        holder="x",
        clock=server.registry.clock,
    )
    await served.client.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
    served.kv.fail("txn")
    served.supervisor.start("identity-lease", renew)
    await served.failed("identity-lease")
    await served.wait_until_repaired("identity-lease")
    lease = b"/registry/leases/kube-system/apiserver-x"
    await until(lambda: served.watch_cache.resource_cache(b"/registry/leases/").get(lease))


async def test_consistency_check_runs_after_task_failure(stepped_server):
    clock = stepped_server.client.server.registry.clock
    stepped_server.supervisor.start(
        "watch-cache-check", stepped_server.client.server.storage.consistency_check.run
    )
    await yield_to_loop(5)
    stepped_server.kv.fail("range")
    clock.advance(INTERVAL_SECONDS)
    await stepped_server.failed("watch-cache-check")
    clock.advance(FIRST_DELAY)
    await stepped_server.wait_until_repaired("watch-cache-check")


async def test_failed_watch_ends_with_410_and_others_continue(served, caplog):
    resource_cache = served.watch_cache.resource_cache(b"/registry/configmaps/")

    def fail(_):
        raise RuntimeError("a fault in the program")

    revision = served.watch_cache.revision
    broken = ClientWatch(resource_cache.prefix, resource_cache, Selection(matches=fail))
    broken.resume(revision)
    resource_cache.watchers.add(broken)
    async with served.client.watch(f"{MAPS}?watch=true&resourceVersion={revision}") as events:
        await served.client.post(MAPS, {"metadata": {"name": "a"}})
        assert (await next_item(events))["object"]["metadata"]["name"] == "a"
    assert (not await broken.take(), type(broken.error)) == (True, Expired)
    broken.close()
    assert not served.supervisor.problem("watch-cache")
    assert len([record for record in caplog.records if record.exc_info]) == 1


class FailingDisk(Disk):
    """A disk that raises an unexpected error when the test asks for it."""

    fails = False

    def sync(self, fd):
        if self.fails:
            raise RuntimeError("a fault in the program")
        super().sync(fd)


async def test_failed_store_writer_ends_server_after_health_checks_fail(tmp_path):
    disk, pages = FailingDisk(fsync=False), {}
    store = await DurableStore.open(tmp_path, clock=RealClock(), disk=disk)

    async def serve():
        async with running(kv=store) as client:
            disk.fails = True
            try:
                await client.post(MAPS, {"metadata": {"name": "a"}})
                await asyncio.get_running_loop().create_future()
            finally:
                for path in ("/livez", "/readyz"):
                    pages[path] = (await client.get(path)).data.decode()

    with pytest.raises(
        TaskFailed, match="the task 'store' failed, so the server ends: RuntimeError: a fault"
    ):
        await serve()
    assert {path: "[-]task-store failed" in page for path, page in pages.items()} == {
        "/livez": True,
        "/readyz": True,
    }


def test_every_task_is_in_architecture_page():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for name, policy in TASKS.items():
        outcome = "starts again" if policy is OnFailure.RESTART else "ends the process"
        assert re.search(rf"^\| `{name}` \| .* \| {outcome} \|$", page, re.MULTILINE), name
