"""Snapshots: the objects of a moment under a name, from which Rewinds and Forks start."""

import asyncio
import contextlib
import errno
import gzip
import os
from pathlib import Path

import msgspec
import pytest

from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.bootstrap.manager_roles import roles_of_control
from mockube.apiserver.control import forks, snapshots
from mockube.apiserver.request.limits import has_no_deadline
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.etcd.errors import Compacted
from tests.support.event_loop import WAIT_TIMEOUT, until
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import PATH, causes, control_object

SNAPSHOTS, FORKS, REWINDS = f"{PATH}/snapshots", f"{PATH}/forks", f"{PATH}/rewinds"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def create(client, name):
    answer = await client.post(CONFIG_MAPS, {"metadata": {"name": name}})
    assert answer.status == 201, answer.body
    return int(answer.body["metadata"]["resourceVersion"])


async def names(client):
    return [item["metadata"]["name"] for item in (await client.get(CONFIG_MAPS)).body["items"]]


async def take(client, name, **spec):
    answer = await client.post(SNAPSHOTS, control_object("Snapshot", name, spec=spec))
    assert answer.status == 201, answer.body
    return answer.body["spec"]


async def test_snapshot_has_the_objects_of_now_or_of_a_moment(client):
    first = await create(client, "a")
    second = await create(client, "b")
    now, then = await take(client, "now"), await take(client, "then", at=str(first))
    assert (now["revision"], then["revision"]) == (second, first)
    assert now["objects"] == then["objects"] + 1
    assert then["at"] == str(first)
    table = (await client.get(SNAPSHOTS, Accept=TABLE)).body
    assert [row["cells"][:3] for row in table["rows"]] == [
        ["now", second, now["objects"]],
        ["then", first, then["objects"]],
    ]


async def test_rewind_to_a_snapshot_needs_no_history(client):
    await create(client, "a")
    await take(client, "s")
    last = await create(client, "b")
    await client.delete(f"{CONFIG_MAPS}/a")
    await client.server.registry.kv.compact(last)
    refused = await client.post(REWINDS, control_object("Rewind", spec={"to": str(last - 1)}))
    assert refused.status == 410
    answer = await client.post(REWINDS, control_object("Rewind", spec={"snapshot": "s"}))
    assert (answer.status, answer.body["status"]["created"], answer.body["status"]["deleted"]) == (201, 1, 1)
    assert await names(client) == ["a"]


async def test_content_of_a_snapshot_is_a_snapshot_file(client):
    await create(client, "a")
    await take(client, "s")
    await client.delete(f"{CONFIG_MAPS}/a")
    saved = await client.get("/mockube/snapshot?snapshot=s")
    assert b"/registry/configmaps/default/a" in gzip.decompress(saved.data)
    assert (await client.send("PUT", "/mockube/snapshot?replace=true", saved.data)).status == 200
    assert await names(client) == ["a"]
    assert (await client.get("/mockube/snapshot?snapshot=nothing")).status == 404


async def test_deleted_snapshot_is_gone(client):
    await take(client, "s")
    assert (await client.delete(f"{SNAPSHOTS}/s")).status == 200
    answer = await client.post(REWINDS, control_object("Rewind", spec={"snapshot": "s"}))
    assert (answer.status, 'snapshots.control.mockube.dev "s" not found' in answer.body["message"]) == (
        404,
        True,
    )
    await create(client, "a")
    await take(client, "s")
    await client.delete(f"{CONFIG_MAPS}/a")
    await client.post(REWINDS, control_object("Rewind", spec={"snapshot": "s"}))
    assert await names(client) == ["a"]


async def test_refused_snapshots_keep_nothing(client, monkeypatch):
    await take(client, "s")
    again = await client.post(SNAPSHOTS, control_object("Snapshot", "s"))
    unknown = await client.post(SNAPSHOTS, control_object("Snapshot", "t", spec={"at": "nothing"}))
    wrong = await client.post(SNAPSHOTS, control_object("Snapshot", "t", spec={"at": 7}))
    assert (again.status, unknown.status, wrong.status) == (409, 404, 422)
    monkeypatch.setattr(snapshots, "MAX_BYTES", 10)
    large = await client.post(SNAPSHOTS, control_object("Snapshot", "t"))
    assert (large.status, "delete one" in large.body["message"]) == (403, True)
    assert [item["metadata"]["name"] for item in (await client.get(SNAPSHOTS)).body["items"]] == ["s"]


async def test_dry_runs_and_refused_snapshots_leave_no_content(client):
    await take(client, "s")
    await create(client, "a")
    assert (await client.post(f"{SNAPSHOTS}?dryRun=All", control_object("Snapshot", "t"))).status == 201
    assert (await client.post(SNAPSHOTS, control_object("Snapshot", "s"))).status == 409
    assert len(vars(client.server.control.find_snapshot.__self__)["_data"]) == 1


async def test_content_is_kept_until_its_object_is_in_the_cache(client, monkeypatch):
    """Another Snapshot may be deleted while the cache does not have a new one yet."""
    strategy = client.server.control.find_snapshot.__self__
    create_object = snapshots.create

    def delete_another():
        strategy.handle_change(Change(ChangeKind.DELETED, None, None, 0.0))
        strategy._objects = cached

    async def create_late(*arguments):
        result = await create_object(*arguments)
        strategy._objects = ()
        asyncio.get_running_loop().call_soon(delete_another)
        return result

    cached = strategy._objects
    monkeypatch.setattr(snapshots, "create", create_late)
    spec = await take(client, "s")
    assert len(strategy.data("s")) == spec["bytes"]


async def test_history_that_is_compacted_meanwhile_is_too_old(client, program, monkeypatch):
    async def archive(*_, **__):
        yield b"begin"
        raise Compacted(1, 2)

    monkeypatch.setattr(snapshots, "archive", archive)
    assert (await client.post(SNAPSHOTS, control_object("Snapshot", "s"))).status == 410
    async with running_in(program) as other:
        assert (await fork(other)).status == 410
    assert [path.name for path in program.path.parent.iterdir()] == ["socket"]


async def test_disk_that_is_full_is_the_problem_of_a_fork(program, monkeypatch):
    def create(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    monkeypatch.setattr(forks, "_create", create)
    async with running_in(program) as client:
        answer = await fork(client)
    assert (answer.status, "No space left on device" in answer.body["message"]) == (500, True)


@pytest.mark.parametrize(
    ("spec", "field"), [({}, "spec.to"), ({"to": "now", "snapshot": "s"}, "spec.snapshot")]
)
async def test_rewind_goes_to_a_moment_or_to_a_snapshot(client, spec, field):
    answer = await client.post(REWINDS, control_object("Rewind", spec=spec))
    assert (answer.status, causes(answer)[0][0]) == (422, field)


# --- forks: the program that runs the server starts them


class Program:
    """The program that runs the server: it keeps what it is asked for."""

    def __init__(self, path):
        self.path, self.orders, self.answer = path, [], {"url": "https://127.0.0.1:7", "kubeconfig": "/k"}
        self.is_asked, self.may_read, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.may_read.set()

    async def handle(self, reader, writer):
        order = msgspec.json.decode(await reader.readline())
        self.is_asked.set()
        await self.may_read.wait()
        content = gzip.decompress(await asyncio.to_thread(Path(order["snapshot"]).read_bytes))
        self.orders.append((order["name"], content))
        if self.answer is not None:
            writer.write(msgspec.json.encode(self.answer) + b"\n")
        self.ended.set()
        writer.close()


@pytest.fixture
async def program(tmp_path):
    program = Program(tmp_path / "socket")
    async with await asyncio.start_unix_server(program.handle, program.path):
        yield program


@contextlib.asynccontextmanager
async def running_in(program, run=running):
    async with run(f"--fork-socket={program.path}") as client:
        yield client


async def fork(client, **spec):
    return await client.post(FORKS, control_object("Fork", spec={"name": "other", **spec}))


async def test_fork_is_made_by_the_program_from_a_snapshot(program):
    program.answer["not_forked"] = ["The audit log"]
    async with running_in(program) as client:
        first = await create(client, "a")
        await create(client, "b")
        answer = await fork(client)
        status = answer.body["status"]
        assert (answer.status, status["url"], status["kubeconfig"]) == (201, "https://127.0.0.1:7", "/k")
        assert status["revision"] == first + 1
        assert status["notForked"][-1] == "The audit log"
        assert (await fork(client, at=str(first))).body["status"]["revision"] == first
        await take(client, "s", at=str(first))
        assert (await fork(client, snapshot="s")).body["status"]["revision"] == first
    key = b"/registry/configmaps/default/"
    assert [(name, key + b"a" in content, key + b"b" in content) for name, content in program.orders] == [
        ("other", True, True),
        ("other", True, False),
        ("other", True, False),
    ]
    assert [path.name for path in program.path.parent.iterdir()] == ["socket"]


async def test_problem_of_the_program_is_returned(program):
    async with running_in(program) as client:
        program.answer = {"problem": '"other" is already running', "is_conflict": True}
        answer = await fork(client)
        assert (answer.status, answer.body["message"]) == (409, '"other" is already running')
        program.answer = None
        answer = await fork(client)
        assert (answer.status, "did not start the fork" in answer.body["message"]) == (500, True)


async def test_fork_is_completed_when_its_request_is_cancelled(program):
    program.may_read.clear()
    handlers = []

    async def note_handler(request, proceed):
        handlers.append(asyncio.current_task())
        return await proceed(request)

    async with running_in(program) as client:
        client.server.context.hooks.before_endpoint.add(note_handler)
        sent = asyncio.create_task(fork(client))
        async with asyncio.timeout(WAIT_TIMEOUT):
            await program.is_asked.wait()
        handlers[-1].cancel()  # as by the end of the client
        await until(handlers[-1].done)
        program.may_read.set()
        async with asyncio.timeout(WAIT_TIMEOUT):
            await program.ended.wait()
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
    ((name, _),) = program.orders
    assert name == "other"


def test_fork_has_no_deadline():
    info = RequestInfo(verb="create", path=FORKS, is_resource=True, group=CONTROL, resource="forks")
    assert has_no_deadline(info)


async def test_fork_needs_all_rights(program):
    """A fork has the keys of the cluster: what somebody may do there, as of a moment, he could do here."""
    async with running_in(program, running_with_roles) as client:
        client.server.bootstrap_roles.add(roles_of_control())
        assert await client.server.bootstrap_roles.reconcile()
        alice = Client(client.session, client.url, authorization="Bearer alice")
        await bind(client, "mockube:control")
        refused = await fork(alice)
        assert (refused.status, "all verbs on all resources" in refused.body["message"]) == (403, True)
        assert program.orders == []
        await bind(client, "cluster-admin")
        assert (await fork(alice)).status == 201


async def bind(client, role):
    """Bind a ClusterRole to alice."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    body = {"metadata": {"name": f"alice-{role}"}, "roleRef": ref, "subjects": [subject]}
    answer = await client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
    assert answer.status == 201, answer.body
    await client.server.registry.watch_cache.fresh()


async def test_invalid_forks_are_refused(program, client):
    assert ((answer := await fork(client)).status, "mockube up" in answer.body["message"]) == (400, True)
    async with running_in(program) as other:
        answer = await fork(other, name="Not A Name")
        assert (answer.status, causes(answer)[0][0]) == (422, "spec.name")
        answer = await fork(other, at="now", snapshot="s")
        assert (answer.status, causes(answer)[0][0]) == (422, "spec.snapshot")
        assert (await fork(other, snapshot="nothing")).status == 404
        answer = await other.post(f"{FORKS}?dryRun=All", control_object("Fork", spec={"name": "other"}))
        assert answer.status == 400
    assert program.orders == []


async def test_forks_and_snapshots_need_their_own_rights():
    async with running_with_roles() as client:
        for path, kind in ((FORKS, "Fork"), (SNAPSHOTS, "Snapshot")):
            posted = control_object(kind, "s", spec={"name": "other"})
            assert (await client.post(path, posted, Authorization="Bearer alice")).status == 403
