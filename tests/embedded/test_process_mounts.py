"""Containers as local processes find their volumes at their own paths, as any user."""

import os
import socket
import subprocess
import sys

import pytest
from kubernetes import client as official
from kubernetes import watch
from kubernetes.stream import stream

from mockube import Cluster
from mockube.container_runtime.process.namespace_support import NamespaceSupport, Support
from tests.support.process_pods import IMAGES, create, events, is_over, python, status_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
USER = 65534
AS_USER = {"runAsUser": USER, "runAsNonRoot": True, "fsGroup": 2000, "supplementalGroups": [3000]}
OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  run.sh: "#!/bin/sh\\necho $0; cat /scripts/note; echo ended > /dev/termination-log"
  note: "a note\\n"
"""
SHELL = ["sh", "-c"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run processes as another user")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    (folder / "manager").write_text("of the image\n")
    images = {
        **IMAGES,
        "example.org/plain": {},
        "example.org/sh": {"command": SHELL},
        "example.org/user": {"command": SHELL, "user": f"{USER}:{USER}"},
        "example.org/files": {
            "command": SHELL,
            "directory": "/",
            "files": {
                "/operator/manager": str(folder / "manager"),
                "/data": str(folder),
                "/hidden": str(folder),
            },
        },
        "example.org/without-file": {"command": SHELL, "files": {"/x": "/mockube-missing"}},
    }
    with Cluster(nodes=1, images=images) as started:
        started.apply(OBJECTS)
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


@pytest.fixture
def mounts(cluster, pods):
    """Skip the test where the kernel or a sandbox allows no mount namespaces."""
    name = create(pods, python("import os; print(os.environ['MOCKUBE_ROOT'])"), policy="Never")
    cluster.wait("Pod", name, is_over)
    if pods.read_namespaced_pod_log(name, "default") != "/\n":
        pytest.skip("this machine allows no mount namespaces")


def shell(script, image="example.org/sh", **fields):
    return {"name": "c", "image": image, "args": [script], **fields}


def executed(pods, name, script):
    command = ["sh", "-c", script]
    return stream(pods.connect_get_namespaced_pod_exec, name, "default", command=command, stdout=True)


def volume_mounts(*paths, **fields):
    return [{"name": "v", "mountPath": path, **fields} for path in paths]


def output(cluster, pods, container, **spec):
    name = create(pods, container, policy="Never", **spec)
    pod = cluster.wait("Pod", name, is_over)
    return pods.read_namespaced_pod_log(name, "default"), status_of(pod)["state"]["terminated"]


@pytest.mark.usefixtures("mounts")
def test_script_in_a_volume_runs_at_its_own_path(cluster, pods):
    container = {
        "name": "c",
        "image": "example.org/plain",
        "command": ["/scripts/run.sh"],
        "volumeMounts": volume_mounts("/scripts"),
    }
    volumes = [{"name": "v", "configMap": {"name": "scripts", "defaultMode": 0o755}}]
    text, end = output(cluster, pods, container, volumes=volumes)
    assert (text, end["exitCode"], end["message"]) == ("/scripts/run.sh\na note\n", 0, "ended\n")


@pytest.mark.usefixtures("mounts")
def test_mounts_hide_folders_of_the_machine_and_other_mounts(cluster, pods):
    script = """
import os
for path in ("/srv/file", "/srv/certs/file", "/var/run/secrets/kubernetes.io/serviceaccount/file", "/etc/passwd.d/file"):
    try:
        open(path, "w").close()
        print(path, "written")
    except OSError as error:
        print(path, error.strerror)
print(os.path.exists("/etc/passwd"), sorted(os.listdir("/srv/certs")), os.getcwd())
"""
    paths = ("/srv", "/srv/certs", "/etc/passwd.d")
    container = python(script, volumeMounts=volume_mounts(*paths), workingDir="/srv/certs")
    text, _ = output(cluster, pods, container, volumes=[{"name": "v", "emptyDir": {}}])
    account = "/var/run/secrets/kubernetes.io/serviceaccount/file"
    written = [f"{path}/file written" for path in paths]
    assert text.splitlines() == [
        *written[:2],
        f"{account} Read-only file system",
        written[2],
        "True ['certs', 'file'] /srv/certs",
    ]


PRINT_CHANGES = """
import os, pathlib
folder, before = pathlib.Path(os.environ["MOCKUBE_ROOT"], "v"), ""
while True:
    try:
        text = " ".join(f"{name}={(folder / name).read_text()}" for name in sorted(os.listdir(folder)) if name[0] != ".")
    except FileNotFoundError:  # The files are being replaced.
        continue
    if text != before:
        print(text)
    before = text
"""


@pytest.mark.usefixtures("mounts")
def test_image_has_files_of_the_machine(cluster, pods):
    script = "cat operator/manager; echo x 2>/dev/null >operator/manager || echo read-only; ls /data /hidden | grep ."
    container = shell(script, image="example.org/files", volumeMounts=volume_mounts("/hidden"))
    text, end = output(cluster, pods, container, volumes=[{"name": "v", "emptyDir": {}}])
    assert text.splitlines() == ["of the image", "read-only", "/data:", "manager", "/hidden:"]
    assert end["exitCode"] == 0


def test_missing_file_of_image_is_named(cluster, pods):
    name = create(pods, shell("true", image="example.org/without-file"), policy="Never")
    end = status_of(cluster.wait("Pod", name, is_over))["state"]["terminated"]
    assert end["reason"] == "StartError"
    assert end["message"].endswith(": /x of the image: /mockube-missing does not exist")


def test_volume_below_proc_is_refused(cluster, pods):
    container = shell("true") | {"volumeMounts": volume_mounts("/x/../proc/1")}
    name = create(pods, container, policy="Never", volumes=[{"name": "v", "emptyDir": {}}])
    end = status_of(cluster.wait("Pod", name, is_over))["state"]["terminated"]
    assert end["reason"] == "StartError"
    assert end["message"].endswith('"/proc/1" cannot be mounted because it is inside /proc')


def test_changed_config_map_reaches_running_process(cluster, pods):
    cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: changing}, data: {a: old}}")
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    name = create(
        pods,
        python(PRINT_CHANGES, **mount),
        volumes=[{"name": "v", "configMap": {"name": "changing"}}],
    )
    cluster.wait("Pod", name, "Ready")
    lines = watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")
    assert next(lines) == "a=old"
    cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: changing}, data: {a: new, b: more}}")
    cluster.advance(61)
    assert next(line for line in lines if "b=" in line) == "a=new b=more"


AS_OTHER = """
id -u; id -g; id -G
for file in $MOCKUBE_ROOT/var/run/secrets/kubernetes.io/serviceaccount/token $KUBECONFIG $MOCKUBE_ROOT/s/note; do
    test $(wc -c <$file) -gt 5 && echo read
done
for folder in $HOME $TMPDIR $MOCKUBE_ROOT/v; do echo x >$folder/of-another-user; done
echo -n done >$MOCKUBE_ROOT/dev/termination-log
"""


@needs_root
@pytest.mark.parametrize("can_mount", [True, False])
def test_process_of_another_user_reads_and_writes_its_files(cluster, pods, monkeypatch, can_mount):
    if not can_mount:

        async def refuse(_):
            return Support()

        monkeypatch.setattr(NamespaceSupport, "check", refuse)
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "s", "configMap": {"name": "scripts"}}]
    places = [*volume_mounts("/v"), {"name": "s", "mountPath": "/s"}]
    with Cluster(nodes=1, images={"example.org/sh": {"command": SHELL}}) as own:
        own.apply(OBJECTS)
        own_pods = official.CoreV1Api(own.kubernetes())
        text, end = output(
            own, own_pods, shell(AS_OTHER, volumeMounts=places), volumes=volumes, securityContext=AS_USER
        )
    lines = [str(USER), str(USER), f"{USER} 2000 3000", "read", "read", "read"]
    assert (text.splitlines(), end["message"]) == (lines, "done")


@needs_root
def test_user_of_the_image_counts_as_not_root(cluster, pods):
    container = shell("id -u; id -G", image="example.org/user", securityContext={"runAsNonRoot": True})
    text, _ = output(cluster, pods, container)
    assert text == f"{USER}\n{USER}\n"


def test_taken_port_of_machine_is_replaced_if_command_names_it():
    on_host = Cluster(nodes=1, images=IMAGES, manager_flags=["--pod-network=host"])
    with on_host as cluster, socket.create_server(("127.0.0.1", 0)) as listener:
        pods = official.CoreV1Api(cluster.kubernetes())
        port = listener.getsockname()[1]
        ports = [{"containerPort": port}]
        told = python(f"import os; print(os.environ['MOCKUBE_PORT_{port}'] != '{port}')", ports=ports)
        untold = python("import os; print([*os.environ.items()][-1] != 1)", ports=ports)
        for container in (told, untold):
            name = create(pods, container, policy="Never")
            cluster.wait("Pod", name, is_over)
            assert pods.read_namespaced_pod_log(name, "default") == "True\n"
            solution = (
                "the container has " if container is told else f"name $(MOCKUBE_PORT_{port}) in the command"
            )
            (message,) = [text for reason, text in events(cluster, name) if reason == "PortTaken"]
            assert message.startswith(f"port {port} of this machine is taken: {solution}")


@pytest.mark.usefixtures("mounts")
def test_commands_start_while_files_of_the_machine_come_and_go(cluster, pods):
    script = """
import os, tempfile
folder = tempfile.gettempdir()
for number in range(10**9):
    path = f"{folder}/mockube-test-{number % 7}"
    os.mkdir(path) if number % 2 else open(path, "w").close()
    os.rmdir(path) if number % 2 else os.remove(path)
"""
    with subprocess.Popen([sys.executable, "-c", script]) as churn:
        try:
            name = create(pods, shell("sleep 1000"))
            cluster.wait("Pod", name, "Ready")
            for _ in range(20):
                assert executed(pods, name, "echo started") == "started\n"
        finally:
            churn.kill()
