"""Which profile a start of `mockube up` has."""

import argparse

import pytest

from mockube.cli.up import _profile
from mockube.clusters.profiles import Profile, record_profile
from mockube.failure import UsageError
from mockube.kubelet.node_pools.pool import plain_nodes


def options(*set_flags, profile="kubeadm", control_planes=1, nodes=3):
    return argparse.Namespace(
        set_flags={*set_flags},
        profile=profile,
        control_planes=control_planes,
        simulate_nodes=plain_nodes(nodes),
    )


def test_new_cluster_is_made_by_kubeadm_unless_it_has_no_nodes():
    assert _profile(options(), None) == Profile("kubeadm")
    assert _profile(options(nodes=0), None) == Profile("minimal")
    assert _profile(options("profile", nodes=0), None) == Profile("kubeadm")


def test_kept_cluster_has_its_profile_until_a_flag_adds_to_it(tmp_path):
    record_profile(tmp_path, Profile("minimal"))
    assert _profile(options(), tmp_path) == Profile("minimal")
    assert _profile(options("profile"), tmp_path) == Profile("kubeadm")
    record_profile(tmp_path, Profile("kubeadm", 3))
    assert _profile(options(), tmp_path) == Profile("kubeadm", 3)
    assert _profile(options("control_planes", control_planes=5), tmp_path) == Profile("kubeadm", 5)
    with pytest.raises(UsageError, match="the store has a cluster with --profile=kubeadm"):
        _profile(options("profile", profile="minimal"), tmp_path)


def test_control_planes_of_a_minimal_cluster_are_refused(tmp_path):
    record_profile(tmp_path, Profile("minimal"))
    with pytest.raises(UsageError, match="--control-planes needs --profile=kubeadm"):
        _profile(options("control_planes", control_planes=3), tmp_path)
    with pytest.raises(UsageError, match="--control-planes needs --profile=kubeadm"):
        _profile(options("profile", "control_planes", profile="minimal", control_planes=3), None)
