"""The files of a node: what the system writes, and what is kept of the changes."""

import pytest

from mockube.container_runtime.simulated.files.machine_folder import MachineFolder
from mockube.container_runtime.simulated.node.node_files import FolderNodeInodes, NodeInodes
from mockube.container_runtime.simulated.node.root_files import os_release, root_files
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.node_machine import NODE, SERVER

POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
    "spec": {
        "containers": [{"name": "c"}],
        "volumes": [{"name": "v", "hostPath": {"path": "/data", "type": "DirectoryOrCreate"}}],
    },
    "status": {
        "containerStatuses": [
            {
                "name": "c",
                "restartCount": 1,
                "containerID": "mockube://abc",
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            }
        ]
    },
}


def system(*pods, server=SERVER):
    return root_files(NODE, pods, server=server, authority=b"CA")


@pytest.fixture
def changes():
    return []


@pytest.fixture
def files(changes):
    return FileSystem(inodes=NodeInodes(system(), lambda: changes.append(1)))


def kept(files):
    return {path for path, _ in files.inodes.changes()}


def test_files_of_the_system_are_no_changes(files, changes):
    assert files.read("/etc/hostname") == b"node-1\n"
    assert (kept(files), changes) == (set(), [])


def test_changes_and_removals_are_kept(files, changes):
    files.write("/etc/kubernetes/manifests/web.yaml", b"kind: Pod")
    files.remove("/etc/hosts")
    assert kept(files) == {"/etc/kubernetes/manifests/web.yaml", "/etc/hosts"}
    restored = FileSystem(inodes=NodeInodes(system(), lambda: None))
    restored.inodes.replace_contents(dict(files.inodes.changes()))
    assert restored.read("/etc/kubernetes/manifests/web.yaml") == b"kind: Pod"
    assert not restored.exists("/etc/hosts")
    assert restored.exists("/etc/hostname")
    assert changes


def test_update_of_the_system_keeps_what_users_have_changed(files, changes):
    files.write("/etc/hosts", b"mine\n")
    written = len(changes)
    files.inodes.update_system(system(POD, server="https://other:6443"))
    assert files.read("/etc/hosts") == b"mine\n"
    assert b"https://other:6443" in files.read("/etc/kubernetes/kubelet.conf")
    assert files.exists("/var/log/containers/web_default_c-abc.log")
    assert files.exists("/data")
    assert len(changes) == written
    files.inodes.update_system(system())
    assert not files.exists("/var/log/pods/default_web_u1/c/1.log")


def test_log_of_the_system_is_no_change(files):
    files.inodes.update_system(system(POD))
    files.inodes.write_by_system("/var/log/pods/default_web_u1/c/1.log", b"line\n")
    assert files.read("/var/log/containers/web_default_c-abc.log") == b"line\n"
    assert kept(files) == set()
    files.inodes.update_system(system(POD))
    assert kept(files) == set()


def test_link_to_a_folder_leads_to_it(files):
    assert files.resolve("/var/run/containerd/containerd.sock") == "/run/containerd/containerd.sock"
    assert files.exists("/bin/crictl")


@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("Ubuntu 24.04.1 LTS", "ID=ubuntu"),
        ("Debian GNU/Linux 12 (bookworm)", 'VERSION_ID="12"'),
        ("mockube", 'PRETTY_NAME="mockube"'),
    ],
)
def test_release_file_names_the_system_of_the_node(image, line):
    assert line in os_release(image).splitlines()


def test_control_plane_has_a_kubeconfig_of_the_administrator():
    labels = {"node-role.kubernetes.io/control-plane": ""}
    node = {**NODE, "metadata": {**NODE["metadata"], "labels": labels}}
    admin = "/etc/kubernetes/admin.conf"
    assert admin in root_files(node, (), server=SERVER, authority=b"CA")
    assert admin not in system()


@pytest.mark.parametrize(
    ("file", "server"),
    [
        ("admin", SERVER),
        ("super-admin", SERVER),
        ("kubelet", "https://172.18.0.1:6443"),
        ("controller-manager", "https://172.18.0.1:6443"),
        ("scheduler", "https://172.18.0.1:6443"),
    ],
)
def test_components_of_a_control_plane_node_use_its_own_api_server(file, server):
    labels = {"node-role.kubernetes.io/control-plane": ""}
    node = {**NODE, "metadata": {**NODE["metadata"], "labels": labels}}
    files = root_files(node, (), server=SERVER, authority=b"CA")
    assert f"server: {server}\n" in files[f"/etc/kubernetes/{file}.conf"].data.decode()
    assert f"server: {SERVER}\n" in system()["/etc/kubernetes/kubelet.conf"].data.decode()


def test_kubelet_and_node_name_the_name_server_of_the_cluster():
    files = root_files(NODE, (), server=SERVER, authority=b"CA", cluster_dns="10.7.0.10")
    assert files["/etc/resolv.conf"].data.startswith(b"nameserver 10.7.0.10\n")
    assert b"clusterDNS:\n- 10.7.0.10\n" in files["/var/lib/kubelet/config.yaml"].data


def test_file_without_an_owner_stays(files):
    files.inodes.put("/root/mine", FileEntry(data=b"x"))
    files.inodes.update_system(system())
    assert files.read("/root/mine") == b"x"


@pytest.fixture
def in_folder(files, tmp_path):
    """The files after a process has mounted some of them."""
    moved = FolderNodeInodes(MachineFolder(tmp_path), files.inodes)
    moved.fill(files.inodes.entries)
    return FileSystem(inodes=moved)


def test_node_whose_files_a_process_mounts_has_its_disk(files, in_folder):
    assert in_folder.inodes.source == files.inodes.source
    assert in_folder.read("/etc/hostname") == b"node-1\n"


def test_system_writes_where_a_process_mounts_files_of_the_node(in_folder):
    reported = []
    in_folder.inodes.on_change = lambda: reported.append(1)
    in_folder.inodes.update_system(system(POD))
    log = "/var/log/pods/default_web_u1/c/1.log"
    in_folder.inodes.write_by_system(log, b"a line\n")
    in_folder.inodes.write_by_system("/srv/x", b"no file of the system")
    assert (in_folder.read(log), in_folder.exists("/srv/x"), reported) == (b"a line\n", False, [])
    in_folder.write("/etc/hosts", b"changed")
    in_folder.inodes.update_system(system())
    assert (in_folder.exists(log), in_folder.read("/etc/hosts")) == (False, b"changed")


def test_only_changes_are_kept_where_a_process_mounts_files_of_the_node(in_folder):
    in_folder.inodes.update_system(system(POD))
    in_folder.inodes.write_by_system("/var/log/pods/default_web_u1/c/1.log", b"a line\n")
    in_folder.write("/srv/x", b"written by a process")
    in_folder.remove("/etc/hosts")
    kept, left_out = in_folder.inodes.entries_with_data(1 << 20)
    assert ({*kept}, left_out) == ({"/srv/x", "/etc/hosts"}, ())
    in_folder.remove("/srv/x")
    in_folder.remove("/etc/hostname")
    in_folder.inodes.replace_contents(kept)
    assert (in_folder.read("/srv/x"), in_folder.read("/etc/hostname")) == (
        b"written by a process",
        b"node-1\n",
    )
    assert not in_folder.exists("/etc/hosts")
