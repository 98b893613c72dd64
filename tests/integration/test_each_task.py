"""Each task of `TASKS` fails while a server runs with all of them: it is named, and starts again or ends the server."""

import asyncio
import contextlib

import aiohttp
import pytest

from mockube.apimachinery.randomness import SeededRandom, SystemRandom
from mockube.apiserver.background_tasks import TASKS, is_restarted
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.http.server import Listener, bind
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.apiserver.running import Dependencies, running
from mockube.apiserver.serving_credentials import load_credentials
from mockube.component_base import task_supervisor
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.component_base.task_supervisor import TaskFailed
from tests.support.event_loop import until
from tests.support.processes.failing_program import fail
from tests.support.server.apiserver import Client

HOST = "127.0.0.1"
AUTHENTICATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://127.0.0.1:1", audiences: [a]}
  claimMappings: {username: {claim: sub, prefix: ""}}
"""
AUTHORIZATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers: [{type: RBAC, name: rbac}]
"""


def flags(folder):
    """Those that start every task that a server may have."""
    authority = make_authority("servers", now=RealClock().now(), random=SystemRandom())
    issuer = CertificateIssuer(authority, now=RealClock().now(), random=SystemRandom())
    pair = issuer.issue(Subject(name="server", hosts=(HOST,)))
    contents = {
        "tls-cert-file": pair.certificate,
        "tls-private-key-file": pair.key,
        "authentication-config": AUTHENTICATION.encode(),
        "authorization-config": AUTHORIZATION.encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        yield f"--{name}={folder / name}"
    yield f"--cert-dir={folder / 'pki'}"
    yield f"--data-dir={folder / 'data'}"


class RunningServer:
    def __init__(self, server, client, clock):
        self.server = server
        self.client = client
        self.clock = clock

    async def page(self, path):
        return (await self.client.get(path)).data.decode()


@contextlib.asynccontextmanager
async def serving(folder):
    """A server with all tasks, whose restarts wait for the test's clock."""
    clock, random = SteppedClock(RealClock().now()), SeededRandom()
    config = parse([*flags(folder)], {})
    credentials = load_credentials(config, HOST, now=clock.now(), random=random)
    async with contextlib.AsyncExitStack() as stack:
        socket = stack.enter_context(bind(HOST, 0))
        dependencies = Dependencies(
            listeners=[Listener(socket=socket)],
            credentials=credentials,
            address="192.0.2.7",
            clock=clock,
            random=random,
            drain_seconds=0.01,
        )
        session = await stack.enter_async_context(aiohttp.ClientSession())
        server = await stack.enter_async_context(running(config, dependencies))
        ready = asyncio.Event()
        server.bootstrap_roles.when_ready(ready.set)
        await ready.wait()
        url = f"http://{HOST}:{socket.getsockname()[1]}"
        client = Client(session, url, authorization=f"Bearer {credentials.admin_token}")
        yield RunningServer(server, client, clock)


@pytest.mark.parametrize("task", [*filter(is_restarted, TASKS)])
async def test_failed_task_is_named_and_starts_again(tmp_path, caplog, task):
    async with serving(tmp_path) as served:
        assert await served.page("/readyz") == "ok"
        fail(asyncio.get_running_loop(), task)
        await until(lambda: served.server.context.supervisor.problem(task))
        assert f"[-]task-{task} failed" in await served.page("/readyz")
        assert await served.page("/livez") == "ok"
        (entry,) = (
            text for text in map(caplog.handler.format, caplog.records) if f"task {task!r} failed" in text
        )
        assert "Traceback (most recent call last)" in entry
        assert "RuntimeError: a fault in the program" in entry
        served.clock.advance(task_supervisor.FIRST_DELAY)
        await until(lambda: not served.server.context.supervisor.problem(task))
        assert f'mockube_task_restarts_total{{task="{task}"}} 1\n' in await served.page("/metrics")
        while await served.page("/readyz") != "ok":
            pass  # each request lets the restarted task run


async def serve_until_failed(folder, task):
    async with serving(folder):
        fail(asyncio.get_running_loop(), task)
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("task", [name for name in TASKS if not is_restarted(name)])
async def test_failed_task_that_cannot_start_again_ends_server(tmp_path, task):
    with pytest.raises(TaskFailed, match=f"the task {task!r} failed, so the server ends"):
        await serve_until_failed(tmp_path, task)
