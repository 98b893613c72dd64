"""What keeps a cluster from being forked, by its flags."""

import asyncio
import sys
from pathlib import Path

import pytest

from mockube.apiserver.audit.audit import STDOUT
from mockube.apiserver.config.command_line import Config as ServerConfig
from mockube.apiserver.config.settings import Auditing, StorageOptions, Tracing
from mockube.apiserver.config.tracing_configuration import TracingConfiguration
from mockube.component_base.forkable_loop import ForkableSelectorLoop
from mockube.container_runtime.simulation_values import PROCESS
from mockube.controller_manager.config.settings import Config as ManagerConfig
from mockube.controller_manager.config.settings import Publishing, Simulation
from mockube.embedded.fork_problems import fork_problem

FILE = Path("file")


def problem_of(server=None, manager=None):
    async def find():
        return fork_problem(server or ServerConfig(), manager or ManagerConfig())

    with asyncio.Runner(loop_factory=ForkableSelectorLoop) as runner:
        return runner.run(find())


@pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ""),
        ({"auditing": Auditing(audit_log_path=STDOUT)}, ""),
        ({"store": StorageOptions(data_dir=FILE)}, "--data-dir: the fork would write to the same folder"),
        (
            {"store": StorageOptions(etcd_servers=("http://127.0.0.1:2379",))},
            "--etcd-servers: the fork would write to the same etcd",
        ),
        (
            {"auditing": Auditing(audit_log_path=FILE)},
            "--audit-log-path: the fork would write to the same file",
        ),
        (
            {"tracing": Tracing(tracing_config_file=TracingConfiguration())},
            "--tracing-config-file: the thread that exports traces does not exist in a fork",
        ),
    ],
)
def test_flags_of_the_server_that_cannot_be_forked_are_named(settings, expected):
    assert problem_of(ServerConfig(**settings)) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"simulation": Simulation(container_runtime=PROCESS)}, ""),
        ({"simulation": Simulation(images=FILE)}, ""),
        (
            {"simulation": Simulation(container_runtime=PROCESS, images=FILE)},
            "--images of processes: processes cannot be copied",
        ),
        ({"publishing": Publishing(publish=True)}, "--publish: the fork cannot listen on the same ports"),
    ],
)
def test_flags_of_the_manager_that_cannot_be_forked_are_named(settings, expected):
    assert problem_of(manager=ManagerConfig(**settings)) == expected


def test_other_systems_cannot_be_forked(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert problem_of() == "a process with threads can be forked safely on Linux only"
