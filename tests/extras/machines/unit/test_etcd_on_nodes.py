"""etcdctl and etcdutl on control-plane nodes."""

import orjson
import pytest

from mockube.apimachinery.kubeadm_releases import VERSIONS
from mockube.apimachinery.schema import minors
from mockube.container_runtime.etcd_snapshots import DATABASE, EtcdSnapshot, data_folder, decode, encode
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.extras.machines.etcd import MANIFEST, NEWEST_VERSION
from tests.support.node_machine import NODE, Machine

CONTROL_PLANE = {
    **NODE,
    "metadata": {
        **NODE["metadata"],
        "name": "control-plane-1",
        "labels": {"node-role.kubernetes.io/control-plane": ""},
    },
}
PKI = "/etc/kubernetes/pki/etcd"
CREDENTIALS = (f"--cacert={PKI}/ca.crt", f"--cert={PKI}/server.crt", f"--key={PKI}/server.key")
MEMBER = {"name": "control-plane-1", "address": "172.18.0.1", "runs": True}
STATUS = {"members": [MEMBER], "revision": 1234, "keys": 400, "size": 2_100_000}


@pytest.fixture
def machine():
    return Machine(CONTROL_PLANE, **{"etcd": STATUS, "etcd.check": None})


def etcdctl(machine, *arguments):
    return machine.run("etcdctl", *CREDENTIALS, *arguments)


def test_etcd_is_healthy(machine):
    code, output, _ = etcdctl(machine, "endpoint", "health")
    assert (code, output.startswith("127.0.0.1:2379 is healthy: successfully committed proposal")) == (
        0,
        True,
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "error reading server preface: EOF"),
        (
            (*CREDENTIALS, "--endpoints=https://127.0.0.1:2378"),
            "dial tcp 127.0.0.1:2378: connect: connection refused",
        ),
        (
            (*CREDENTIALS[1:], "--cacert=/etc/kubernetes/pki/ca.crt"),
            "certificate signed by unknown authority",
        ),
        ((*CREDENTIALS[::2], "--cert=/etc/kubernetes/pki/ca.crt"), "remote error: tls: bad certificate"),
    ],
)
def test_wrong_connection_ends_after_its_timeout(machine, arguments, problem):
    code, output, errors = machine.run("etcdctl", "member", "list", *arguments)
    assert (code, output) == (1, "")
    assert problem in errors
    assert errors.endswith("Error: context deadline exceeded\n")
    assert machine.run("etcdctl", "endpoint", "health", *arguments)[2].endswith("Error: unhealthy cluster\n")


def test_missing_file_is_named(machine):
    code, _, errors = machine.run("etcdctl", *CREDENTIALS[1:], "--cacert=/none", "member", "list")
    assert (code, errors) == (1, "Error: open /none: no such file or directory\n")


def test_etcd_that_does_not_run_refuses_connections(machine):
    machine.services["etcd"] = {**STATUS, "members": [{**MEMBER, "runs": False}]}
    assert "connection refused" in etcdctl(machine, "snapshot", "save", "/tmp/x")[2]


def test_members_and_status_in_all_formats(machine):
    row = etcdctl(machine, "member", "list")[1].strip().split(", ")
    assert row[1:] == [
        "started", "control-plane-1", "https://172.18.0.1:2380", "https://172.18.0.1:2379", "false"
    ]  # fmt: skip
    assert (
        etcdctl(machine, "member", "list", "-w", "table")[1].splitlines()[1].split(" | ")[0].strip("| ")
        == "ID"
    )
    (shown,) = orjson.loads(etcdctl(machine, "endpoint", "status", "--cluster", "-w", "json")[1])
    assert shown["Endpoint"] == "https://172.18.0.1:2379"
    assert shown["Status"]["header"]["revision"] == 1234
    assert "2.1 MB, 2.1 MB" in etcdctl(machine, "endpoint", "status")[1]
    assert "unsupported output format" in etcdctl(machine, "member", "list", "-w", "xml")[2]


def test_variables_of_the_environment_are_read(machine):
    names = {"CACERT": "ca.crt", "CERT": "server.crt", "KEY": "server.key"}
    settings = " ".join(f"ETCDCTL_{name}={PKI}/{file}" for name, file in names.items())
    assert "is healthy" in machine.run("sh", "-c", f"{settings} etcdctl endpoint health")[1]


def test_snapshot_is_saved_shown_and_restored(machine):
    assert "Snapshot saved at backup.db\n" in etcdctl(machine, "snapshot", "save", "backup.db")[1]
    shown = machine.run("etcdutl", "snapshot", "status", "backup.db")[1].strip().split(", ")
    assert shown[1:] == ["1234", "400", "2.1 MB", "3.7.0"]
    restore = ("snapshot", "restore", "backup.db")
    assert (
        'data-dir "/var/lib/etcd" not empty'
        in machine.run("etcdutl", *restore, "--data-dir=/var/lib/etcd")[2]
    )
    code, _, errors = machine.run("etcdctl", *restore, "--data-dir=/var/lib/other")
    assert (code, "Deprecated: Use `etcdutl snapshot restore` instead." in errors) == (0, True)
    restored = decode(machine.files.read(f"/var/lib/other/{DATABASE}"))
    assert (restored.revision, bool(restored.restored)) == (1234, True)
    assert ("etcd.check", {"revision": 1234}) in machine.requests


def test_snapshot_before_the_history_is_not_restored(machine):
    def refuse(_):
        raise ServiceFailed("1234 is before the history")

    machine.services["etcd.check"] = refuse
    etcdctl(machine, "snapshot", "save", "/b.db")
    code, _, errors = machine.run("etcdutl", "snapshot", "restore", "/b.db", "--data-dir=/d")
    assert (code, "1234 is before the history" in errors, machine.files.exists("/d")) == (1, True, False)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("etcdutl snapshot status /none", "stat /none: no such file or directory"),
        ("etcdutl snapshot status /etc/hosts", "snapshot file integrity check failed"),
        ("etcdutl snapshot status", "requires exactly one argument"),
        ("etcdctl snapshot save", "snapshot save expects one argument"),
        ("etcdctl --foo", "Error: unknown flag: --foo"),
        ("etcdctl get /registry", "etcdctl get /registry is not simulated on a node"),
        ("etcdutl defrag", "etcdutl defrag is not simulated on a node"),
    ],
)
def test_wrong_use_is_reported(machine, command, message):
    code, _, errors = machine.run(*command.split())
    assert (code != 0, message in errors) == (True, True)


def test_worker_has_no_etcdctl():
    assert machine_code(Machine()) == 127


def machine_code(machine):
    return machine.run("sh", "-c", "etcdctl version")[0]


def test_data_folder_is_the_host_path_at_the_folder_of_the_flag():
    mounts = [{"name": "data", "mountPath": "/var/lib/etcd"}]
    container = {"command": ["etcd", "--data-dir=/var/lib/etcd/"], "volumeMounts": mounts}
    volumes = [{"name": "data", "hostPath": {"path": "/other/"}}]
    assert data_folder({"spec": {"containers": [container], "volumes": volumes}}) == "/other"
    assert data_folder({"spec": {"containers": [container], "volumes": [{"name": "data"}]}}) == ""
    assert data_folder({"spec": {"containers": [{}]}}) == ""


def test_other_files_are_no_snapshots():
    snapshot = EtcdSnapshot(revision=1, keys=2, size=3, version="3")
    assert decode(encode(snapshot)) == snapshot
    assert decode(encode(snapshot)[:-5]) is None
    assert decode(b"SQLite") is None


@pytest.mark.parametrize(
    ("image", "version", "api", "storage"),
    [
        ("registry.k8s.io/etcd:3.6.8-0", "3.6.8", "3.6", "3.6.0"),
        ("quay.io/coreos/etcd:v3.5.24", "3.5.24", "3.5", "3.5.0"),
    ],
)
def test_version_is_that_of_the_image_in_the_manifest(machine, image, version, api, storage):
    machine.files.write(MANIFEST, f"spec:\n  containers:\n  - image: {image}\n".encode())
    assert machine.run("etcdctl", "version")[1] == f"etcdctl version: {version}\nAPI version: {api}\n"
    assert machine.run("etcdutl", "version")[1] == f"etcdutl version: {version}\nAPI version: {api}\n"
    status = etcdctl(machine, "endpoint", "status")[1].split(", ")
    assert status[2:4] == [version, storage]
    assert f"Server version {version}\n" in etcdctl(machine, "snapshot", "save", "/tmp/s")[1]
    assert f", {storage}\n" in machine.run("etcdutl", "snapshot", "status", "/tmp/s")[1]


def test_version_without_a_manifest_is_that_of_the_newest_release(machine):
    assert machine.run("etcdctl", "version")[1].startswith(f"etcdctl version: {NEWEST_VERSION}\n")
    assert VERSIONS[minors.NEWEST].etcd.startswith(f"{NEWEST_VERSION}-")
