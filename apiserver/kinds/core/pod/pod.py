"""Pod: its row; the other files of this folder define its other parts."""

from typing import Final

from mockube.apiserver.fields import SelectableField, selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource, Subresource
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.kind import Kind

from .columns import PRINTER
from .defaults import DEFAULTS, DEFAULTS_WITH_PROTOCOL, INTERNAL_CHANGES
from .resize import check_resize
from .status import check_status_update
from .strategy import STRATEGY
from .validation import check_ephemeral_update, check_new_pod, check_pod_update
from .warnings import WARNINGS

KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="pods",
        kind="Pod",
        short_names=("po",),
        categories=("all",),
        indexed="spec.nodeName",
        selectable=(
            selectable("spec.nodeName"),
            selectable("spec.host", "spec.nodeName"),
            selectable("spec.restartPolicy"),
            selectable("spec.schedulerName"),
            selectable("spec.serviceAccountName"),
            selectable("spec.hostNetwork", absent="false"),
            selectable("status.phase"),
            selectable("status.podIP"),
            SelectableField("status.podIPs", ()),
            selectable("status.nominatedNodeName"),
        ),
        subresources=(
            Subresource(name="attach", kind="PodAttachOptions", verbs=("create", "get")),
            Subresource(name="binding", kind="Binding", verbs=("create",)),
            Subresource(name="ephemeralcontainers"),
            Subresource(name="eviction", kind="Eviction", verbs=("create",), group_version=("policy", "v1")),
            Subresource(name="exec", kind="PodExecOptions", verbs=("create", "get")),
            Subresource(name="log", verbs=("get",)),
            Subresource(name="portforward", kind="PodPortForwardOptions", verbs=("create", "get")),
            Subresource(
                name="proxy", kind="PodProxyOptions", verbs=("create", "delete", "get", "patch", "update")
            ),
            Subresource(name="resize"),
            STATUS,
        ),
    ),
    strategy=STRATEGY,
    validation=Validation(
        create=check_new_pod,
        update=check_pod_update,
        subresources={
            "status": check_status_update,
            "ephemeralcontainers": check_ephemeral_update,
            "resize": check_resize,
        },
    ),
    warnings=WARNINGS,
    printer=PRINTER,
    defaults=DEFAULTS,
    internal_changes=INTERNAL_CHANGES,
    by_gate={"H2CContainerProbe": {"defaults": DEFAULTS_WITH_PROTOCOL}},
)
