"""Every table of defaults, as one."""

from apimachinery.clock import Clock
from apiserver.defaults import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apps,
    authentication,
    autoscaling,
    batch,
    core,
    discovery,
    flowcontrol,
    networking,
    node,
    pods,
    rbac,
    resource,
    scheduling,
    services,
    storage,
    volumes,
)
from apiserver.defaults.table import Table


def every_table(clock: Clock) -> Table:
    """The clock is for the one default that is a time."""
    return {
        **admissionregistration.DEFAULTS,
        **apiextensions.DEFAULTS,
        **apiregistration.DEFAULTS,
        **apps.DEFAULTS,
        **authentication.DEFAULTS,
        **autoscaling.DEFAULTS,
        **batch.DEFAULTS,
        **core.DEFAULTS,
        **discovery.DEFAULTS,
        **flowcontrol.DEFAULTS,
        **networking.DEFAULTS,
        **node.DEFAULTS,
        **pods.DEFAULTS,
        **rbac.DEFAULTS,
        **resource.defaults(clock),
        **scheduling.DEFAULTS,
        **services.DEFAULTS,
        **storage.DEFAULTS,
        **volumes.DEFAULTS,
    }
