"""A failed background task in a real process is restarted if possible; otherwise the process exits and names it."""

import asyncio
import re
import signal
import sys

import pytest

from tests.support.processes.process import ApiServerProcess, ManagerProcess, client

pytestmark = pytest.mark.slow


def failing(process, task):
    """A process class whose task fails at SIGUSR1."""

    class FailingProcess(process):
        def _program(self):
            return [sys.executable, "-m", "tests.support.processes.failing_program", task, process.MODULE]

    return FailingProcess


@pytest.mark.parametrize(
    "task", ["events/series", "simulated-nodes", "informer of pods", "lease", "work", "manager", "signals"]
)
def test_failed_manager_task_ends_process_and_is_named(tmp_path, task):
    flags = ("--simulate-nodes=1",)
    with (
        ApiServerProcess(tmp_path) as server,
        failing(ManagerProcess, task)(server.kubeconfig, *flags) as manager,
    ):
        manager.signal(signal.SIGUSR1)
        assert manager.wait() == 1
    log = "".join(manager.log)
    assert f"{task} failed" in log
    assert "Traceback" in log
    assert "the manager failed: RuntimeError: a fault in the program" in manager.log[-1]
    assert not [line for line in manager.log if "Unclosed" in line or "never retrieved" in line]


@pytest.mark.parametrize("task", ["lease", "signals"])
async def test_health_check_names_failed_task_until_manager_has_ended(tmp_path, task):
    """A stopped server delays the release of the lease, and with it the end of the process."""
    with (
        ApiServerProcess(tmp_path) as server,
        failing(ManagerProcess, task)(server.kubeconfig, "--metrics-port=0") as manager,
    ):
        (url,) = (match[1] for line in manager.log if (match := re.search(r"metrics: (\S+)", line)))
        async with client(server, token_="") as anybody:
            anybody.url = url
            assert (await anybody.get(f"/readyz/{task}")).status == 404
            server.signal(signal.SIGSTOP)
            manager.signal(signal.SIGUSR1)
            await asyncio.to_thread(manager.wait_logged, f"{task} failed")
            for endpoint in ("readyz", "livez"):
                page = (await anybody.get(f"/{endpoint}")).data.decode()
                assert f"[-]{task} failed: RuntimeError: a fault in the program" in page
        server.signal(signal.SIGCONT)
        assert await asyncio.to_thread(manager.wait) == 1


async def test_failed_server_task_is_restarted_and_named(tmp_path):
    with failing(ApiServerProcess, "watch-cache-lag")(tmp_path) as server:
        server.signal(signal.SIGUSR1)
        await asyncio.to_thread(server.wait_logged, "RuntimeError: a fault in the program")
        async with client(server) as admin:
            while (await admin.get("/readyz")).status != 200:
                pass
            page = (await admin.get("/metrics")).data.decode()
        assert 'mockube_task_restarts_total{task="watch-cache-lag"} 1' in page
        assert server.stop() == 0
    assert any("watch-cache-lag" in line for line in server.log)


def test_failed_store_ends_server_and_is_named(tmp_path):
    with failing(ApiServerProcess, "store")(tmp_path, f"--data-dir={tmp_path / 'data'}") as server:
        server.signal(signal.SIGUSR1)
        assert server.wait() == 1
    assert (
        "the task 'store' failed, so the server ends: RuntimeError: a fault in the program" in server.log[-1]
    )
