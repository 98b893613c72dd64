"""`python -m mockube.one_process FOLDER MANAGER_LOG -- FLAGS -- FLAGS`: API server and controller manager in one process.

The first flags are those of the API server, the others those of the controller manager. `mockube up --one-process` runs it. The loop has
a thread of its own, because a forked process has the thread of the loop only.
"""

import gc

if __name__ == "__main__":
    gc.disable()  # imported objects are never freed, and their garbage collection takes a tenth of the start-up time

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mockube.apiserver import __main__ as server_program
from mockube.apiserver.config.command_line import parse as parse_server_flags
from mockube.client.kubeconfig import KubeconfigError
from mockube.clusters.named_cluster import ClusterFolder
from mockube.component_base import interpreter_memory
from mockube.component_base.operating_system import os_problem
from mockube.component_base.supervision import first_cause
from mockube.component_base.task_supervisor import TaskFailed
from mockube.controller_manager import __main__ as manager_program
from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.command_line import parse as parse_manager_flags
from mockube.controller_manager.control.followed_server import UnusableFlags
from mockube.embedded.background_loop import BackgroundContext
from mockube.embedded.plane import ForkableControlPlane
from mockube.etcd.errors import KVError

from . import logs
from .forks import Outputs
from .plane import one_process

LOG: Final = logging.getLogger(__name__)
_KNOWN_ERRORS: Final = (
    OSError,
    KVError,
    TaskFailed,
    KubeconfigError,
    UnusableFlags,
    *server_program.FILE_ERRORS,
)
"""The errors whose message says what is wrong."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str]) -> int:
    gc.freeze()
    gc.set_threshold(*interpreter_memory.THRESHOLD)
    gc.enable()
    folder, manager_log = (Path(argument) for argument in arguments[:2])
    middle = arguments.index("--", 3)
    server = parse_server_flags(arguments[3:middle], os.environ)
    manager = parse_manager_flags(arguments[middle + 1 :], os.environ, NAMES)
    with manager_log.open("a") as stream:
        logs.attach(server.logging, manager.logging, stream)
        server_program.log_warnings(server)
        manager_program.log_warnings(manager)
        cluster = ClusterFolder(name=folder.name, path=folder)
        outputs = Outputs(sys.stderr.fileno(), stream.fileno())
        # The context is made before it exists: what forks the process needs it.
        context: BackgroundContext[ForkableControlPlane] = BackgroundContext(
            lambda: one_process(server, manager, context=context, folder=cluster, outputs=outputs),
            name="mockube",
        )
        return _run(context)


def _run(context: BackgroundContext[ForkableControlPlane]) -> int:
    """Run until a signal stops it; a second signal ends the process as usual."""

    def stop(_number: int, _frame: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        context.stop()

    for number in _SIGNALS:
        signal.signal(number, stop)
    context.start()
    try:
        context.ended.result()
    except asyncio.CancelledError:
        pass  # it was stopped before it was ready
    except Exception as error:
        cause = first_cause(error)
        if not isinstance(cause, _KNOWN_ERRORS):
            raise
        LOG.critical("%s", os_problem(cause) if isinstance(cause, OSError) else cause)
        return 1
    LOG.info("Stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
