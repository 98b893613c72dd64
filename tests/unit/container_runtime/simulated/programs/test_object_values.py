"""The commands whose results depend on API objects."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.programs.commands import host_of, main_command
from mockube.container_runtime.start_errors import StartError
from tests.support.images import IMAGES

KEY = {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}
VOLUMES = [{"name": "m", "configMap": {"name": "m"}}, {"name": "e", "emptyDir": {}}]
MOUNTS = [{"name": "m", "mountPath": "/cfg"}, {"name": "e", "mountPath": "/data"}]
SUB_PATH = [{"name": "m", "mountPath": "/etc/app/k", "subPath": "k"}, {"name": "e", "mountPath": "/data"}]


def container(script, **fields):
    return {"name": "c", "image": "busybox", "command": ["sh", "-c", script], **fields}


def pod(main, *init, **spec):
    metadata = {"name": "p", "namespace": "ns", "uid": "u"}
    return {
        "metadata": metadata,
        "spec": {"containers": [main], "initContainers": list(init), "volumes": VOLUMES, **spec},
    }


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        ('test "$K" = v', {"env": [KEY]}),
        ('test "${K:-x}" = v', {"env": [KEY]}),
        ("printenv K", {"env": [KEY]}),
        ('test "$URL" = v', {"env": [KEY, {"name": "URL", "value": "http://$(K)/"}]}),
        (
            'test -n "$IP"',
            {"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
        ),
        ('test -n "$S_A"', {"envFrom": [{"secretRef": {"name": "s"}, "prefix": "S_"}]}),
        ('test -n "$KUBERNETES_SERVICE_HOST"', {}),
        ("test -s /cfg/k", {"volumeMounts": MOUNTS}),
        ("cp -r /etc/app/* /data/", {"volumeMounts": SUB_PATH}),
        ("cd /etc; test -s app/k", {"volumeMounts": SUB_PATH}),
        ("test -s k", {"volumeMounts": SUB_PATH, "workingDir": "/etc/app"}),
        ('. "$DIR/k"', {"env": [{"name": "DIR", "value": "/cfg"}], "volumeMounts": MOUNTS}),
    ],
)
def test_command_with_values_of_objects_runs_live(script, fields):
    main = container(script, **fields)
    assert LiveContainers(IMAGES, Records()).command(pod(main, restartPolicy="Never"), main)
    assert LiveContainers(IMAGES, Records()).command(pod(main), main)


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        (["python", "/cfg/app.py"], {"volumeMounts": MOUNTS}),
        (["sh", "-c", "sleep 1; exec python3 -u /cfg/app.py"], {"volumeMounts": MOUNTS}),
        (["python3", "-c", "import os; os.environ['K']"], {"env": [KEY]}),
        (["python3.11", "-c", "import os; os.getenv('K')"], {"envFrom": [{"secretRef": {"name": "s"}}]}),
    ],
)
def test_python_with_values_of_objects_runs_live_also_if_it_is_restarted(command, fields):
    main = container("", **fields) | {"command": command, "image": "python:3.11"}
    assert LiveContainers(IMAGES, Records()).command(pod(main), main) == tuple(command)


def test_python_without_values_of_objects_is_interpreted_at_once():
    main = container("", env=[KEY]) | {"command": ["python3", "-c", "print(1)"], "image": "python:3.11"}
    assert not LiveContainers(IMAGES, Records()).command(pod(main), main)


def end_of(running):
    """Return the exit code of a command, or why it is not started."""
    try:
        while True:
            next(running)
    except StopIteration as stop:
        return stop.value
    except StartError as error:
        return str(error)


@pytest.mark.parametrize(("program", "is_live"), [("/cfg/run", True), ("/cfg", True), ("/cfgs/run", False)])
def test_script_of_an_object_runs_live(program, is_live):
    main = container("", volumeMounts=MOUNTS) | {"command": [program]}
    assert bool(LiveContainers(IMAGES, Records()).command(pod(main, restartPolicy="Never"), main)) is is_live


@pytest.mark.parametrize(
    ("program", "mode", "text", "code", "problem"),
    [
        ("/cfg/run", 0o755, "#!/bin/sh\nexit 3\n", 3, None),
        ("/cfg/run", 0o755, "#!/bin/bash\nexit 3\n", 255, None),
        ("/cfg/run", 0o755, "exit 3\n", 255, None),
        ("/cfg/run", 0o755, "#!/bin/sh\r\nexit 3\n", 255, None),
        ("/cfg/run", 0o755, "#!/usr/bin/env sh\r\nexit 3\n", 127, None),
        ("/cfg/run", 0o644, "#!/bin/sh\nexit 3\n", None, 'exec: "/cfg/run": permission denied'),
        ("/cfg", 0o755, "", None, 'exec: "/cfg": is a directory'),
    ],
)
def test_script_of_an_object_ends_as_its_file_demands(program, mode, text, code, problem):
    main = container("", volumeMounts=MOUNTS) | {"command": [program]}
    tree = pod(main, restartPolicy="Never")
    tree["spec"]["volumes"] = [{"name": "m", "configMap": {"name": "m", "defaultMode": mode}}, VOLUMES[1]]
    references = References(config_maps={"m": {"data": {"run": text}}})
    host = host_of(IMAGES, tree, main, references, datetime(2030, 1, 1, tzinfo=UTC))
    assert end_of(main_command(IMAGES, tree, main, references, host)) == (code or problem)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("cat /var/run/secrets/kubernetes.io/serviceaccount/token", 1),
        ("test -e /run/secrets", 1),
        ("printf 'exit 3\n' > /tmp/s; chmod +x /tmp/s; /tmp/s", 3),
        ("printf '#!/bin/sh\r\nexit 3\n' > /tmp/s; chmod +x /tmp/s; /tmp/s", 127),
    ],
)
def test_script_sees_the_files_that_its_container_has(script, code):
    main = container(script)
    tree = pod(main, restartPolicy="Never")
    host = host_of(IMAGES, tree, main, References(), datetime(2030, 1, 1, tzinfo=UTC))
    assert end_of(main_command(IMAGES, tree, main, References(), host)) == code


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        ("exit 1", {"env": [KEY], "volumeMounts": MOUNTS}),
        ('K=1; test "$K" = v', {}),
        ('test "$HOME" = /', {"envFrom": [{"secretRef": {"name": "s"}}]}),
        ('test -n "$A"', {"envFrom": [{"secretRef": {"name": "s"}, "prefix": "S_"}]}),
        (
            'test "$N" = p',
            {"env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        ),
        ("ls /data", {"volumeMounts": MOUNTS}),
    ],
)
def test_command_without_values_of_objects_is_interpreted_at_once(script, fields):
    main = container(script, **fields)
    assert not LiveContainers(IMAGES, Records()).command(pod(main, restartPolicy="Never"), main)


def test_files_of_init_container_depend_on_its_objects():
    first = container("cp /cfg/k /data/k", volumeMounts=MOUNTS) | {"name": "i"}
    main = container("cat /data/k", volumeMounts=MOUNTS[1:])
    assert LiveContainers(IMAGES, Records()).command(pod(main, first), main)
    assert LiveContainers(IMAGES, Records()).command(pod(main, first), first)
    other = container("echo x")
    assert not LiveContainers(IMAGES, Records()).command(pod(other, first), other)


def test_command_with_probes_runs_live():
    main = container('test "$K" = v', env=[KEY], readinessProbe={"tcpSocket": {"port": 80}})
    assert LiveContainers(IMAGES, Records()).command(pod(main, restartPolicy="Never"), main)


def test_command_of_an_image_that_uses_the_network_runs_in_real_time():
    main = {"name": "c", "image": "mainred/client:v2"}
    assert LiveContainers(IMAGES, Records()).command(pod(main), main)[0] == "sh"


@pytest.mark.parametrize(
    ("fields", "is_live"),
    [
        ({}, False),
        ({"volumeMounts": [{"name": "e", "mountPath": "/var/log/nginx"}]}, True),
        ({"volumeMounts": [{"name": "m", "mountPath": "/etc/nginx/nginx.conf", "subPath": "k"}]}, True),
        ({"volumeMounts": [{"name": "m", "mountPath": "/usr/share/nginx/html"}]}, False),
        ({"command": ["nginx", "-g", "daemon off;"]}, True),
        ({"args": ["nginx-debug", "-g", "daemon off;"]}, True),
        ({"command": ["sleep", "1d"], "volumeMounts": [{"name": "m", "mountPath": "/etc/nginx"}]}, False),
        ({"image": "team/nginx", "volumeMounts": [{"name": "m", "mountPath": "/etc/nginx"}]}, False),
    ],
)
def test_server_with_files_of_its_own_runs_in_real_time(fields, is_live):
    main = {"name": "c", "image": "nginx", **fields}
    assert bool(LiveContainers(IMAGES, Records()).command(pod(main), main)) is is_live
