"""The fields of objects that the rules read. An object with other types in them is refused by a server, and no rule reads it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

Labels: TypeAlias = Mapping[str, str]
PortName: TypeAlias = int | str
"""A port as objects refer to it: its number or its name."""


class Fields(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an object; it is decoded without the fields that are null, as a server sees it."""


# --- pods


class KeyReference(Fields, frozen=True):
    name: str = ""
    key: str = ""
    optional: bool = False


class VariableSource(Fields, frozen=True):
    config_map_key_ref: KeyReference | None = None
    secret_key_ref: KeyReference | None = None


class Variable(Fields, frozen=True):
    name: str = ""
    value: str = ""
    value_from: VariableSource = VariableSource()


class VariablesSource(Fields, frozen=True):
    config_map_ref: KeyReference | None = None
    secret_ref: KeyReference | None = None


class KeyToPath(Fields, frozen=True):
    key: str = ""
    path: str = ""


class DataSource(Fields, frozen=True):
    """A volume or a part of one with the keys of a ConfigMap or Secret."""

    name: str = ""
    secret_name: str = ""
    items: Sequence[KeyToPath] = ()
    optional: bool = False


class ProjectedSource(Fields, frozen=True):
    config_map: DataSource | None = None
    secret: DataSource | None = None


class Projected(Fields, frozen=True):
    sources: Sequence[ProjectedSource] = ()


class ClaimSource(Fields, frozen=True):
    claim_name: str = ""


class Metadata(Fields, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    labels: Labels = {}
    annotations: Labels = {}


class ClaimSpec(Fields, frozen=True):
    storage_class_name: str = ""


class ClaimTemplate(Fields, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()


class EphemeralSource(Fields, frozen=True):
    volume_claim_template: ClaimTemplate | None = None


class Volume(Fields, frozen=True):
    name: str = ""
    config_map: DataSource | None = None
    secret: DataSource | None = None
    projected: Projected | None = None
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource = EphemeralSource()


class HttpGet(Fields, frozen=True):
    port: PortName = 0
    path: str = ""
    host: str = ""
    scheme: str = "HTTP"


class TcpSocket(Fields, frozen=True):
    port: PortName = 0
    host: str = ""


class Grpc(Fields, frozen=True):
    port: int = 0


class Handler(Fields, frozen=True):
    """A probe, or a handler of the lifecycle."""

    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: Grpc | None = None


class Lifecycle(Fields, frozen=True):
    post_start: Handler = Handler()
    pre_stop: Handler = Handler()


class ContainerPort(Fields, frozen=True):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class VolumeMount(Fields, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""


class Resources(Fields, frozen=True):
    requests: Mapping[str, Any] = {}
    limits: Mapping[str, Any] = {}


class Container(Fields, frozen=True):
    name: str = ""
    image: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Sequence[Variable] = ()
    env_from: Sequence[VariablesSource] = ()
    ports: Sequence[ContainerPort] = ()
    liveness_probe: Handler = Handler()
    readiness_probe: Handler = Handler()
    startup_probe: Handler = Handler()
    lifecycle: Lifecycle = Lifecycle()
    volume_mounts: Sequence[VolumeMount] = ()
    resources: Resources = Resources()
    restart_policy: str = ""


class LocalReference(Fields, frozen=True):
    name: str = ""


class PodSpec(Fields, frozen=True):
    containers: Sequence[Container] = ()
    init_containers: Sequence[Container] = ()
    volumes: Sequence[Volume] = ()
    service_account_name: str = ""
    service_account: str = ""
    priority_class_name: str = ""
    runtime_class_name: str = ""
    image_pull_secrets: Sequence[LocalReference] = ()
    resources: Resources = Resources()


class TemplateFields(Fields, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class LabelSelector(Fields, frozen=True):
    match_labels: Labels = {}
    match_expressions: Sequence[Mapping[str, Any]] = ()


# --- other kinds


class DataFields(Fields, frozen=True):
    """A ConfigMap or a Secret."""

    type: str = ""
    data: Mapping[str, Any] = {}
    binary_data: Mapping[str, Any] = {}
    string_data: Mapping[str, Any] = {}


class ServicePort(Fields, frozen=True):
    name: str = ""
    port: int = 0
    target_port: PortName | None = None
    protocol: str = "TCP"

    @property
    def target(self) -> PortName:
        return self.target_port or self.port


class ServiceSpec(Fields, frozen=True):
    type: str = "ClusterIP"
    selector: Labels = {}
    ports: Sequence[ServicePort] = ()
    cluster_ip: str = field(default="", name="clusterIP")


class ServiceFields(Fields, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class StatefulSetSpec(Fields, frozen=True):
    service_name: str = ""
    volume_claim_templates: Sequence[ClaimTemplate] = ()


class StatefulSetFields(Fields, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class ObjectReference(Fields, frozen=True):
    api_group: str = ""
    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    group: str = ""
    port: int = 0


class RoleBindingFields(Fields, frozen=True):
    role_ref: ObjectReference = ObjectReference()
    subjects: Sequence[ObjectReference] = ()


class RoleRule(Fields, frozen=True):
    verbs: Sequence[str] = ()
    api_groups: Sequence[str] = ()
    resources: Sequence[str] = ()


class RoleFields(Fields, frozen=True):
    rules: Sequence[RoleRule] = ()


class BackendPort(Fields, frozen=True):
    name: str = ""
    number: int = 0


class IngressService(Fields, frozen=True):
    name: str = ""
    port: BackendPort = BackendPort()


class IngressBackend(Fields, frozen=True):
    service: IngressService | None = None


class IngressPath(Fields, frozen=True):
    path: str = ""
    backend: IngressBackend = IngressBackend()


class IngressHttp(Fields, frozen=True):
    paths: Sequence[IngressPath] = ()


class IngressRule(Fields, frozen=True):
    http: IngressHttp = IngressHttp()


class IngressTls(Fields, frozen=True):
    secret_name: str = ""


class IngressSpec(Fields, frozen=True):
    ingress_class_name: str = ""
    default_backend: IngressBackend = IngressBackend()
    rules: Sequence[IngressRule] = ()
    tls: Sequence[IngressTls] = ()


class IngressFields(Fields, frozen=True):
    spec: IngressSpec = IngressSpec()


class RouteRule(Fields, frozen=True):
    backend_refs: Sequence[ObjectReference] = ()


class RouteSpec(Fields, frozen=True):
    rules: Sequence[RouteRule] = ()


class RouteFields(Fields, frozen=True):
    spec: RouteSpec = RouteSpec()


class WebhookService(Fields, frozen=True):
    name: str = ""
    namespace: str = ""
    port: int = 443


class WebhookClient(Fields, frozen=True):
    service: WebhookService | None = None


class Webhook(Fields, frozen=True):
    client_config: WebhookClient = WebhookClient()


class WebhooksFields(Fields, frozen=True):
    webhooks: Sequence[Webhook] = ()


class ConversionWebhook(Fields, frozen=True):
    client_config: WebhookClient = WebhookClient()


class Conversion(Fields, frozen=True):
    webhook: ConversionWebhook = ConversionWebhook()


class DefinitionSpec(Fields, frozen=True):
    conversion: Conversion = Conversion()


class DefinitionFields(Fields, frozen=True):
    spec: DefinitionSpec = DefinitionSpec()


class ApiServiceSpec(Fields, frozen=True):
    service: WebhookService | None = None


class ApiServiceFields(Fields, frozen=True):
    spec: ApiServiceSpec = ApiServiceSpec()


class MetricTarget(Fields, frozen=True):
    type: str = ""
    average_utilization: int | None = None


class ResourceMetric(Fields, frozen=True):
    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()


class ObjectMetric(Fields, frozen=True):
    described_object: ObjectReference = ObjectReference()


class Metric(Fields, frozen=True):
    type: str = ""
    object: ObjectMetric = ObjectMetric()
    resource: ResourceMetric | None = None
    container_resource: ResourceMetric | None = None


class AutoscalerSpec(Fields, frozen=True):
    scale_target_ref: ObjectReference = ObjectReference()
    target_ref: ObjectReference = ObjectReference()
    metrics: Sequence[Metric] = ()
    target_cpu: int | None = field(default=None, name="targetCPUUtilizationPercentage")


class AutoscalerFields(Fields, frozen=True):
    spec: AutoscalerSpec = AutoscalerSpec()


class BudgetSpec(Fields, frozen=True):
    selector: LabelSelector | None = None


class BudgetFields(Fields, frozen=True):
    spec: BudgetSpec = BudgetSpec()


class PolicyPeer(Fields, frozen=True):
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: Mapping[str, Any] | None = None


class PolicyPort(Fields, frozen=True):
    protocol: str = "TCP"
    port: PortName | None = None
    end_port: int = 0


class PolicyRule(Fields, frozen=True):
    peers_from: Sequence[PolicyPeer] = field(default=(), name="from")
    peers_to: Sequence[PolicyPeer] = field(default=(), name="to")
    ports: Sequence[PolicyPort] = ()


class PolicySpec(Fields, frozen=True):
    pod_selector: LabelSelector = LabelSelector()
    policy_types: Sequence[str] = ()
    ingress: Sequence[PolicyRule] = ()
    egress: Sequence[PolicyRule] = ()


class PolicyFields(Fields, frozen=True):
    spec: PolicySpec = PolicySpec()


class ClaimFields(Fields, frozen=True):
    spec: ClaimSpec = ClaimSpec()
