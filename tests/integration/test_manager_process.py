"""The controller manager as a process: before its server starts, with a second manager, stopped, and killed."""

import re
import signal

import orjson
import pytest

from tests.support.processes.process import ApiServerProcess, ManagerProcess, client

pytestmark = pytest.mark.slow

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
QUICK = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)


class StartingManager(ManagerProcess):
    """Ready when the log reports that the manager waits, for the server or for the lease."""

    READY = re.compile(r"Waiting for")


@pytest.fixture
def server(tmp_path):
    with ApiServerProcess(tmp_path) as server:
        yield server


async def lease(server):
    async with client(server) as admin:
        return (await admin.get(LEASE)).body["spec"]


async def test_sigterm_releases_lease(server):
    with ManagerProcess(server.kubeconfig) as manager:
        assert (await lease(server))["holderIdentity"]
        assert manager.stop() == 0
    assert (await lease(server)).get("holderIdentity", "") == ""
    assert [line.rpartition("] ")[2] for line in manager.log[-1:]] == ["Stopped\n"]


def test_second_signal_ends_manager_that_waits_for_server(server):
    with ManagerProcess(server.kubeconfig) as manager:
        server.signal(signal.SIGSTOP)  # so that the release of the lease gets no response
        manager.signal(signal.SIGTERM)
        manager.wait_logged("Stopping")
        manager.signal(signal.SIGTERM)
        assert manager.wait() == -signal.SIGTERM


async def test_standby_manager_takes_over_after_kill(server):
    with (
        ManagerProcess(server.kubeconfig, *QUICK) as first,
        StartingManager(server.kubeconfig, *QUICK) as second,
    ):
        holder = (await lease(server))["holderIdentity"]
        assert "Waiting for the lease" in second.ready.string
        assert holder in second.ready.string
        first.signal(signal.SIGKILL)
        second.wait_logged("Controllers: ")
        after = await lease(server)
        assert after["holderIdentity"] != holder
        assert after["leaseTransitions"] == 1
        assert second.stop() == 0


async def test_suspended_leader_becomes_standby(server):
    with (
        ManagerProcess(server.kubeconfig, *QUICK) as first,
        StartingManager(server.kubeconfig, *QUICK) as second,
    ):
        holder = (await lease(server))["holderIdentity"]
        first.signal(signal.SIGSTOP)
        second.wait_logged("Controllers: ")
        first.signal(signal.SIGCONT)
        first.wait_logged(
            "leaderelection lost: the lease kube-system/kube-controller-manager was not renewed in time"
        )
        first.wait_logged("Waiting for the lease")
        assert (await lease(server))["holderIdentity"] != holder
        assert second.stop() == 0
        first.wait_logged("Controllers: ", times=2)
        assert first.stop() == 0
    assert not [line for line in first.log if "Traceback" in line or "Unclosed" in line]


def test_manager_waits_for_server_and_continues_after_its_restart(tmp_path):
    kept = ("--data-dir", tmp_path / "data", "--write-kubeconfig", tmp_path / "kubeconfig")
    with ApiServerProcess(tmp_path, *kept) as server:
        here = f"--secure-port={server.url.rpartition(':')[2]}"
        assert server.stop() == 0
    with StartingManager(tmp_path / "kubeconfig", *QUICK) as manager:
        assert "Waiting for the API server" in manager.ready.string
        with ApiServerProcess(tmp_path, *kept, here) as server:
            manager.wait_logged("Controllers: ")
            server.signal(signal.SIGKILL)
            server.wait()
        with ApiServerProcess(tmp_path, *kept, here):
            assert manager.stop() == 0
    assert len([line for line in manager.log if "Waiting for the API server" in line]) == 1


async def test_each_controller_has_a_health_check(server):
    with ManagerProcess(server.kubeconfig, "--metrics-port=0", "--controllers=deployment") as manager:
        (url,) = (match[1] for line in manager.log if (match := re.search(r"metrics: (\S+)", line)))
        async with client(server, token_="") as anybody:
            anybody.url = url
            assert (await anybody.get("/healthz/deployment-controller")).data == b"ok"
            assert (await anybody.get("/healthz/replicaset-controller")).status == 404
            metrics = (await anybody.get("/metrics")).data.decode()
            settings = orjson.loads((await anybody.get("/configz")).data)
        assert 'leader_election_master_status{name="kube-controller-manager"} 1' in metrics
        assert 'workqueue_depth{name="deployment"} 0' in metrics
        (shown,) = settings.values()
        assert shown["controllers"]["controllers"] == ["deployment"]
