"""Pods whose commands and servers may not write where they have to."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.running_containers import Cluster, shell

USER = {"runAsUser": 1000}
READ_ONLY = {"readOnlyRootFilesystem": True}
DATA = [{"name": "v", "mountPath": "/data"}]
EMPTY = [{"name": "v", "emptyDir": {}}]


PASSWORDS = [
    {"name": f"{name}_PASSWORD", "value": "secret"} for name in ("MYSQL_ROOT", "MARIADB_ROOT", "POSTGRES")
]


def end_of(*, security=None, pod_security=None, image="busybox", text="", volumes=EMPTY, mounts=(), inits=()):
    """Return the exit code and the message of a container that runs once; None if it does not end."""
    command = {"command": ["sh", "-c", text]} if text else {"env": PASSWORDS}
    main = container(
        image=image,
        terminationMessagePolicy="FallbackToLogsOnError",
        securityContext=security or {},
        volumeMounts=list(mounts),
        **command,
    )
    tree = pod(main, policy="Never", volumes=volumes, securityContext=pod_security or {})
    if inits:
        tree["spec"]["initContainers"] = list(inits)
    simulated = SimulatedPod(tree, context=node_context(details=True))
    simulated.pass_time(5)
    [status] = simulated.status["containerStatuses"]
    ended = status["state"].get("terminated")
    return None if ended is None else (ended["exitCode"], ended.get("message", ""))


@pytest.mark.parametrize(
    ("security", "text", "words"),
    [
        (USER, "echo x > /etc/y", "sh: can't create /etc/y: Permission denied\n"),
        (USER, "mkdir /data", "mkdir: can't create directory '/data': Permission denied\n"),
        (READ_ONLY, "echo x > /tmp/y", "sh: can't create /tmp/y: Read-only file system\n"),
        (READ_ONLY, "touch /var/log/y", "touch: /var/log/y: Read-only file system\n"),
    ],
)
def test_command_without_rights_fails(security, text, words):
    code, message = end_of(security=security, text=text)
    assert code
    assert message == words


@pytest.mark.parametrize(
    ("security", "pod_security", "text"),
    [
        (USER, None, "echo x > /tmp/y"),
        (USER, None, "echo x > /data/y"),
        (USER, {"fsGroup": 2000}, "echo x > /data/y; [ $(stat -c %g /data/y) = 2000 ]"),
        (READ_ONLY, None, "echo x > /data/y; echo y > /dev/null; echo z > /dev/termination-log"),
        (None, None, "echo x > /etc/y"),
    ],
)
def test_command_with_rights_succeeds(security, pod_security, text):
    code, _ = end_of(security=security, pod_security=pod_security, text=text, mounts=DATA)
    assert code == 0


@pytest.mark.parametrize(
    "text", ["mkdir -p /app/cache && echo x > /app/cache/y", "mkdir -p /bitnami && touch /bitnami/x"]
)
def test_unknown_folders_of_an_image_may_be_the_users(text):
    assert end_of(security=USER, image="example/app", text=text) == (0, "")
    assert end_of(security=USER, image="busybox", text=text)[0] == 1
    assert end_of(security={**USER, **READ_ONLY}, image="example/app", text=text)[0] == 1


@pytest.mark.parametrize(("owner", "code"), [("1000", 0), ("5", 1)])
def test_init_container_gives_a_volume_to_the_user(owner, code):
    text = f"chown -R {owner} /data; chmod 700 /data"
    init = container("init", image="busybox", command=["sh", "-c", text], volumeMounts=DATA)
    assert end_of(security=USER, text="echo x > /data/y", mounts=DATA, inits=[init])[0] == code


def test_read_only_mount_refuses_writes():
    mounts = [{**DATA[0], "readOnly": True}]
    assert end_of(text="echo x > /data/y", mounts=mounts) == (
        1,
        "sh: can't create /data/y: Read-only file system\n",
    )
    assert end_of(text="mkdir -p /data/a/b", mounts=mounts)[0] == 1


@pytest.mark.parametrize(
    ("kind", "security", "text", "code"),
    [
        pytest.param("DirectoryOrCreate", USER, "echo x > /data/y", 1, id="a folder of root"),
        pytest.param("FileOrCreate", {}, "[ -f /data ] && echo x > /data && cat /data", 0, id="a file"),
    ],
)
async def test_host_path_has_the_rights_of_its_type(kind, security, text, code):
    volumes = [{"name": "v", "hostPath": {"path": "/srv/x", "type": kind}}]
    cluster = Cluster(
        shell(text, securityContext=security, volumeMounts=DATA), restartPolicy="Never", volumes=volumes
    )
    cluster.runtime.start_container(cluster.pod, "c", 0)
    await cluster.advance(1)
    assert cluster.end().code == code


def test_probe_has_the_rights_of_its_container():
    probe = {"exec": {"command": ["touch", "/tmp/alive"]}, "failureThreshold": 1, "periodSeconds": 1}

    def is_ready(security):
        tree = pod(
            container("c", "sleep", "1000", image="busybox", readinessProbe=probe, securityContext=security)
        )
        simulated = SimulatedPod(tree, context=node_context(details=True))
        simulated.pass_time(5)
        return simulated.ready

    assert is_ready(USER)
    assert not is_ready(READ_ONLY)


CACHE = [{"name": "cache", "mountPath": "/var/cache/nginx"}, {"name": "run", "mountPath": "/run"}]
TWO = [{"name": "cache", "emptyDir": {}}, {"name": "run", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("image", "security", "line"),
    [
        (
            "nginx",
            USER,
            'nginx: [emerg] mkdir() "/var/cache/nginx/client_temp" failed (13: Permission denied)',
        ),
        (
            "nginx:1.27-alpine",
            READ_ONLY,
            'nginx: [emerg] mkdir() "/var/cache/nginx/client_temp" failed (30: Read-only file system)',
        ),
        (
            "nginxinc/nginx-unprivileged",
            READ_ONLY,
            'nginx: [emerg] mkdir() "/tmp/proxy_temp" failed (30: Read-only file system)',
        ),
        ("httpd:2.4", USER, "AH00100: httpd: could not log pid to file /usr/local/apache2/logs/httpd.pid"),
        (
            "wordpress:6",
            READ_ONLY,
            "AH00100: apache2: could not log pid to file /var/run/apache2/apache2.pid",
        ),
        ("postgres:16", READ_ONLY, "LOG:  database system is shut down"),
        ("mysql:8", READ_ONLY, "[ERROR] [MY-010119] [Server] Aborting"),
        ("mariadb", READ_ONLY, "[ERROR] Aborting"),
        (
            "grafana/grafana",
            READ_ONLY,
            "mkdir: can't create directory '/var/lib/grafana/plugins': Read-only file system",
        ),
    ],
)
def test_server_that_cannot_write_ends(image, security, line):
    code, message = end_of(image=image, security=security)
    assert code == 1
    assert message.splitlines()[-1] == line


@pytest.mark.parametrize(
    ("image", "security", "mounts"),
    [
        ("nginx", None, ()),
        ("nginx", READ_ONLY, CACHE),
        ("nginx", {**READ_ONLY, **USER}, CACHE),
        ("nginx", {**READ_ONLY, **USER}, [CACHE[0], {"name": "run", "mountPath": "/var/run"}]),
        ("nginxinc/nginx-unprivileged", None, ()),
        ("redis", {**READ_ONLY, "runAsUser": 999}, ()),
        ("postgres", {"runAsUser": 999}, ()),
        ("mysql", USER, ()),
        ("mariadb", USER, ()),
        ("wordpress:6", USER, ()),
        ("grafana/grafana", None, ()),
        ("example/nginx-like", {**READ_ONLY, **USER}, ()),
        ("nginx", USER, [{"name": "cache", "mountPath": "/etc/nginx/nginx.conf", "subPath": "nginx.conf"}]),
    ],
)
def test_server_that_can_write_runs(image, security, mounts):
    assert end_of(image=image, security=security, volumes=TWO, mounts=mounts) is None


def test_second_folder_is_needed_as_well():
    code, message = end_of(image="nginx", security=READ_ONLY, volumes=TWO, mounts=CACHE[:1])
    assert (code, message.splitlines()[-1]) == (
        1,
        'nginx: [emerg] open() "/run/nginx.pid" failed (30: Read-only file system)',
    )


def test_read_only_mount_of_the_folder_does_not_heal_it():
    mounts = [{**mount, "readOnly": True} for mount in CACHE]
    assert end_of(image="nginx", volumes=TWO, mounts=mounts)[0] == 1


def test_server_that_cannot_write_backs_off():
    simulated = SimulatedPod(pod(container(securityContext=READ_ONLY)), context=node_context(details=True))
    simulated.pass_time(5)
    assert simulated.containers() == {"c": "CrashLoopBackOff"}
