"""The programs of nodes: crictl, journalctl, systemctl, kubeadm and those of the network."""

import orjson
import pytest

from mockube.container_runtime.node_machine import ServiceFailed
from tests.support.node_machine import NODE, RUNNING, Machine

LABELS = {
    "io.kubernetes.pod.name": "web",
    "io.kubernetes.pod.namespace": "default",
    "io.kubernetes.pod.uid": "u",
}


def container(identifier="a" * 64, name="c", state="CONTAINER_RUNNING", attempt=0):
    return {
        "id": identifier, "podSandboxId": "b" * 64, "metadata": {"name": name, "attempt": attempt}, "image": {"image": "sha256:" + "d" * 64},
        "imageRef": "nginx", "state": state, "createdAt": "946684500000000000", "labels": {**LABELS, "io.kubernetes.container.name": name},
    }  # fmt: skip


SANDBOX = {
    "id": "b" * 64, "metadata": {"name": "web", "namespace": "default", "attempt": 0}, "state": "SANDBOX_READY",
    "createdAt": "946684500000000000", "labels": LABELS,
}  # fmt: skip
EXITED = container("e" * 64, "old", "CONTAINER_EXITED", 1)
CONTAINERS = {"containers": [container(), EXITED], "sandboxes": [SANDBOX]}
IMAGE = {
    "id": "sha256:" + "d" * 64,
    "repoTags": ["docker.io/library/nginx:1.29"],
    "repoDigests": [],
    "size": "75500000",
    "inUse": True,
}
ENTRIES = [
    {"at": f"2000-01-01T00:0{minute}:00+00:00", "unit": "kubelet.service", "identifier": "kubelet", "pid": 742, "text": text, "priority": priority}
    for minute, text, priority in ((0, "first", 6), (1, "second", 3), (2, "third", 6))
]  # fmt: skip


@pytest.fixture
def machine():
    return Machine(**{"cri.containers": CONTAINERS, "cri.images": [IMAGE], "journal": ENTRIES})


# --- crictl


def test_crictl_ps_lists_running_containers(machine):
    code, output, _ = machine.run("crictl", "ps")
    header, row = output.splitlines()
    assert code == 0
    assert header.split()[:4] == ["CONTAINER", "IMAGE", "CREATED", "STATE"]
    assert row.startswith("aaaaaaaaaaaaa       ddddddddddddd       ")
    assert row.endswith("web                 default")
    assert len(machine.run("crictl", "ps", "-a")[1].splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--name", "^c$"], "a" * 64), (["--state", "exited"], "e" * 64), (["-a", "--label", "io.kubernetes.container.name=old"], "e" * 64),
        (["-p", "bbb"], "a" * 64), (["--namespace", "kube"], ""), (["--name", "["], ""), (["--name", r"(?=c)c"], ""), (["-a", "-n", "1", "--name", "old"], "e" * 64),
    ],
)  # fmt: skip
def test_crictl_ps_selects_containers(machine, arguments, found):
    assert machine.run("crictl", "ps", "-q", *arguments)[1].strip() == found


def test_crictl_prints_json(machine):
    assert [each["id"] for each in orjson.loads(machine.run("crictl", "pods", "-o", "json")[1])["items"]] == [
        "b" * 64
    ]


def test_crictl_images(machine):
    assert machine.run("crictl", "images")[1].splitlines()[1].split() == [
        "docker.io/library/nginx", "1.29", "ddddddddddddd", "75.5MB"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ps", "--foo"], "flag provided but not defined: -foo"),
        (["ps", "--name"], "flag needs an argument: -name"),
        (["ps", "-o", "xml"], "unsupported output format"),
        (["ps", "-n", "x"], "parse error"),
        (["inspect", "zz"], 'when try to find container \\"zz\\": not found'),
        (["logs"], "ID cannot be empty"),
        (["logs", "a", "--tail", "x"], "parse error"),
        (["exec", "a"], "COMMAND cannot be empty"),
        (["-r", "unix:///nosuch.sock", "ps"], "dial unix /nosuch.sock: connect: no such file or directory"),
    ],
)
def test_wrong_use_of_crictl_is_fatal(machine, arguments, message):
    code, output, errors = machine.run("crictl", *arguments)
    assert (code, output) == (1, "")
    assert message in errors
    assert errors.startswith('time="')


def test_crictl_without_a_container_runtime_fails(machine):
    machine.services["units"] = {"kubelet": RUNNING, "containerd": {**RUNNING, "state": "stopped"}}
    assert (
        "/run/containerd/containerd.sock: connect: no such file"
        in machine.run("crictl", "ps", has_terminal=True)[2]
    )


def test_unknown_command_of_crictl(machine):
    assert machine.run("crictl", "foo") == (3, "No help topic for 'foo'\n", "")
    assert "is not simulated" in machine.run("crictl", "runp", "x")[2]


def test_crictl_logs_prints_both_streams(machine):
    machine.services["cri.logs"] = {"lines": [[1, "out\n"], [2, "err\n"]], "reader": 0, "waits": True}
    assert machine.run("crictl", "logs", "aaa") == (0, "out\n", "err\n")
    assert machine.requests[-1][1]["tail"] == -1


def test_crictl_exec_sends_input_when_it_is_awaited(machine):
    answers = iter(
        [{"output": [], "needs_input": True}, {"output": [[1, "HELLO"]], "needs_input": False, "code": 0}]
    )
    machine.services |= {"cri.exec": 7, "cri.exec.next": lambda _: next(answers), "cri.exec.input": None}
    assert machine.run("crictl", "exec", "-i", "aaa", "tr", "a-z", "A-Z", stdin=b"hello") == (0, "HELLO", "")
    assert ("cri.exec.input", {"session": 7, "data": "hello"}) in machine.requests


def test_failed_command_of_crictl_exec_fails(machine):
    machine.services |= {"cri.exec": 7, "cri.exec.next": {"output": [], "needs_input": False, "code": 3}}
    code, _, errors = machine.run("crictl", "exec", "aaa", "false")
    assert (code, "terminated with exit code 3" in errors) == (1, True)


def test_crictl_stop_and_rm(machine):
    machine.services |= {"cri.stop": None, "cri.rm": _refuse}
    assert machine.run("crictl", "stop", "aaa")[1] == "aaa\n"
    assert machine.requests[-1] == ("cri.stop", {"id": "a" * 64, "force": False})
    assert "please stop it first" in machine.run("crictl", "rm", "aaa")[2]


def _refuse(_):
    raise ServiceFailed("container is running, please stop it first")


# --- journalctl


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["-u", "kubelet"], ["first", "second", "third"]),
        (["-u", "containerd"], []),
        (["-u", "kubelet.service", "-n", "1"], ["third"]),
        (["-n1", "-r"], ["third"]),
        (["--since", "2000-01-01 00:01"], ["second", "third"]),
        (["--since", "@946684860", "--until", "2000-01-01 00:01:00"], ["second"]),
        (["-p", "err"], ["second"]),
        (["-g", "ir"], ["first", "third"]),
        (["-xeu", "kubelet", "--no-pager"], ["first", "second", "third"]),
        (["-b"], ["first", "second", "third"]),
        (["-b", "-1"], []),
        (["-b", "0", "-n1"], ["third"]),
    ],
)
def test_journalctl_selects_entries(machine, arguments, texts):
    code, output, _ = machine.run("journalctl", "-o", "cat", *arguments)
    assert (code, output) == (0, "".join(f"{text}\n" for text in texts) or "-- No entries --\n")


def test_journalctl_prints_like_syslog(machine):
    assert machine.run("journalctl", "-n1")[1] == "Jan 01 00:02:00 node-1 kubelet[742]: third\n"
    assert orjson.loads(machine.run("journalctl", "-n1", "-o", "json")[1])["MESSAGE"] == "third"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--since", "foo"], "Failed to parse timestamp: foo"),
        (["-n", "x"], "Failed to parse lines 'x'"),
        (["-o", "x"], "Unknown output format 'x'."),
        (["-g", "["], 'Bad pattern "[": missing terminating ] for character class'),
        (["-g", "a)"], 'Bad pattern "a)": unmatched closing parenthesis'),
        (["-g", "(?=a)a"], 'cannot match the pattern "(?=a)a" in linear time'),
        (["-g", r"\pL{10}"], 'Bad pattern "\\pL{10}": regular expression is too large'),
        (["-p", "x"], "Unknown log level x"),
        (["--foo"], "option"),
    ],
)
def test_wrong_use_of_journalctl_is_reported(machine, arguments, message):
    code, _, errors = machine.run("journalctl", *arguments)
    assert (code, message in errors) == (1, True)


# --- systemctl


def test_systemctl_status_shows_the_unit_and_its_journal(machine):
    code, output, _ = machine.run("systemctl", "status", "kubelet")
    assert code == 0
    assert "kubelet.service - kubelet: The Kubernetes Node Agent" in output
    assert "Active: active (running) since Thu 2026-01-01 00:00:00 UTC" in output
    assert "10-kubeadm.conf" in output
    assert output.endswith("third\n")


@pytest.mark.parametrize(
    ("state", "word", "code"),
    [
        ("running", "active", 0),
        ("stopped", "inactive", 3),
        ("failed", "activating", 3),
        ("cut-off", "active", 0),
    ],
)
def test_is_active(machine, state, word, code):
    machine.services["units"] = {"kubelet": {**RUNNING, "state": state}, "containerd": RUNNING}
    assert machine.run("systemctl", "is-active", "kubelet") == (code, f"{word}\n", "")


def test_systemctl_changes_a_unit(machine):
    machine.services["unit.change"] = None
    for verb in ("stop", "start", "restart"):
        assert machine.run("systemctl", verb, "kubelet.service") == (0, "", "")
        assert machine.requests[-1] == ("unit.change", {"unit": "kubelet", "action": verb})


def test_enabling_is_a_link_of_the_node(machine):
    assert machine.run("systemctl", "disable", "kubelet")[2].startswith(
        "Removed /etc/systemd/system/multi-user.target.wants/"
    )
    assert machine.run("systemctl", "is-enabled", "kubelet") == (1, "disabled\n", "")
    assert "Created symlink" in machine.run("systemctl", "enable", "kubelet")[2]
    assert machine.run("systemctl", "is-enabled", "kubelet") == (0, "enabled\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["status", "foo"], 4, "Unit foo.service could not be found."),
        (["start", "kube-proxy"], 5, "Unit kube-proxy.service not found."),
        (["is-enabled", "foo"], 1, "No such file or directory"),
        (["stop", "ssh"], 1, "only kubelet and containerd"),
        (["frobnicate", "kubelet"], 1, "Unknown command verb frobnicate."),
        (["start"], 1, "Too few arguments"),
        (["cat", "foo"], 1, "No files found for foo.service."),
    ],
)
def test_wrong_use_of_systemctl_is_reported(machine, arguments, code, message):
    ended, _, errors = machine.run("systemctl", *arguments)
    assert (ended, message in errors) == (code, True)


def test_systemctl_cat_prints_unit_and_drop_ins(machine):
    output = machine.run("systemctl", "cat", "kubelet")[1]
    assert output.startswith("# /usr/lib/systemd/system/kubelet.service\n[Unit]\n")
    assert "ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS" in output


# --- kubeadm, and what is refused


def test_kubeadm_needs_a_control_plane(machine):
    assert "failed to load admin kubeconfig" in machine.run("kubeadm", "token", "list")[2]


CONTROL_PLANE = {
    **NODE,
    "metadata": {**NODE["metadata"], "labels": {"node-role.kubernetes.io/control-plane": ""}},
}
MACHINE = {"version": "v1.37.2", "created": "2026-01-01T00:00:00Z"}
CONFIGURATION = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"


def test_kubeadm_on_a_control_plane():
    services = {
        "tokens": [
            {
                "token": "abcdef.0123456789abcdef",
                "expires": "",
                "usages": ["signing"],
                "description": "",
                "groups": ["g"],
            }
        ],
        "token.create": {"token": "abcdef.0123456789abcdef", "server": "10.0.0.9:6443", "hash": "sha256:00"},
        "machine": MACHINE,
        "kubeadm.configuration": CONFIGURATION,
    }
    machine = Machine(CONTROL_PLANE, **services)
    assert "<forever>" in machine.run("kubeadm", "token", "list")[1]
    join = "kubeadm join 10.0.0.9:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:00 \n"
    assert machine.run("kubeadm", "token", "create", "--print-join-command") == (0, join, "")
    assert "apiserver-etcd-client" in machine.run("kubeadm", "certs", "check-expiration")[1]
    assert machine.run("kubeadm", "version", "-o", "short")[1] == "v1.37.2\n"
    assert "when it starts, 30 days before" in machine.run("kubeadm", "certs", "renew", "all")[2]


@pytest.mark.parametrize(
    ("configuration", "is_read"),
    [
        (CONFIGURATION, True),
        (CONFIGURATION.replace("v1beta4", "v9"), False),
        ("kind: [x", False),
        ("", False),
    ],
)
def test_kubeadm_says_that_it_cannot_read_the_configuration_of_the_cluster(configuration, is_read):
    machine = Machine(CONTROL_PLANE, machine=MACHINE, **{"kubeadm.configuration": configuration})
    code, output, _ = machine.run("kubeadm", "certs", "check-expiration")
    assert (code, "Error reading configuration from the Cluster" in output) == (0, not is_read)
    assert "apiserver-etcd-client" in output


@pytest.mark.parametrize("command", ["init", "join", "reset", "upgrade"])
def test_kubeadm_refuses_by_name(machine, command):
    code, _, errors = machine.run("kubeadm", command, "--token=x")
    assert (code, f"kubeadm {command} is not simulated" in errors) == (1, True)


def test_kubectl_without_a_kubeconfig_finds_no_server(machine):
    assert machine.run("kubectl", "get", "pods")[2].startswith(
        "The connection to the server localhost:8080 was refused"
    )


# --- the shell


@pytest.mark.parametrize(
    ("option", "title"), [("aux", "USER         PID"), ("-ef", "UID          PID"), ("", "PID   USER")]
)
def test_processes_of_the_node_are_listed(machine, option, title):
    output = machine.run("sh", "-c", f"ps {option}")[1]
    assert output.startswith(title)
    assert "/usr/bin/kubelet --bootstrap-kubeconfig=" in output
    assert output.splitlines()[-1].endswith(f"ps {option}".strip())


def test_command_line_of_a_container_has_the_values_of_its_variables():
    variable = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    command = ["/usr/local/bin/kube-proxy", "--hostname-override=$(NODE_NAME)"]
    running = {"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    pod = {
        "metadata": {"name": "kube-proxy", "namespace": "d", "uid": "u"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "command": command, "env": [variable]}]},
        "status": {"containerStatuses": [running]},
    }
    assert "/usr/local/bin/kube-proxy --hostname-override=node-1\n" in Machine(pods=[pod]).run("ps", "-ef")[1]


def test_ss_shows_the_beginning_of_a_long_command(machine):
    socket = {"address": "127.0.0.1", "port": 10257, "program": "kube-controller-manager", "pid": 1240}
    machine.services["machine"] = {"sockets": [socket]}
    assert 'users:(("kube-controller",pid=1240,' in machine.run("ss", "-tlnp")[1]


def test_root_is_a_disk(machine):
    assert "/dev/vda1" in machine.run("df")[1]


def test_nsenter_stays_on_the_node(machine):
    assert machine.run("nsenter", "-t", "1", "-m", "-u", "hostname") == (0, "node-1\n", "")


def test_chroot_to_the_root_runs_a_program(machine):
    assert machine.run("chroot", "/", "hostname") == (0, "node-1\n", "")
    assert machine.run("chroot", "/nosuch", "hostname")[0] == 125


def test_unknown_program_is_not_found(machine):
    assert machine.run("bash", "-c", "frobnicate; echo $?")[1] == "127\n"


def test_logs_of_containers_are_read_before_a_program_reads_them():
    pod = {
        "metadata": {"name": "web", "namespace": "d", "uid": "u"},
        "spec": {"containers": [{"name": "c"}]},
        "status": {
            "containerStatuses": [
                {
                    "name": "c",
                    "containerID": "x://1",
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }
            ]
        },
    }
    path = "/var/log/pods/d_web_u/c/0.log"
    machine = Machine(pods=[pod], logs={path: "2026 stdout F line\n"})
    for command in (f"cat {path}", "cat /var/log/containers/*", "cd /var/log/pods; grep -rh line ."):
        assert machine.run("sh", "-c", command)[1] == "2026 stdout F line\n"
    assert machine.requests[0] == ("logs", {"paths": [path]})


def test_folders_of_volumes_say_that_they_have_no_contents():
    pod = {
        "metadata": {"name": "web", "namespace": "d", "uid": "u"},
        "spec": {
            "containers": [{"name": "c"}],
            "volumes": [{"name": "v", "configMap": {"name": "x"}}, {"name": "w", "hostPath": {"path": "/w"}}],
        },
    }
    machine, folder = Machine(pods=[pod]), "/var/lib/kubelet/pods/u/volumes"
    assert machine.run("ls", folder)[1] == "kubernetes.io~configmap\n"
    assert (
        "does not show them here" in machine.run("sh", "-c", f"cat {folder}/kubernetes.io~configmap/v/*")[1]
    )


def test_followed_journal_prints_only_new_entries(machine):
    journals = iter([ENTRIES[:2], ENTRIES[:2], ENTRIES])
    machine.services["journal"] = lambda _: next(journals)
    with pytest.raises(StopIteration):
        machine.run("journalctl", "-f", "-n1", "-o", "cat")
    assert machine.output == {1: b"second\nthird\n", 2: b""}


@pytest.mark.parametrize(
    "command", ["sleep 100", "while true; do sleep 9; done", "sh -c 'sleep 100'", "sleep 100 | cat"]
)
def test_interrupt_ends_the_command_and_not_the_shell(machine, command):
    lines = [f"{command}\n".encode(), b"echo $?\n", b"exit 4\n"]
    code, output, _ = machine.run("bash", lines=lines, has_terminal=True)
    assert (code, lines) == (4, [])
    assert "130\n" in output


def test_link_of_logs_that_leads_to_itself_is_an_error_of_the_program(machine):
    code, _, errors = machine.run("sh", "-c", "ln -s loop /var/log/loop; cat /var/log/loop")
    assert (code, "cat: /var/log/loop: Too many levels of symbolic links" in errors) == (1, True), errors
