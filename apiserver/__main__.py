"""`python -m mockube.apiserver`: the API server as a process. `--help` lists its flags."""

import gc

if __name__ == "__main__":
    gc.disable()  # imported objects are never freed, and their garbage collection takes a tenth of the start-up time

import asyncio
import logging
import os
import sys
from collections.abc import Sequence

from mockube.component_base import interpreter_memory, klog, loop
from mockube.component_base.configuration_files import ConfigurationError
from mockube.component_base.operating_system import os_problem
from mockube.component_base.task_supervisor import TaskFailed
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.errors import KVError

from .audit.audit import BadAuditLog
from .audit.policy import BadPolicy
from .authn.serviceaccount.keys import BadKey
from .authn.token_file import BadTokenFile
from .config.command_line import Config, parse
from .config.tls import insecure_suites
from .kubeconfig import BadKubeconfig, OtherKubeconfig
from .pki.cert_dir import BadFolder
from .serve import notify_ready, serve

LOG = logging.getLogger(__name__)

SWITCH_SECONDS = 0.001
"""The longest time that the event loop waits for a thread with CPU-bound work, such as decoding a large body."""

FILE_ERRORS = (
    BadArchive,
    BadAuditLog,
    BadFolder,
    BadKey,
    BadKubeconfig,
    ConfigurationError,
    BadPolicy,
    BadTokenFile,
    OtherKubeconfig,
)


def main(arguments: Sequence[str]) -> int:
    gc.freeze()
    gc.set_threshold(*interpreter_memory.THRESHOLD)
    gc.enable()
    old_objects = interpreter_memory.OldObjects()
    config = parse(arguments, os.environ)
    klog.attach(logging.getLogger(), config.logging)
    log_warnings(config)

    def ready() -> None:
        # The objects that exist now are in use until the process ends.
        old_objects.begin()
        old_objects.age_periodically(asyncio.get_running_loop())
        sys.setswitchinterval(SWITCH_SECONDS)
        notify_ready(os.environ)

    try:
        loop.run(serve(config, once_ready=ready))
    except OSError as error:
        LOG.critical("%s", os_problem(error))
        return 1
    except (KVError, TaskFailed, *FILE_ERRORS) as error:
        LOG.critical("%s", error)
        return 1
    return 0


def log_warnings(config: Config) -> None:
    """Name the flags without effect, and those that make the server less safe."""
    for name in config.ignored:
        LOG.warning("--%s is not implemented and is ignored", name)
    for setting in config.ignored_flags():
        LOG.warning("%s is not supported and is ignored", setting)
    for suite in insecure_suites(config.serving.tls_cipher_suites):
        LOG.warning("Use of insecure cipher '%s' detected.", suite)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
