"""What happens when systemd starts the kubelet of a node, as its unit and its settings say."""

import orjson
import pytest

from mockube.container_runtime.simulated.node.root_files import KUBELET_DROP_IN, KUBELET_UNIT, root_files
from mockube.kubelet.node_machine.kubelet_start import (
    BINARY,
    _kubeconfig_problem,
    _settings,
    configuration,
    start_kubelet,
)
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


TYPES = {
    "string": "clusterDomain staticPodPath containerRuntimeEndpoint cgroupDriver",
    "int32": "maxPods port healthzPort readOnlyPort",
    "bool": "failSwapOn rotateCertificates",
    "[]string": "clusterDNS",
    "struct": "authentication authorization featureGates evictionHard",
}
VALUES = {
    "string": ("a", "string"),
    "int32": (1, "number"),
    "bool": (True, "bool"),
    "[]string": (["a"], "array"),
    "struct": ({}, "object"),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, names in TYPES.items() for name in names.split()]
)
def test_setting_of_another_type_ends_the_kubelet(name, kind):
    head = {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}
    for given, (value, go_type) in VALUES.items():
        found, problem = _settings(orjson.dumps({**head, name: value}))
        if given == kind:
            assert (found[name], problem) == (value, "")
        else:
            field = f"KubeletConfiguration.{name} of type {kind}"
            assert problem == f"json: cannot unmarshal {go_type} into Go struct field {field}"
            assert found == {}
    assert _settings(orjson.dumps({**head, name: None}))[1] == ""


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({}, "Object 'Kind' is missing in the file"),
        ({"apiVersion": "v1"}, "Object 'Kind' is missing in the file"),
        ({"kind": "Pod"}, "Object 'apiVersion' is missing in the file"),
        ({"kind": "Pod", "apiVersion": "v1"}, 'no kind "Pod" is registered for version "/v1" in scheme "k8s.io/kubernetes"'),
        (
            {"kind": "KubeletConfiguration", "apiVersion": "a/v1"},
            'no kind "KubeletConfiguration" is registered for version "a/v1" in scheme "k8s.io/kubernetes"',
        ),
    ],
)  # fmt: skip
def test_settings_are_of_their_kind(tree, problem):
    assert _settings(orjson.dumps(tree)) == ({}, problem)


CONTEXT = {"name": "c", "context": {"cluster": "k"}}
CLUSTER = {"name": "k", "cluster": {"server": "https://a"}}
NO_SERVER = "invalid configuration: no server found for cluster"


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"current-context": "c", "contexts": [CONTEXT], "clusters": [CLUSTER]}, ""),
        ({"current-context": "c", "contexts": [CONTEXT, "x"], "clusters": [CLUSTER]}, NO_SERVER),
        ({"current-context": "c", "contexts": [CONTEXT]}, NO_SERVER),
        ({"contexts": [CONTEXT], "clusters": [CLUSTER]}, NO_SERVER),
        ({"current-context": "d", "contexts": [CONTEXT]}, "invalid configuration: context was not found for specified context: d"),
        ({"current-context": "d"}, "invalid configuration: context was not found for specified context: d"),
        (
            ["x"],
            "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable",
        ),
    ],
)  # fmt: skip
def test_kubeconfig_needs_a_server(tree, problem):
    assert _kubeconfig_problem(orjson.dumps(tree)) == problem


UNIT = "[Service]\nExecStart=/usr/bin/kubelet {}"


@pytest.mark.parametrize(
    ("unit", "command"),
    [
        ([UNIT.format("--v=2")], "/usr/bin/kubelet --v=2"),
        ([UNIT.format("--v=2"), "ExecStart=", "ExecStart=/usr/bin/kubelet"], "/usr/bin/kubelet"),
        (
            ['Environment="A=--v=2" B=1', UNIT.format("$A --max-pods=${B} $C")],
            "/usr/bin/kubelet --v=2 --max-pods=1",
        ),
        (["Environment='", UNIT.format("$A")], "/usr/bin/kubelet"),
        (["EnvironmentFile=-/env", UNIT.format("$A $B $C")], "/usr/bin/kubelet --v=1 two"),
        (["EnvironmentFile=-/none", UNIT.format("$A")], "/usr/bin/kubelet"),
        ([UNIT.format("--v=2 \\\n --max-pods=1")], "/usr/bin/kubelet --v=2 --max-pods=1"),
    ],
)
def test_command_of_a_unit(unit, command):
    env = b"A=\"--v=1\"\n# B=1\n  #B=2\nB = 'two'\nC"
    files = {"/env": env, BINARY: b""}
    assert start_kubelet(files.get, unit, servers=[], has_runtime=True).command == command


ENDPOINT = "--container-runtime-endpoint"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", ""),
        (f"{ENDPOINT}=unix:///run/containerd/containerd.sock", ""),
        (f"{ENDPOINT}=unix:///var/run/containerd/containerd.sock", ""),
        (f"{ENDPOINT}=unix:///x", 'endpoint \\"unix:///x\\"'),
        ("--client-ca-file=/ca", ""),
        ("--client-ca-file=/none", "unable to load client CA file /none: open /none: no such file"),
        ("--no-such", "unknown flag: --no-such"),
        ("-v=2 word", ""),
        ("--config /none", "failed to read kubelet config file"),
        ("--kubeconfig /none --bootstrap-kubeconfig=/b", "unable to load bootstrap kubeconfig: stat /b: no such"),
        ("--kubeconfig=/none", "unable to load bootstrap kubeconfig: stat : no such"),
        ("--kubeconfig /ca", "no configuration has been provided"),
    ],
)  # fmt: skip
def test_problem_of_a_command(words, problem):
    files = {BINARY: b"", "/ca": b"[]"}
    found = start_kubelet(files.get, [UNIT.format(words)], servers=[], has_runtime=True)
    assert problem in found.problem
    assert bool(found.problem) is bool(problem)
    without = start_kubelet(files.get, [UNIT.format("")], servers=[], has_runtime=False)
    assert 'endpoint \\"unix:///run/containerd/containerd.sock\\"' in without.problem


@pytest.mark.parametrize(
    ("address", "is_reached"),
    [
        ("https://a", True),
        ("https://a:443/", True),
        ("https://A:443", True),
        ("http://a:443", False),
        ("https://a:444", False),
        ("https://b", False),
        ("https://a:x", False),
    ],
)
def test_address_of_an_api_server(address, is_reached):
    tree = {"current-context": "c", "contexts": [CONTEXT]}
    tree["clusters"] = [{"name": "k", "cluster": {"server": address}}]
    files = {BINARY: b"", "/k": orjson.dumps(tree)}
    unit = [UNIT.format("--kubeconfig=/k")]
    result = start_kubelet(files.get, unit, servers=["https://a:443"], has_runtime=True)
    assert (result.state, result.unreachable) == (("running", "") if is_reached else ("cut-off", address))
