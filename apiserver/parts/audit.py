"""The audit log, by the flags that name its file and its policy."""

import logging
from typing import Final

from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.audit.policy import DEFAULT_POLICY, read

from .context import ApiServerContext

LOG: Final = logging.getLogger(__name__)


def make_audit(context: ApiServerContext) -> Audit | None:
    """Return the log, with the default policy if the flags name none; None without a path.

    A policy without a path is read, as upstream does, because it may be invalid; no events are recorded.
    """
    flags = context.config.auditing
    path, file = flags.audit_log_path, flags.audit_policy_file
    policy = DEFAULT_POLICY if file is None else read(file)
    if path is None:
        if file is not None:
            LOG.warning("No audit log is written: --audit-policy-file has no effect without --audit-log-path")
        return None
    return Audit(path, policy, clock=context.clock)
