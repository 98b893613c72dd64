"""`python -m mockube.controller_manager`: the controller manager as a process. `--help` lists the flags."""

import gc

if __name__ == "__main__":
    gc.disable()  # imported modules stay alive: collections during the imports took a tenth of the start-up time

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from mockube.client.kubeconfig import KubeconfigError
from mockube.component_base import interpreter_memory, klog, loop
from mockube.component_base.packs import PackError, selected_packs

from . import catalog
from .command_line import ENVIRONMENT, parse
from .config.selection import DISABLED_UPSTREAM, disabled_upstream
from .config.settings import Config
from .control.followed_server import UnusableFlags
from .serve import ManagerFailed, serve

LOG = logging.getLogger(__name__)


def preload(arguments: Sequence[str]) -> None:
    """Import the packs that the arguments select; `main` reports errors."""
    with suppress(PackError):
        catalog.controllers_of_packs(selected_packs(arguments, os.environ, ENVIRONMENT), {})


def main(arguments: Sequence[str]) -> int:
    gc.freeze()
    gc.set_threshold(*interpreter_memory.THRESHOLD)
    gc.enable()
    config = parse(arguments, os.environ, catalog.NAMES)
    klog.attach(logging.getLogger(), config.logging)
    log_warnings(config)
    try:
        loop.run(_serve(config))
    except (OSError, KubeconfigError, ManagerFailed, UnusableFlags) as error:
        LOG.critical("%s", error)
        return 1
    return 0


async def _serve(config: Config) -> None:
    old_objects = interpreter_memory.OldObjects()
    old_objects.begin()
    old_objects.age_periodically(asyncio.get_running_loop())
    await serve(config)


def log_warnings(config: Config) -> None:
    """Name the flags without effect, and the controllers that cannot run."""
    for name in config.ignored:
        LOG.warning("--%s is not implemented and is ignored", name)
    for name in disabled_upstream(config.controllers.controllers):
        LOG.warning("--controllers: %s is disabled: %s", name, DISABLED_UPSTREAM[name])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
