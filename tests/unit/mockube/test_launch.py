"""The flags of both programs follow from the options of a control plane."""

import pytest

from mockube.kubelet.node_pools.pool import plain_nodes
from mockube.launch import KUBEADM, LaunchOptions, values_of

SIGNING_TOKENS = ("--service-account-private-key-file", "pki/sa.key")
SIGNING_CERTIFICATES = (
    "--cluster-signing-cert-file", "pki/ca.crt", "--cluster-signing-key-file", "pki/ca.key"
)  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "manager_flags", "signing"),
    [
        ([], [], ()),
        (["--cert-dir", "pki"], [], (*SIGNING_TOKENS, *SIGNING_CERTIFICATES)),
        (["--cert-dir", "other", "--cert-dir=pki"], [], (*SIGNING_TOKENS, *SIGNING_CERTIFICATES)),
        (["--cert-dir=pki", "--service-account-signing-key-file=key"], [], SIGNING_CERTIFICATES),
        (["--cert-dir=pki", "--client-ca-file=ca.crt"], [], SIGNING_TOKENS),
        (["--cert-dir=pki"], ["--cluster-signing-kubelet-client-key-file=key"], SIGNING_TOKENS),
    ],
    ids=["no-folder", "folder", "last-folder", "other-tokens", "other-client-ca", "other-signer"],
)
def test_manager_signs_with_keys_of_server_unless_flags_set_others(flags, manager_flags, signing):
    options = LaunchOptions(nodes=plain_nodes(2), packs="kruise", flags=flags, manager_flags=manager_flags)
    own = ("--simulate-nodes", "2", "--packs", "kruise")
    assert options.manager_arguments() == (*own, *signing, *manager_flags)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], []),
        (["--service-cluster-ip-range=10.96.0.0/12"], ["10.96.0.10"]),
        (["--service-cluster-ip-range", "fd00:10:96::/112,10.96.0.0/16"], ["fd00:10:96::a"]),
        (["--service-cluster-ip-range=10.96.0.0/29"], []),
        (["--service-cluster-ip-range=none"], []),
    ],
    ids=["default", "other", "dual-stack", "too-small", "invalid"],
)
def test_name_server_has_the_tenth_address_of_the_range_of_services(flags, expected):
    words = [*LaunchOptions(flags=flags).manager_arguments()]
    assert [words[number + 1] for number, word in enumerate(words) if word == "--cluster-dns"] == expected


def test_server_simulates_metrics_of_simulated_nodes_only():
    options = [LaunchOptions(nodes=plain_nodes(nodes)).server_arguments() for nodes in (0, 1)]
    assert [words[words.index("--simulate-metrics") + 1] for words in options] == ["false", "true"]


@pytest.mark.parametrize(
    ("flags", "count"),
    [([], 1), (["--enable-admission-plugins=NodeRestriction,AlwaysPullImages"], 0)],
    ids=["default", "named"],
)
def test_admission_plugin_of_kubeadm_is_enabled_unless_flags_name_it(flags, count):
    assert [*LaunchOptions(flags=flags).server_arguments()].count("NodeRestriction") == count


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), ("*",)),
        (("--controllers=*,-job",), ("*", "-job")),
        (("--controllers", "*, -job", "--v=1", "--controllers=-cronjob"), ("*", "-job", "-cronjob")),
    ],
)
def test_controllers_are_those_of_manager_flags(flags, expected):
    assert LaunchOptions(manager_flags=flags).controllers == expected


@pytest.mark.parametrize(
    ("control_planes", "flags", "endpoint"),
    [(1, (), None), (3, (), "172.18.0.6:6443"), (2, ("--secure-port=7443",), "172.18.0.6:7443")],
)
def test_server_creates_what_kubeadm_does_with_the_address_of_several_control_planes(
    control_planes, flags, endpoint
):
    options = LaunchOptions(nodes=plain_nodes(5), profile=KUBEADM, control_planes=control_planes, flags=flags)
    values = values_of(options.server_arguments())
    assert values.get("kubeadm-endpoint") == endpoint
    assert (values["kubeadm-pod-network"], values["kubeadm-storage-class"]) == ("10.128.0.0/9", "true")


@pytest.mark.parametrize(
    ("controllers", "creates"),
    [("*", "true"), ("*,-simulated-storage-class", "false"), ("replicaset-controller", "false")],
)
def test_storage_class_is_left_out_where_flags_exclude_what_creates_it(controllers, creates):
    options = LaunchOptions(profile=KUBEADM, manager_flags=("--controllers", controllers))
    assert values_of(options.server_arguments())["kubeadm-storage-class"] == creates


def test_server_of_a_minimal_cluster_creates_nothing_of_kubeadm():
    assert not [flag for flag in LaunchOptions().server_arguments() if "kubeadm" in flag]
