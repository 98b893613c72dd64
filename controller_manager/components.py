"""The scheduler and the kubelets as parts of this manager, made from its flags."""

from typing import Final

from mockube.scheduler.profiles import SchedulerSettings
from mockube.scheduler.scheduler import Scheduler
from mockube.scheduler.settings import settings_for

from .config.settings import Config
from .control.runnable import Context, Runnable


def scheduler_settings(options: Config) -> SchedulerSettings:
    """Return what the flags configure; raise ConfigurationError if it is invalid."""
    return settings_for(
        options.controllers.scheduler_config, options.scheduler_plugins, options.features.gates
    )


def _scheduler(context: Context) -> Scheduler:
    return Scheduler(context, scheduler_settings(context.options))


KUBE_SCHEDULER: Final = Runnable(name="kube-scheduler", service_account="", build=_scheduler)
"""It has no service account: upstream's scheduler is a user, and no role has bindings for an account of its name."""
