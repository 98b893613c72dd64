"""`python -m mockube.controller_manager`: the controller manager as a process. `--help` lists the flags."""

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: to look for garbage in it took a tenth of the start

import logging
import os
import sys
from collections.abc import Sequence

import uvloop

from mockube.apimachinery import klog
from mockube.controller_manager import catalog
from mockube.controller_manager.client.kubeconfig import KubeconfigError
from mockube.controller_manager.command_line import parse
from mockube.controller_manager.config.selection import OFF, controllers_run_nowhere
from mockube.controller_manager.serve import serve
from mockube.controller_manager.supervision import ManagerFailed

LOG = logging.getLogger(__name__)

COLLECT_AFTER = (50_000, 20, 100)
"""Python's own garbage: caches are many small objects that stay, and looking through them often costs much for nothing."""


def main(arguments: Sequence[str]) -> int:
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
    config = parse(arguments, os.environ, catalog.NAMES)
    klog.attach(logging.getLogger(), config.logging)
    for name in config.ignored:
        LOG.warning("--%s is not implemented and is ignored", name)
    for name in controllers_run_nowhere(config.controllers.controllers):
        LOG.warning("--controllers: %s does not run: %s", name, OFF[name])
    try:
        uvloop.run(serve(config))
    except (OSError, KubeconfigError, ManagerFailed) as error:
        LOG.critical("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
