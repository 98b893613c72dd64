"""The chain of the enabled admission plugins, in upstream's order."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery.schema import minors
from mockube.apiserver.authz.chain import Authorization, RemoteAnswerNeeded, retry_async_decision
from mockube.apiserver.metrics.admission import ADMIT, QUICK, VALIDATE, AdmissionMetrics
from mockube.apiserver.outgoing import OutgoingDependencies
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.component_base.metrics import Distribution, MetricsRegistry

from .always_admit_and_deny import AlwaysAdmit, AlwaysDeny
from .always_pull_images import AlwaysPullImages
from .certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from .configurations import NO_CONFIGURATIONS, Configurations, ImagePolicySettings
from .default_classes import DefaultIngressClass, DefaultStorageClass
from .default_toleration_seconds import DefaultTolerationSeconds
from .event_rate_limit import EventRateLimit
from .image_policy_webhook import ImagePolicyWebhook
from .limit_ranger import LimitRanger
from .namespace_lifecycle import NamespaceLifecycle
from .namespaces import NamespaceAutoProvision, NamespaceExists
from .node_restriction import NodeRestriction
from .owner_references import OwnerReferencesPermissionEnforcement
from .persistent_volume_claim_resize import PersistentVolumeClaimResize
from .plugin import Plugin, name_of
from .pod_node_selector import PodNodeSelector
from .pod_topology_labels import PodTopologyLabels
from .podsecurity.plugin import PodSecurity
from .policies.mutating import MutatingAdmissionPolicy
from .policies.validating import ValidatingAdmissionPolicy
from .priority import Priority
from .resource_quota import ResourceQuota
from .restrictions import (
    DenyServiceExternalIPs,
    LimitPodHardAntiAffinityTopology,
    NodeDeclaredFeatureValidator,
    PodResizeValidator,
)
from .runtime_class import RuntimeClass
from .service_account import ServiceAccount
from .storage_object_in_use_protection import StorageObjectInUseProtection
from .taint_nodes_by_condition import TaintNodesByCondition
from .tolerations import ExtendedResourceToleration, PodTolerationRestriction
from .webhooks.dispatch import WebhookDependencies
from .webhooks.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

PLUGINS: Sequence[type[Plugin]] = (
    AlwaysAdmit,
    NamespaceAutoProvision,
    NamespaceLifecycle,
    NamespaceExists,
    LimitPodHardAntiAffinityTopology,
    LimitRanger,
    ServiceAccount,
    NodeRestriction,
    TaintNodesByCondition,
    AlwaysPullImages,
    ImagePolicyWebhook,
    PodSecurity,
    PodNodeSelector,
    Priority,
    DefaultTolerationSeconds,
    PodTolerationRestriction,
    EventRateLimit,
    ExtendedResourceToleration,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    ClusterTrustBundleAttest,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    DenyServiceExternalIPs,
    PodTopologyLabels,
    NodeDeclaredFeatureValidator,
    PodResizeValidator,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
    AlwaysDeny,
)
OFF_BY_DEFAULT: Final = frozenset(
    name_of(plugin)
    for plugin in (
        AlwaysAdmit,
        NamespaceAutoProvision,
        NamespaceExists,
        LimitPodHardAntiAffinityTopology,
        NodeRestriction,
        AlwaysPullImages,
        ImagePolicyWebhook,
        PodNodeSelector,
        PodTolerationRestriction,
        EventRateLimit,
        ExtendedResourceToleration,
        OwnerReferencesPermissionEnforcement,
        DenyServiceExternalIPs,
        AlwaysDeny,
    )
)


class PluginSelection(Struct, frozen=True, kw_only=True):
    """The plugins that are enabled or disabled other than by default, and their configurations."""

    enabled: Collection[str] = ()
    disabled: Collection[str] = ()
    configurations: Configurations = NO_CONFIGURATIONS
    toleration_seconds: tuple[int, int] = (300, 300)
    """The default tolerationSeconds for not-ready nodes and for unreachable nodes."""

    def is_on(self, name: str) -> bool:
        return name not in self.disabled and (name not in OFF_BY_DEFAULT or name in self.enabled)


DEFAULT_PLUGINS: Final = PluginSelection()

EFFECTIVE_SINCE: Final[Mapping[type[Plugin], str]] = {
    ClusterTrustBundleAttest: "1.37",
    MutatingAdmissionPolicy: "1.36",
    NodeDeclaredFeatureValidator: "1.36",
    PodTopologyLabels: "1.35",
    ValidatingAdmissionPolicy: "1.30",
}
"""The first minor release in which a plugin has an effect: its kinds are served, and its feature gate is enabled."""


def plugins(
    webhooks: WebhookDependencies,
    authorization: Authorization,
    metrics: AdmissionMetrics,
    switches: PluginSelection = DEFAULT_PLUGINS,
    minor: str = minors.NEWEST,
    outbound: OutgoingDependencies | None = None,
) -> Iterator[Plugin]:
    """Create the plugins of one server."""
    dependencies, configured = (authorization, webhooks.equivalents), switches.configurations
    constructors: dict[type[Plugin], Callable[[], Plugin]] = {
        MutatingAdmissionPolicy: partial(MutatingAdmissionPolicy, *dependencies, metrics.mutating),
        MutatingAdmissionWebhook: partial(MutatingAdmissionWebhook, webhooks),
        ValidatingAdmissionPolicy: partial(ValidatingAdmissionPolicy, *dependencies, metrics.validating),
        ValidatingAdmissionWebhook: partial(ValidatingAdmissionWebhook, webhooks),
        NamespaceLifecycle: partial(NamespaceLifecycle, minor),
        NodeRestriction: partial(NodeRestriction, authorization),
        OwnerReferencesPermissionEnforcement: partial(OwnerReferencesPermissionEnforcement, *dependencies),
        PodSecurity: partial(PodSecurity, configured.pod_security),
        PodNodeSelector: partial(PodNodeSelector, configured.node_selectors),
        PodTolerationRestriction: partial(PodTolerationRestriction, configured.tolerations),
        EventRateLimit: partial(EventRateLimit, configured.event_limits),
        DefaultTolerationSeconds: partial(DefaultTolerationSeconds, *switches.toleration_seconds),
        ResourceQuota: partial(ResourceQuota, configured.limited_resources),
        ImagePolicyWebhook: partial(_image_policy, configured.image_policy, outbound),
    }
    return (
        constructors.get(plugin, plugin)()
        for plugin in PLUGINS
        if switches.is_on(name_of(plugin)) and not minors.is_before(minor, EFFECTIVE_SINCE.get(plugin, minor))
    )


def _image_policy(settings: ImagePolicySettings | None, outbound: OutgoingDependencies | None) -> Plugin:
    assert settings is not None, "the flags are refused otherwise"
    assert outbound is not None, "there is a client"
    return ImagePolicyWebhook(settings, outbound)


Run = Callable[[Registry, AdmissionAttributes], Awaitable[None]]


_ALWAYS: Final[Sized] = (True,)


class PluginSet(NamedTuple):
    """The plugins for one operation on one target, with what each needs and its duration metrics."""

    plugins: Sequence[tuple[Run, Sized, Distribution, Distribution]]
    passed: Distribution
    rejected: Distribution


class _Step:
    """The plugins of a phase in their order; those for each operation and target are cached."""

    def __init__(self, name: str, plugins: Iterable[tuple[Plugin, Run]], metrics: AdmissionMetrics) -> None:
        self._plugin_sets: dict[tuple[Operation, Target], PluginSet] = {}
        self._name = name
        self._plugins = tuple(plugins)
        self._metrics = metrics

    def plugins_for(self, registry: Registry, attributes: AdmissionAttributes) -> PluginSet:
        key = attributes.operation, attributes.target
        return self._plugin_sets.get(key) or self._find(registry, key)

    def _find(self, registry: Registry, key: tuple[Operation, Target]) -> PluginSet:
        operation = key[0].value
        plugin_runs = [
            (
                run,
                _ALWAYS if plugin.needs is None else registry.resource_cache(plugin.needs).objects,
                *self._metrics.durations(self._name, operation, name_of(type(plugin))),
            )
            for plugin, run in self._plugins
            if plugin.handles(*key)
        ]
        self._plugin_sets[key] = plugin_set = PluginSet(
            plugin_runs, *self._metrics.durations(self._name, operation)
        )
        return plugin_set


async def _run(plugin_set: PluginSet, registry: Registry, attributes: AdmissionAttributes) -> None:
    monotonic = registry.clock.real.monotonic
    began = start = monotonic()
    rejected = plugin_set.rejected
    try:
        for run, needed, passed, rejected in plugin_set.plugins:  # noqa: B007 - the last one is the one that refused
            if not needed:
                passed.counts[0] += 1
                continue
            try:
                await run(registry, attributes)
            except RemoteAnswerNeeded as error:
                await error.prepare()
                await retry_async_decision(partial(run, registry, attributes))
            now = monotonic()
            seconds = now - start
            if seconds <= QUICK:
                passed.counts[0] += 1
                passed.total += seconds
            else:
                passed.observe(seconds)
            start = now
    except BaseException:
        now = monotonic()
        rejected.observe(now - start)
        plugin_set.rejected.observe(now - began)
        raise
    plugin_set.passed.observe(start - began)


class Admission:
    """Runs every plugin that handles an operation on a target."""

    def __init__(self, plugins: Sequence[Plugin], metrics: AdmissionMetrics | None = None) -> None:
        metrics = metrics or AdmissionMetrics(MetricsRegistry())
        mutating = [(plugin, plugin.mutate) for plugin in plugins if type(plugin).mutate is not Plugin.mutate]
        validating = [
            (plugin, plugin.validate) for plugin in plugins if type(plugin).validate is not Plugin.validate
        ]
        self._mutating = _Step(ADMIT, mutating, metrics)
        self._authorizing = {
            target: plugin
            for plugin in plugins
            if type(plugin).authorize is not Plugin.authorize
            for target in plugin.targets
        }
        """By target, the plugin that authorizes its writes."""
        self._validating = _Step(VALIDATE, validating, metrics)

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        if attributes.operation is Operation.CREATE:
            # A new object depends on others: on its namespace, its limits and its account.
            await registry.watch_cache.fresh()
        if attributes.context.is_internal:
            return
        plugin_set = self._mutating.plugins_for(registry, attributes)
        await _run(plugin_set, registry, attributes)
        if attributes.reinvocation.is_wanted:
            attributes.reinvocation.is_reinvocation = True
            await _run(plugin_set, registry, attributes)

    async def authorize(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        plugin = self._authorizing.get(attributes.target)
        if plugin is not None:
            await plugin.authorize(registry, attributes)

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        if not attributes.context.is_internal:
            await _run(self._validating.plugins_for(registry, attributes), registry, attributes)
