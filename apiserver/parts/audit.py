"""The audit log, by the flags that name its file and its policy."""

from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.audit.policy import DEFAULT_POLICY, read
from mockube.apiserver.config.command_line import Config
from mockube.component_base.clock import Clock


def make_audit(config: Config, clock: Clock) -> Audit | None:
    """Return the log, with the default policy if the flags name none; None without a path."""
    path, policy = config.auditing.audit_log_path, config.auditing.audit_policy_file
    if path is None:
        return None
    return Audit(path, DEFAULT_POLICY if policy is None else read(policy), clock=clock)
