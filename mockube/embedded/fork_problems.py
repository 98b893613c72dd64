"""What a process cannot share with a fork of itself, and what therefore keeps a cluster from being forked."""

import asyncio
import sys
from collections.abc import Iterator

from mockube.apiserver.audit.audit import STDOUT
from mockube.apiserver.config.command_line import Config as ServerConfig
from mockube.component_base.forkable_loop import ThreadWork
from mockube.container_runtime.simulation_values import PROCESS
from mockube.controller_manager.config.settings import Config as ManagerConfig


def fork_problem(server: ServerConfig, manager: ManagerConfig, *, may_publish: bool = False) -> str:
    """Return why a cluster with these flags cannot be forked; "" if it can. With `may_publish`, a fork publishes nothing."""
    return next(_problems(server, manager, may_publish=may_publish), "")


def _problems(server: ServerConfig, manager: ManagerConfig, *, may_publish: bool) -> Iterator[str]:
    if sys.platform != "linux":
        yield "a process with threads can be forked safely on Linux only"
    if problem := _loop_problem():
        yield problem
    if server.store.data_dir is not None:
        yield "--data-dir: the fork would write to the same folder"
    if server.store.etcd_servers:
        yield "--etcd-servers: the fork would write to the same etcd"
    if server.auditing.audit_log_path not in (None, STDOUT):
        yield "--audit-log-path: the fork would write to the same file"
    if server.tracing.tracing_config_file is not None:
        yield "--tracing-config-file: the thread that exports traces does not exist in a fork"
    if manager.simulation.container_runtime == PROCESS and manager.simulation.images is not None:
        yield "--images of processes: processes cannot be copied"
    if manager.publishing.publish and not may_publish:
        yield "--publish: the fork cannot listen on the same ports"


def _loop_problem() -> str:
    loop = asyncio.get_running_loop()
    return (
        loop.problem() if isinstance(loop, ThreadWork) else "its event loop cannot go on in a forked process"
    )
