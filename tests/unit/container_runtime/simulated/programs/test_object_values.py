"""The commands whose results depend on API objects."""

import pytest

from mockube.container_runtime.simulated.programs.commands import depends_on_objects, live_command

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
    assert live_command(pod(main, restartPolicy="Never"), main)
    assert depends_on_objects(pod(main), main)
    assert not live_command(pod(main), main)


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
        ("test -s /etc/application || test -d /etc/ap", {"volumeMounts": SUB_PATH}),
    ],
)
def test_command_without_values_of_objects_is_interpreted_at_once(script, fields):
    main = container(script, **fields)
    assert not live_command(pod(main, restartPolicy="Never"), main)
    assert not depends_on_objects(pod(main), main)


def test_files_of_init_container_depend_on_its_objects():
    first = container("cp /cfg/k /data/k", volumeMounts=MOUNTS) | {"name": "i"}
    main = container("cat /data/k", volumeMounts=MOUNTS[1:])
    assert depends_on_objects(pod(main, first), main)
    assert live_command(pod(main, first), first)
    assert not depends_on_objects(pod(container("cat /x"), first), container("cat /x"))


def test_command_with_probes_is_not_live():
    main = container('test "$K" = v', env=[KEY], readinessProbe={"tcpSocket": {"port": 80}})
    assert not live_command(pod(main, restartPolicy="Never"), main)
