"""When a cluster is quiet: nobody has written to it for some time, except what renews."""

import pytest

from mockube.apiserver.control.quiet import QuietTime
from mockube.apiserver.request_info import parse
from mockube.component_base.clock import SteppedClock

NODE, LEASE = "/api/v1/nodes/a", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a"


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def quiet_time(clock):
    return QuietTime(clock, 60)


def note(quiet_time, method, path):
    quiet_time.note(parse(method, path, watch=False))


def test_cluster_is_quiet_after_its_time(quiet_time, clock):
    clock.advance(59)
    assert not quiet_time.is_over
    clock.advance(1)
    assert quiet_time.is_over
    quiet_time.restart()
    assert (quiet_time.is_over, quiet_time.is_idle) == (False, True)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/default/pods"),
        ("PATCH", NODE),
        ("POST", "/api/v1/namespaces/default/pods/a/exec"),
        ("PUT", "/api/v1/namespaces/default/pods/a/status"),
        ("POST", "/mockube/snapshot"),
    ],
)
def test_change_ends_quiet_time(quiet_time, clock, method, path):
    clock.advance(60)
    note(quiet_time, method, path)
    assert not quiet_time.is_over


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", NODE),
        ("GET", "/apis"),
        ("PATCH", LEASE),
        ("PATCH", f"{NODE}/status"),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/a/token"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/control.mockube.dev/v1alpha1/clocks/cluster/advance"),
        ("POST", "/mockube/lease-renewals"),
    ],
)
def test_reads_and_renewals_leave_a_cluster_quiet(quiet_time, clock, method, path):
    clock.advance(60)
    note(quiet_time, method, path)
    assert quiet_time.is_over
