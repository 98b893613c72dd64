"""Every built-in resource of Kubernetes 1.36, a file for each API group.

A module belongs here if it holds one group's rows, and nothing but rows. `GROUPS` lists the groups in the order in
which discovery names them.
"""

from apiserver.resources.catalog import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apps,
    authentication,
    authorization,
    autoscaling,
    batch,
    certificates,
    coordination,
    core,
    discovery,
    events,
    flowcontrol,
    networking,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
)

GROUPS = (
    core.GROUP,
    apiregistration.GROUP,
    apps.GROUP,
    events.GROUP,
    authentication.GROUP,
    authorization.GROUP,
    autoscaling.GROUP,
    batch.GROUP,
    certificates.GROUP,
    networking.GROUP,
    policy.GROUP,
    rbac.GROUP,
    storage.GROUP,
    admissionregistration.GROUP,
    apiextensions.GROUP,
    scheduling.GROUP,
    coordination.GROUP,
    node.GROUP,
    discovery.GROUP,
    resource.GROUP,
    flowcontrol.GROUP,
)
