"""Requests of probes and hooks that have an effect in their server are really sent."""

import pytest

from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.port_probe import PortProbe
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from mockube.container_runtime.simulated.servers.live_probes import answer_from_files, fields_of_actions
from mockube.container_runtime.simulated.servers.probe_answers import predicted_answer
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES


def pod(*args, **fields):
    container = {"name": "c", "image": "agnhost", "args": [*args], **fields}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container]}}


def get(path="/", port=8080, **action):
    return {"httpGet": {"path": path, "port": port, **action}}


@pytest.mark.parametrize(
    ("args", "fields", "live"),
    [
        (["netexec"], {"lifecycle": {"postStart": get("/echo?msg=a")}}, ["postStart"]),
        (["netexec"], {"lifecycle": {"preStop": get("/dial?host=a")}}, ["preStop"]),
        (["netexec"], {"lifecycle": {"preStop": get("/", host="10.0.0.1")}}, []),
        (["netexec"], {"lifecycle": {"preStop": get("/", port=81)}}, []),
        (["netexec"], {"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}, []),
        (["pause"], {"lifecycle": {"preStop": get("/")}}, []),
        (["netexec"], {"livenessProbe": get("/shell?cmd=true")}, ["livenessProbe"]),
        (["netexec"], {"readinessProbe": get("/healthz")}, []),
        (["netexec"], {"readinessProbe": {"tcpSocket": {"port": 8080}}}, []),
    ],
)
def test_requests_with_an_effect_are_sent(args, fields, live):
    tree = pod(*args, **fields)
    assert [*fields_of_actions(IMAGES, tree, tree["spec"]["containers"][0])] == live


@pytest.mark.parametrize(
    ("path", "status", "is_known"),
    [
        ("/echo?code=500", 500, True),
        ("/echo", 200, True),
        ("/redirect?code=301&location=/a", 301, True),
        ("/other", 200, True),
        ("/shell?cmd=false", 200, False),
    ],
)
def test_answers_of_netexec_to_probes_are_predicted(path, status, is_known):
    answer = predicted_answer(IMAGES, pod("netexec"), PortProbe(port=8080, path=path), script_of({}), 0.0)
    assert (answer.status, not answer.unknown) == (status, is_known)


@pytest.mark.parametrize(
    ("path", "status", "is_known"),
    [
        ("/localhost.crt", 404, True),
        ("/data/x", 404, True),
        ("/data/a", 200, True),
        ("/etc/passwd", 200, False),
    ],
)
def test_server_of_all_files_does_not_know_those_of_its_image(path, status, is_known):
    tree = pod("test-webserver", volumeMounts=[{"name": "v", "mountPath": "/data"}])
    tree["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    container = tree["spec"]["containers"][0]
    behavior = listeners_of(IMAGES, tree, container).ports[80]
    files = FileSystem({"/data/a": FileEntry(data=b"x")})
    answer = answer_from_files(IMAGES, tree, container, behavior, PortProbe(port=80, path=path), 0.0, files)
    assert (answer.status if is_known else 200, not answer.unknown) == (status, is_known)
