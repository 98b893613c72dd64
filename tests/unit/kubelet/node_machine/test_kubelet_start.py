"""What happens when systemd starts the kubelet of a node, as its unit and its settings say."""

import pytest

from mockube.container_runtime.simulated.node.root_files import KUBELET_DROP_IN, KUBELET_UNIT, root_files
from mockube.kubelet.node_machine.kubelet_start import BINARY, configuration, start_kubelet
from tests.support.node_machine import NODE, SERVER

CONFIG = "/var/lib/kubelet/config.yaml"
KUBECONFIG = "/etc/kubernetes/kubelet.conf"
OTHER = "https://172.18.0.9:6443"
"""The API server of another control-plane node."""
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"


class Files(dict):
    """The files of a node by path."""

    def replace(self, path, old, new):
        assert old in self[path].decode()
        self[path] = self[path].decode().replace(old, new).encode()


@pytest.fixture
def files():
    entries = root_files(NODE, (), server=SERVER, authority=b"CA")
    return Files({path: entry.data for path, entry in entries.items() if entry.data is not None})


def start(files, *, has_runtime=True, server=SERVER):
    texts = [files[path].decode() for path in (KUBELET_UNIT, KUBELET_DROP_IN) if path in files]
    return start_kubelet(files.get, texts, servers=[server, OTHER], has_runtime=has_runtime)


def test_kubelet_of_kubeadm_runs(files):
    result = start(files)
    assert (result.state, result.problem, result.unreachable) == ("running", "", "")
    assert result.command.split()[0] == BINARY
    assert "--container-runtime-endpoint=unix:///run/containerd/containerd.sock" in result.command


def test_kubelet_reaches_the_api_server_of_any_control_plane_node(files):
    files.replace(KUBECONFIG, SERVER, OTHER)
    assert start(files).unreachable == ""


def test_wrong_binary_cannot_be_executed(files):
    files.replace(KUBELET_DROP_IN, "ExecStart=/usr/bin/kubelet $", "ExecStart=/usr/local/bin/kubelet $")
    result = start(files)
    assert (result.state, result.status) == ("failed", "203/EXEC")
    assert result.problem.endswith(
        "Failed at step EXEC spawning /usr/local/bin/kubelet: No such file or directory"
    )


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (CONFIG, "pki/ca.crt", "pki/CA.crt", "unable to load client CA file /etc/kubernetes/pki/CA.crt: open /etc/kubernetes/pki/CA.crt: no such"),
        (CONFIG, "kind: KubeletConfiguration", "kind: Kubelet", 'no kind \\"Kubelet\\" is registered for version'),
        (CONFIG, "clusterDNS:\n- 10.0.0.10", "clusterDNS: 10.0.0.10", "cannot unmarshal string into Go struct field KubeletConfiguration.clusterDNS"),
        (CONFIG, "kind: KubeletConfiguration", "kind: [", "json parse error"),
        (KUBELET_DROP_IN, "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/confg.yaml", "failed to read kubelet config file"),
        (KUBELET_DROP_IN, "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/nosuch.conf", "unable to load bootstrap kubeconfig: stat"),
        (FLAGS, "--container", "--contaner", "failed to parse kubelet flag: unknown flag: --contaner-runtime-endpoint"),
        (FLAGS, "containerd.sock", "containerd.sok", "dial unix /run/containerd/containerd.sok: connect: no such file or directory"),
        (KUBECONFIG, "current-context: default", "current-context: other", "context was not found for specified context: other-auth"),
        (KUBECONFIG, "apiVersion: v1", "apiVersion: [", "error loading config file: yaml"),
    ],
)  # fmt: skip
def test_mistake_in_a_file_ends_the_kubelet(files, path, old, new, message):
    files.replace(path, old, new)
    result = start(files)
    assert (result.state, result.status) == ("failed", "1/FAILURE")
    assert message in result.problem
    assert result.problem.startswith('"command failed" err="')


def test_missing_file_ends_the_kubelet(files):
    del files[CONFIG]
    assert "open /var/lib/kubelet/config.yaml: no such file or directory" in start(files).problem


def test_kubelet_without_a_container_runtime_ends(files):
    assert "validate CRI v1 runtime API" in start(files, has_runtime=False).problem


def test_wrong_port_of_the_api_server_cuts_the_kubelet_off(files):
    files.replace(KUBECONFIG, ":6443", ":64433")
    result = start(files)
    assert (result.state, result.unreachable) == ("cut-off", "https://10.0.0.9:64433")


@pytest.mark.parametrize(
    "text", [b"", b"\xff", b"- a", b"a: [", None, b"kind: {}", b"apiVersion: 1\nkind: x"]
)
def test_unreadable_settings_are_none(files, text):
    assert configuration(text) == {}
    files[KUBECONFIG] = text
    assert start(files).state == "failed" or text is not None
    files[CONFIG] = text
    assert start(files).state == "failed"


@pytest.mark.parametrize(
    "unit", [[], ["ExecStart="], ["ExecStart='"], ['Environment="\nExecStart=/usr/bin/kubelet $X ${Y}']]
)
def test_unit_of_nonsense_leads_to_a_result(files, unit):
    assert start_kubelet(files.get, unit, servers=[SERVER], has_runtime=True).state in ("failed", "running")
