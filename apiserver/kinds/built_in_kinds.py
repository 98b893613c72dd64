"""Every built-in kind of the newest minor of Kubernetes, and the parts of kinds by resource or kind.

`GROUPS` is in the order of discovery. `Kinds` derives the look-ups from groups: strategies, conversions, validations,
warnings, defaults. `minors/` has what older minor releases have instead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.schema import minors
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.wire.table import NAME, Column, Printer
from mockube.component_base.clock import Clock

from .admissionregistration import (
    matching,
    mutating_admission_policy,
    policy_bindings,
    validating_admission_policy,
    webhook_configurations,
)
from .api_resource import GroupVersion, Resource
from .apiextensions import custom_resource_definition
from .apiregistration import api_service
from .apps import controller_revision, daemon_set, deployment, replica_set, stateful_set
from .authentication import reviews
from .authorization import access_reviews
from .autoscaling import scale
from .autoscaling.horizontal_pod_autoscaler import horizontal_pod_autoscaler
from .batch import cron_job
from .batch.job import job
from .certificates import certificate_signing_request, cluster_trust_bundle, pod_certificate_request
from .common.defaults import Steps, Table, defaults_table
from .common.validation import Validation
from .common.warnings import Warnings
from .coordination import lease
from .core import (
    component_status,
    config_maps_and_secrets,
    endpoints,
    event,
    limit_range,
    namespace,
    node,
    replication_controller,
    resource_quota,
    service_account,
)
from .core.pod import pod, pod_template
from .core.service import service
from .core.volumes import persistent_volume, persistent_volume_claim
from .core.volumes import sources as volume_sources
from .discovery import endpoint_slice
from .events import event as events_event
from .flowcontrol import flow_schema, priority_level_configuration
from .kind import Conversion, Group, Kind
from .metrics.resource_metrics import GROUP as METRICS_GROUP
from .networking import ingress, ingress_class, ip_address, network_policy, service_cidr
from .node import runtime_class
from .policy import pod_disruption_budget
from .rbac import role_bindings, roles
from .resource import device_class, device_taint_rule, resource_claims, resource_slice
from .scheduling import priority_class
from .storage import (
    csi_driver,
    csi_node,
    csi_storage_capacity,
    storage_class,
    volume_attachment,
    volume_attributes_class,
)
from .storagemigration import storage_version_migration
from .strategy import Strategy

GROUPS: Final = (
    Group(
        name="",
        kinds=(
            component_status.BINDING,
            component_status.COMPONENT_STATUS,
            config_maps_and_secrets.CONFIG_MAP,
            endpoints.KIND,
            event.KIND,
            limit_range.KIND,
            namespace.KIND,
            node.KIND,
            persistent_volume_claim.KIND,
            persistent_volume.KIND,
            pod.KIND,
            pod_template.KIND,
            replication_controller.KIND,
            resource_quota.KIND,
            config_maps_and_secrets.SECRET,
            service_account.KIND,
            service.KIND,
        ),
        defaults=volume_sources.DEFAULTS,
    ),
    Group(name="apiregistration.k8s.io", kinds=(api_service.KIND,)),
    Group(
        name="apps",
        kinds=(
            controller_revision.KIND,
            daemon_set.KIND,
            deployment.KIND,
            replica_set.KIND,
            stateful_set.KIND,
        ),
    ),
    Group(name="events.k8s.io", kinds=(events_event.KIND,)),
    Group(
        name="authentication.k8s.io",
        kinds=(reviews.SELF_SUBJECT_REVIEW, reviews.TOKEN_REVIEW),
        # The body of serviceaccounts/token, which is not a resource by itself.
        defaults=defaults_table(
            "io.k8s.api.authentication.v1", {"TokenRequestSpec": {"expirationSeconds": 3600}}
        ),
    ),
    Group(
        name="authorization.k8s.io",
        kinds=(
            access_reviews.LOCAL_SUBJECT_ACCESS_REVIEW,
            access_reviews.SELF_SUBJECT_ACCESS_REVIEW,
            access_reviews.SELF_SUBJECT_RULES_REVIEW,
            access_reviews.SUBJECT_ACCESS_REVIEW,
        ),
    ),
    Group(
        name="autoscaling",
        versions=("v2", "v1"),
        kinds=(horizontal_pod_autoscaler.KIND, horizontal_pod_autoscaler.KIND_V1),
    ),
    Group(
        name="batch",
        kinds=(
            cron_job.KIND,
            job.KIND,
        ),
    ),
    Group(
        name="certificates.k8s.io",
        kinds=(certificate_signing_request.KIND, cluster_trust_bundle.KIND, pod_certificate_request.KIND),
    ),
    Group(
        name="networking.k8s.io",
        kinds=(
            ingress_class.KIND,
            ingress.KIND,
            ip_address.KIND,
            network_policy.KIND,
            service_cidr.KIND,
        ),
    ),
    Group(name="policy", kinds=(pod_disruption_budget.KIND,)),
    Group(
        name="rbac.authorization.k8s.io",
        kinds=(
            role_bindings.CLUSTER_ROLE_BINDING,
            roles.CLUSTER_ROLE,
            role_bindings.ROLE_BINDING,
            roles.ROLE,
        ),
        defaults=role_bindings.DEFAULTS,
    ),
    Group(
        name="storage.k8s.io",
        kinds=(
            csi_driver.KIND,
            csi_node.KIND,
            csi_storage_capacity.KIND,
            storage_class.KIND,
            volume_attachment.KIND,
            volume_attributes_class.KIND,
        ),
    ),
    Group(
        name="admissionregistration.k8s.io",
        kinds=(
            mutating_admission_policy.KIND,
            policy_bindings.MUTATING_ADMISSION_POLICY_BINDING,
            webhook_configurations.MUTATING_WEBHOOK_CONFIGURATION,
            validating_admission_policy.KIND,
            policy_bindings.VALIDATING_ADMISSION_POLICY_BINDING,
            webhook_configurations.VALIDATING_WEBHOOK_CONFIGURATION,
        ),
        defaults=matching.DEFAULTS,
    ),
    Group(name="apiextensions.k8s.io", kinds=(custom_resource_definition.KIND,)),
    Group(name="scheduling.k8s.io", kinds=(priority_class.KIND,)),
    Group(name="coordination.k8s.io", kinds=(lease.KIND,)),
    Group(name="node.k8s.io", kinds=(runtime_class.KIND,)),
    Group(name="discovery.k8s.io", kinds=(endpoint_slice.KIND,)),
    Group(
        name="resource.k8s.io",
        kinds=(
            device_class.KIND,
            device_taint_rule.KIND,
            resource_claims.RESOURCE_CLAIM,
            resource_claims.RESOURCE_CLAIM_TEMPLATE,
            resource_slice.KIND,
        ),
        defaults=resource_claims.DEFAULTS,
    ),
    Group(name="flowcontrol.apiserver.k8s.io", kinds=(flow_schema.KIND, priority_level_configuration.KIND)),
    Group(name="storagemigration.k8s.io", kinds=(storage_version_migration.KIND,)),
)

Conversions: TypeAlias = Mapping[tuple[GroupVersion, str], Conversion]
"""Conversions by version other than the stored one, and by resource name."""


class Kinds:
    """The kinds of one minor release by group, and the parts of kinds by resource or kind."""

    def __init__(
        self,
        groups: Iterable[Group],
        hidden: Iterable[Resource] = (),
        minor: str = minors.NEWEST,
        controllers_run_nowhere: Iterable[Kind] = (),
    ) -> None:
        self.minor = minor
        self.groups = tuple(groups)
        self.all = tuple(kind for group in self.groups for kind in group.kinds)
        self._switched_off = tuple(controllers_run_nowhere)
        kinds = (*self._switched_off, *self.all)
        self.hidden = (*hidden, *(kind.resource for kind in self._switched_off))
        """Resources that the server uses for its own objects and does not serve."""
        self.strategies: Mapping[GroupResource, Strategy] = MappingProxyType(
            {kind.resource.group_resource: kind.strategy for kind in kinds if kind.strategy}
        )
        self.conversions: Conversions = MappingProxyType(
            {
                (kind.resource.group_version, kind.resource.name): kind.conversion
                for kind in kinds
                if kind.conversion
            }
        )
        self.validations: Mapping[GroupKind, Validation] = MappingProxyType(
            {kind.resource.group_kind: kind.validation for kind in kinds if kind.validation}
        )
        self.warnings: Mapping[GroupKind, Warnings] = MappingProxyType(
            {kind.resource.group_kind: kind.warnings for kind in kinds if kind.warnings}
        )

        self.internal_changes: Mapping[tuple[str, str], Sequence[Callable[[Tree], None]]] = MappingProxyType(
            {
                (kind.resource.api_version, kind.resource.kind): kind.internal_changes
                for kind in kinds
                if kind.internal_changes
            }
        )
        """By apiVersion and kind."""
        self.printers: Mapping[GroupKind, Printer] = MappingProxyType(
            {kind.resource.group_kind: kind.printer for kind in kinds if kind.printer}
        )

    def defaults(self, clock: Clock) -> Table:
        """Return the defaults of all structs. The clock is for the one default that is a time."""
        table: dict[str, Steps | None] = {}
        for group in self.groups:
            table.update(group.defaults)
            for kind in group.kinds:
                table.update(kind.defaults)
                if kind.timed_defaults:
                    table.update(kind.timed_defaults(clock))
        for kind in self._switched_off:
            table.update(kind.defaults)
        return table


NEWEST: Final = Kinds(GROUPS)

METRICS: Final = METRICS_GROUP.kinds
"""The groups of metrics, which not every server has."""
_OTHERS: Final[Mapping[GroupKind, Printer]] = {
    **{kind.resource.group_kind: kind.printer for kind in METRICS if kind.printer},
    scale.GROUP_KIND: scale.PRINTER,
}


def _default(tree: Tree, _: datetime) -> list[Any]:
    created = meta.creation_timestamp(tree)
    return [meta.name(tree), format_time(created) if created else "0001-01-01T00:00:00Z"]


DEFAULT: Final = Printer(
    columns=(NAME, Column(name="Created At", type="date")), cells=_default, has_no_rows=True
)
"""The printer of kinds without their own one."""


def printer_of_kind(group_kind: GroupKind, kinds: Kinds = NEWEST) -> Printer:
    return kinds.printers.get(group_kind) or _OTHERS.get(group_kind, DEFAULT)
