"""The admission plugins that are on, in the order in which upstream runs them.

Still to come, in their places: PodSecurity behind TaintNodesByCondition; MutatingAdmissionPolicy,
MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook and ResourceQuota at the end.
"""

from collections.abc import Sequence

from apiserver.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from apiserver.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from apiserver.admission.limit_ranger import LimitRanger
from apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from apiserver.admission.plugin import Plugin
from apiserver.admission.pod_topology_labels import PodTopologyLabels
from apiserver.admission.priority import Priority
from apiserver.admission.runtime_class import RuntimeClass
from apiserver.admission.service_account import ServiceAccount
from apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend

PLUGINS: Sequence[Plugin] = (
    NamespaceLifecycle(),
    LimitRanger(),
    ServiceAccount(),
    TaintNodesByCondition(),
    Priority(),
    DefaultTolerationSeconds(),
    DefaultStorageClass(),
    StorageObjectInUseProtection(),
    PersistentVolumeClaimResize(),
    RuntimeClass(),
    CertificateApproval(),
    CertificateSigning(),
    CertificateSubjectRestriction(),
    DefaultIngressClass(),
    PodTopologyLabels(),
)


class Admission:
    """Runs every plugin that handles an operation."""

    def __init__(self, plugins: Sequence[Plugin] = PLUGINS) -> None:
        self._mutating = {
            operation: [
                plugin
                for plugin in plugins
                if operation in plugin.operations and type(plugin).mutate is not Plugin.mutate
            ]
            for operation in Operation
        }
        self._validating = {
            operation: [
                plugin
                for plugin in plugins
                if operation in plugin.operations and type(plugin).validate is not Plugin.validate
            ]
            for operation in Operation
        }

    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        if attributes.operation is Operation.CREATE:
            # What is created next to others follows from them: from its namespace, its limits, its account.
            await backend.mirror.fresh()
        for plugin in self._mutating[attributes.operation]:
            await plugin.mutate(backend, attributes)

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        for plugin in self._validating[attributes.operation]:
            await plugin.validate(backend, attributes)
