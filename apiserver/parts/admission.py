"""The admission plugins: those that the flags select, those of packs, and those that cannot be disabled."""

from msgspec import Struct

from mockube.apimachinery.schema import minors
from mockube.apiserver.admission.assumed_releases import WarnOfAssumedPods
from mockube.apiserver.admission.chain import Admission, PluginSelection, plugins
from mockube.apiserver.admission.configurations import ALLOW
from mockube.apiserver.admission.pod_certificate_signing import PodCertificateSigning
from mockube.apiserver.admission.policies.param_access import PolicyParamAccess
from mockube.apiserver.admission.resource_claim_access import ResourceClaimAccess
from mockube.apiserver.admission.role_escalation import RoleEscalation
from mockube.apiserver.admission.simulated_operator import WarnOfSimulatedOperator
from mockube.apiserver.admission.webhooks.dispatch import WebhookDependencies
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog, equivalent_resources
from mockube.apiserver.metrics.admission import AdmissionMetrics, WebhookMetrics
from mockube.apiserver.packs.compiled_packs import pack_plugins
from mockube.apiserver.packs.definitions import pack_resources
from mockube.apiserver.registry.simulated_operators import SimulatedOperators
from mockube.apiserver.storage.stored_object import Layout

from .context import ApiServerContext
from .outgoing import Outgoing


class AdmissionControl(Struct, frozen=True, kw_only=True):
    chain: Admission
    """The plugins in their order."""
    operators: SimulatedOperators
    """Finds the simulated operators of custom resources; packs reconcile their own."""


def make_admission(
    context: ApiServerContext, catalog: Catalog, rights: Rights, outgoing: Outgoing
) -> AdmissionControl:
    config = context.config
    operators = SimulatedOperators(rights.rbac.policy, pack_resources(config.features.packs))
    webhooks, counts = _webhooks(context, catalog, rights, outgoing), AdmissionMetrics(context.metrics)
    selected = plugins(
        webhooks, rights.authorization, counts, _selection(config), context.minor, outgoing.remote.outbound
    )
    always = (
        RoleEscalation(rights.authorization, rights.rbac.policy),
        PolicyParamAccess(webhooks.equivalents),
        PodCertificateSigning(),
        ResourceClaimAccess(authorizes_status=not minors.is_before(context.minor, "1.36")),
    )
    packed = pack_plugins(config.features.packs, catalog)
    warning = WarnOfSimulatedOperator(operators, (group.name for group in catalog.groups))
    chain = Admission([*selected, *packed, *always, warning, WarnOfAssumedPods()], counts)
    return AdmissionControl(chain=chain, operators=operators)


def _webhooks(
    context: ApiServerContext, catalog: Catalog, rights: Rights, outgoing: Outgoing
) -> WebhookDependencies:
    """Return what admission needs to call webhooks."""
    config = context.config
    return WebhookDependencies(
        caller=outgoing.webhooks,
        authorization=rights.authorization,
        equivalents=equivalent_resources(catalog, Layout(config.store.etcd_prefix)),
        services=dict(config.admission.webhook_service),
        allows_simulated=config.admission.simulated_webhooks == ALLOW,
        metrics=WebhookMetrics(context.metrics),
    )


def _selection(config: Config) -> PluginSelection:
    admission = config.admission
    return PluginSelection(
        enabled=admission.enable_admission_plugins,
        disabled=admission.disable_admission_plugins,
        configurations=admission.admission_control_config_file,
        toleration_seconds=(
            admission.default_not_ready_toleration_seconds,
            admission.default_unreachable_toleration_seconds,
        ),
    )
