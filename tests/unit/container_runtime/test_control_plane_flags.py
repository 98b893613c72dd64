"""Programs of the control plane refuse flags that they do not have, in their own words."""

import pytest

from mockube.container_runtime.control_plane_flags import FLAGS, flag_problem


@pytest.mark.parametrize(
    ("argv", "code", "line"),
    [
        (["kube-scheduler", "--bogus=1"], 1, "Error: unknown flag: --bogus"),
        (["kube-scheduler", "--leader-elect", "--leader-elec=true"], 1, "Error: unknown flag: --leader-elec"),
        (["/usr/local/bin/kube-apiserver", "--data-dir=/x"], 1, "Error: unknown flag: --data-dir"),
        (["kube-controller-manager", "-x=1"], 1, "Error: unknown shorthand flag: 'x' in -x=1"),
        (["etcd", "--dta-dir=/x"], 2, "flag provided but not defined: -dta-dir"),
    ],
)
def test_unknown_flag_ends_the_program(argv, code, line):
    problem = flag_problem(argv)
    assert (problem.exit_code, problem.lines[0]) == (code, line)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["sh", "-c", "--bogus"],
        ["kube-scheduler", "--leader_elect=false", "-v=4", "--", "--bogus"],
        ["etcd", "-name=a", "--data-dir", "/x"],
        ["etcd", "grpc-proxy", "start", "--endpoints=a:2379"],
    ],
    ids=["no-command", "other-program", "spellings", "etcd", "command of etcd"],
)
def test_known_flags_and_other_programs_have_no_problem(argv):
    assert flag_problem(argv) is None


@pytest.mark.parametrize("program", sorted(FLAGS))
def test_flags_of_mockube_are_not_those_of_the_program(program):
    assert {"packs", "simulate-nodes", "installation", "write-kubeconfig", "cluster-dns"}.isdisjoint(
        FLAGS[program]
    )
