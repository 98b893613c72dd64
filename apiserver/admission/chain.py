"""The admission plugins that are on, in the order in which upstream runs them.

Still to come, in its place: MutatingAdmissionPolicy before MutatingAdmissionWebhook.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from mockube.apiserver.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from mockube.apiserver.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from mockube.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from mockube.apiserver.admission.limit_ranger import LimitRanger
from mockube.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from mockube.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from mockube.apiserver.admission.plugin import Plugin, name_of
from mockube.apiserver.admission.pod_topology_labels import PodTopologyLabels
from mockube.apiserver.admission.podsecurity.plugin import PodSecurity
from mockube.apiserver.admission.policies.mutating import MutatingAdmissionPolicy
from mockube.apiserver.admission.policies.validating import ValidatingAdmissionPolicy
from mockube.apiserver.admission.priority import Priority
from mockube.apiserver.admission.resource_quota import ResourceQuota
from mockube.apiserver.admission.runtime_class import RuntimeClass
from mockube.apiserver.admission.service_account import ServiceAccount
from mockube.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from mockube.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from mockube.apiserver.admission.webhooks.dispatch import Environment
from mockube.apiserver.admission.webhooks.plugins import (
    MutatingAdmissionWebhook,
    ValidatingAdmissionWebhook,
)
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.registry.attributes import Attributes, Operation, Target
from mockube.apiserver.registry.backend import Backend

PLUGINS: Sequence[type[Plugin]] = (
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    TaintNodesByCondition,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    PodTopologyLabels,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
)


def plugins(
    webhooks: Environment, authorization: Authorization, disabled: Collection[str] = ()
) -> Iterator[Plugin]:
    """Make the plugins of one server."""
    made: dict[type[Plugin], Callable[[], Plugin]] = {
        MutatingAdmissionPolicy: partial(MutatingAdmissionPolicy, authorization),
        MutatingAdmissionWebhook: partial(MutatingAdmissionWebhook, webhooks),
        ValidatingAdmissionPolicy: partial(ValidatingAdmissionPolicy, authorization),
        ValidatingAdmissionWebhook: partial(ValidatingAdmissionWebhook, webhooks),
    }
    return (made.get(one, one)() for one in PLUGINS if name_of(one) not in disabled)


class _Concerned(dict[tuple[Operation, Target], Sequence[Plugin]]):
    """The plugins that are asked about a write, in their order: found once for each operation and target."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        super().__init__()
        self._plugins = tuple(plugins)

    def __missing__(self, key: tuple[Operation, Target]) -> Sequence[Plugin]:
        found = self[key] = tuple(plugin for plugin in self._plugins if plugin.handles(*key))
        return found


class Admission:
    """Runs every plugin that handles an operation on a target."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._mutating = _Concerned(one for one in plugins if type(one).mutate is not Plugin.mutate)
        self._validating = _Concerned(one for one in plugins if type(one).validate is not Plugin.validate)

    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        if attributes.operation is Operation.CREATE:
            # What is created next to others follows from them: from its namespace, its limits, its account.
            await backend.watch_cache.fresh()
        if attributes.call.is_internal:
            return
        plugins = self._mutating[attributes.operation, attributes.target]
        for plugin in plugins:
            await plugin.mutate(backend, attributes)
        if attributes.reinvocation.is_wanted:
            attributes.reinvocation.is_again = True
            for plugin in plugins:
                await plugin.mutate(backend, attributes)

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        if attributes.call.is_internal:
            return
        for plugin in self._validating[attributes.operation, attributes.target]:
            await plugin.validate(backend, attributes)
