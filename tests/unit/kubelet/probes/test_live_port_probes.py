"""Probes of servers of files are made in real time where volumes, hooks or clients may change the files."""

import asyncio
from datetime import timedelta
from posixpath import dirname

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.images.table import ImageTable, read_table
from mockube.container_runtime.port_probe import PortProbe
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.servers.live_probes import live_port_probes
from mockube.kubelet.pod_lifecycle.observations import NOT_OBSERVED, SUCCESS
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.probes.live_handlers import LiveHandlers
from mockube.kubelet.probes.totals import TotalsByPod
from tests.support.container_runtimes import simulated_runtime
from tests.support.controllers.pods import IP, container, pod
from tests.support.event_loop import yield_to_loop
from tests.support.images import IMAGES

HTML = [{"name": "v", "mountPath": "/usr/share/nginx/html"}]
READY = {"readinessProbe": {"httpGet": {"port": 80, "path": "/ready"}}}
HOOK = {"postStart": {"exec": {"command": ["touch", "/usr/share/nginx/html/ready"]}}}
TOKEN = [{"name": "t", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]


def running(tree, clock, since=60):
    state = {"running": {"startedAt": format_time(clock.now() - timedelta(seconds=since))}}
    status = {"name": "c", "state": state, "ready": False, "started": True, "restartCount": 0}
    return {**tree, "status": {"podIP": IP, "containerStatuses": [status]}}


@pytest.mark.parametrize(
    ("fields", "is_changed", "expected"),
    [
        ({}, False, []),
        ({"volumeMounts": TOKEN}, False, []),
        ({}, True, ["readinessProbe"]),
        ({"volumeMounts": HTML}, False, ["readinessProbe"]),
        ({"volumeMounts": [{"name": "v", "mountPath": "/usr/share/nginx/html/ready", "subPath": "a"}]}, False, ["readinessProbe"]),
        ({"lifecycle": HOOK}, False, ["readinessProbe"]),
        ({"volumeMounts": [{"name": "v", "mountPath": "/etc/nginx"}]}, True, []),
        ({"image": "example/x"}, True, []),
        ({"image": "busybox", "command": ["httpd", "-f", "-p", "80"]}, False, ["readinessProbe"]),
        ({"image": "busybox", "command": ["httpd", "-f", "-p", "81"]}, False, []),
    ],
)  # fmt: skip
def test_probe_is_live_where_files_may_change(fields, is_changed, expected):
    subject = container(**{**READY, **fields})
    assert [*live_port_probes(IMAGES, pod(subject), subject, lambda _: is_changed)] == expected


async def answers(tree, *writes, path="/ready", since=60, images=IMAGES):
    clock = SteppedClock()
    tree = running(tree, clock, since)
    runtime = simulated_runtime(clock, images=images)
    files = await runtime.files.file_system(tree, tree["spec"]["containers"][0])
    for write in writes:
        if not files.exists(dirname(write)):
            files.make_directory(dirname(write))
        files.write(write, b"x")
    answer = await runtime.probe_port(tree, "c", PortProbe(port=80, path=path))
    return answer.unknown or answer.status


@pytest.mark.parametrize(
    ("volume", "writes", "path", "expected"),
    [
        ({"emptyDir": {}}, [], "/ready", 404),
        ({"emptyDir": {}}, [], "/", 403),
        ({"emptyDir": {}}, ["/usr/share/nginx/html/ready"], "/ready", 200),
        ({"emptyDir": {}}, ["/usr/share/nginx/html/a/index.html"], "/a", 301),
        (
            {"persistentVolumeClaim": {"claimName": "a"}},
            [],
            "/ready",
            "what writes /usr/share/nginx/html/ready in the image nginx:1.25",
        ),
    ],
)
async def test_server_answers_with_the_files_of_its_volume(volume, writes, path, expected):
    tree = pod(container(volumeMounts=HTML), volumes=[{"name": "v", **volume}])
    assert await answers(tree, *writes, path=path) == expected


@pytest.mark.parametrize(
    ("path", "expected"), [("/", 200), ("/tmp/", 200), ("/tmp", 301), ("/etc/hosts", 200), ("/nope", 404)]
)
async def test_server_in_the_root_folder_lists_its_files(path, expected):
    command = ["httpd", "-f", "-p", "80"] if path == "/nope" else ["python3", "-m", "http.server", "80"]
    assert await answers(pod(container("c", *command, image="python:3")), path=path) == expected


async def test_server_of_files_answers_by_the_time_of_its_run():
    """The server has a path of its own 30 seconds after its start, and serves files besides."""
    route = b"{path: /ready, exact: true, since: 30, status: 503}"
    table = read_table(b"own: {names: [example.org/own], ports: {80: {root: /srv, routes: [%b]}}}" % route)
    images, mounts = ImageTable([table]), [{"name": "v", "mountPath": "/srv"}]
    tree = pod(
        container(image="example.org/own", volumeMounts=mounts), volumes=[{"name": "v", "emptyDir": {}}]
    )
    assert await answers(tree, "/srv/ready", since=29, images=images) == 200
    assert await answers(tree, "/srv/ready", since=31, images=images) == 503


async def test_another_container_that_is_not_simulated_may_write_the_file():
    other = container("d", image="example/git-sync", volumeMounts=[{"name": "v", "mountPath": "/git"}])
    tree = pod(container(volumeMounts=HTML), other, volumes=[{"name": "v", "emptyDir": {}}])
    assert await answers(tree) == "what writes /usr/share/nginx/html/ready in the image nginx:1.25"


async def test_probe_follows_file_that_a_client_writes():
    clock = SteppedClock()
    runtime = simulated_runtime(clock)
    failures, changes = [], []
    handlers = LiveHandlers(
        Records(),
        clock,
        runtime,
        TotalsByPod(Records()),
        on_change=changes.append,
        on_failure=lambda _, name, result: failures.append((name, result.event_reason, result.message)),
    )
    tree = running(pod(container(**READY)), clock)
    assert not handlers.observations(tree)
    runtime.files.note_command("uid-1", "c")
    assert handlers.observations(tree)["c"].probes == {Probe.READINESS: NOT_OBSERVED}
    async with handlers.running():
        handlers.follow(tree)
        await yield_to_loop(50)
        assert failures == [
            ("c", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")
        ]
        files = await runtime.files.file_system(tree, tree["spec"]["containers"][0])
        files.write("/usr/share/nginx/html/ready", b"")
        clock.advance(10)
        await yield_to_loop(50)
        results = handlers.observations(tree)["c"].probes[Probe.READINESS]
        assert SUCCESS in [result for _, result in results]
        assert len(failures) == 1


async def test_unknown_answer_of_live_probe_is_reported_once():
    clock = SteppedClock()
    unknown = []
    handlers = LiveHandlers(
        Records(),
        clock,
        simulated_runtime(clock),
        TotalsByPod(Records()),
        on_unknown_program=lambda *args: unknown.append(args[1:]),
    )
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}]
    tree = running(pod(container(volumeMounts=HTML, **READY), volumes=volumes), clock)
    async with handlers.running():
        handlers.observations(tree)
        handlers.follow(tree)
        for _ in range(3):
            await yield_to_loop(50)
            clock.advance(10)
        await yield_to_loop(50)
    subject = "what writes /usr/share/nginx/html/ready in the image nginx:1.25"
    assert unknown == [("c", subject, "readinessProbe")]


@pytest.mark.parametrize(("field", "attempts"), [("livenessProbe", 2), ("readinessProbe", 7)])
async def test_probe_that_restarts_its_container_makes_no_more_attempts(field, attempts):
    clock = SteppedClock()
    failures = []
    handlers = LiveHandlers(
        Records(),
        clock,
        simulated_runtime(clock),
        TotalsByPod(Records()),
        on_failure=lambda _, __, result: failures.append(result.event_reason),
    )
    probe = {"httpGet": {"path": "/none", "port": 80}, "failureThreshold": 2, "initialDelaySeconds": 1}
    volumes = [{"name": "v", "emptyDir": {}}]
    tree = running(pod(container(volumeMounts=HTML, **{field: probe}), volumes=volumes), clock)
    async with handlers.running():
        handlers.observations(tree)
        handlers.follow(tree)
        for _ in range(7):
            await yield_to_loop(50)
            clock.advance(10)
    assert len(failures) == attempts


async def test_probe_of_an_overloaded_server_waits_for_its_answer_and_gives_up():
    clock, failures = SteppedClock(), []
    runtime = simulated_runtime(clock)
    handlers = LiveHandlers(
        Records(),
        clock,
        runtime,
        TotalsByPod(Records()),
        on_failure=lambda _, __, result: failures.append((clock.monotonic(), result.message)),
    )
    probe = {"readinessProbe": {"httpGet": {"port": 80, "path": "/"}}}
    server = container(image="registry.k8s.io/hpa-example", resources={"limits": {"cpu": "100m"}}, **probe)
    tree = running(pod(server), clock)
    assert not handlers.observations(tree)
    begin = clock.monotonic()
    requests = [asyncio.create_task(runtime.loads.serve_request(tree, server)) for _ in range(4)]
    await yield_to_loop(50)
    async with handlers.running():
        assert handlers.observations(tree)
        handlers.follow(tree)
        await yield_to_loop(50)
        assert failures == []
        clock.advance(1)
        await yield_to_loop(50)
    url = f'Get "http://{IP}:80/"'
    problem = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert failures == [(begin + 1, f"Readiness probe failed: {url}: {problem}")]
    for request in requests:
        request.cancel()
