"""`python -m apiserver`: the API server as a process. `--help` says what can be set."""

import gc
import logging
import os
import sys
from collections.abc import Sequence

import uvloop

from apimachinery import klog
from apiserver.authn.serviceaccount.keys import BadKey
from apiserver.authn.tokens import BadTokenFile
from apiserver.config.command_line import parse
from apiserver.kubeconfig import NotOurs
from apiserver.notify import notify_ready
from apiserver.pki.folder import BadFolder
from apiserver.serve import serve
from etcd.archive.read import BadArchive
from etcd.errors import KVError

LOG = logging.getLogger(__name__)

COLLECT_AFTER = (100_000, 20, 20)
"""Python's own garbage: requests leave little of it behind, and to look for it after every 700 objects costs each a share."""


def main(arguments: Sequence[str]) -> int:
    config = parse(arguments, os.environ)
    klog.attach(logging.getLogger(), config.logging)
    for name in config.ignored:
        LOG.warning("--%s is not built yet, and ignored", name)
    for setting in config.unhonoured():
        LOG.warning("%s cannot be honoured, and is ignored", setting)

    def ready() -> None:
        # What is there by now stays as long as the process: no collection needs to look at it again.
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        notify_ready(os.environ)

    try:
        uvloop.run(serve(config, once_ready=ready))
    except (OSError, KVError, BadArchive, BadFolder, BadKey, BadTokenFile, NotOurs) as error:
        LOG.critical("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
