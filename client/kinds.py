"""The rows of the resources that controllers watch and write."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree

from .podview import PodView
from .resources import Resource, row

_TOKEN_TYPES: Final = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})


def _without_unused_data(secret: ReadOnlyTree) -> ReadOnlyTree:
    """Return a Secret with the keys of its data only, unless it contains a token: other values can be large, and are not read."""
    if secret.get("type") in _TOKEN_TYPES or not secret.get("data"):
        return secret
    return {**secret, "data": dict.fromkeys(secret["data"])}


PODS: Final = Resource(
    group="",
    version="v1",
    plural="pods",
    kind="Pod",
    namespaced=True,
    view=PodView.of,
    tree=attrgetter("object"),
)

CONFIG_MAPS: Final = row("v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource(
    group="", version="v1", plural="secrets", kind="Secret", namespaced=True, view=_without_unused_data
)
SERVICES: Final = row("v1", "services", "Service")
SERVICE_ACCOUNTS: Final = row("v1", "serviceaccounts", "ServiceAccount")
ENDPOINTS: Final = row("v1", "endpoints", "Endpoints")
EVENTS: Final = row("v1", "events", "Event")
SCHEDULING_EVENTS: Final = row("events.k8s.io/v1", "events", "Event")
NAMESPACES: Final = row("v1", "namespaces", "Namespace", namespaced=False)
NODES: Final = row("v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUMES: Final = row("v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = row("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
REPLICATION_CONTROLLERS: Final = row("v1", "replicationcontrollers", "ReplicationController")
RESOURCE_QUOTAS: Final = row("v1", "resourcequotas", "ResourceQuota")
DEPLOYMENTS: Final = row("apps/v1", "deployments", "Deployment")
REPLICA_SETS: Final = row("apps/v1", "replicasets", "ReplicaSet")
STATEFUL_SETS: Final = row("apps/v1", "statefulsets", "StatefulSet")
DAEMON_SETS: Final = row("apps/v1", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS: Final = row("apps/v1", "controllerrevisions", "ControllerRevision")
JOBS: Final = row("batch/v1", "jobs", "Job")
CRON_JOBS: Final = row("batch/v1", "cronjobs", "CronJob")
HORIZONTAL_POD_AUTOSCALERS: Final = row(
    "autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
LEASES: Final = row("coordination.k8s.io/v1", "leases", "Lease")
ENDPOINT_SLICES: Final = row("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
SERVICE_CIDRS: Final = row("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", namespaced=False)
IP_ADDRESSES: Final = row("networking.k8s.io/v1", "ipaddresses", "IPAddress", namespaced=False)
NETWORK_POLICIES: Final = row("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy")
INGRESSES: Final = row("networking.k8s.io/v1", "ingresses", "Ingress")
INGRESS_CLASSES: Final = row("networking.k8s.io/v1", "ingressclasses", "IngressClass", namespaced=False)
POD_DISRUPTION_BUDGETS: Final = row("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
RESOURCE_CLAIMS: Final = row("resource.k8s.io/v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES: Final = row("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCE_SLICES: Final = row("resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_TAINT_RULES: Final = row("resource.k8s.io/v1", "devicetaintrules", "DeviceTaintRule", namespaced=False)
DEVICE_CLASSES: Final = row("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False)
STORAGE_CLASSES: Final = row("storage.k8s.io/v1", "storageclasses", "StorageClass", namespaced=False)
VOLUME_ATTRIBUTES_CLASSES: Final = row(
    "storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", namespaced=False
)
VOLUME_ATTACHMENTS: Final = row(
    "storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False
)
CSI_DRIVERS: Final = row("storage.k8s.io/v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = row("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity")
CSI_NODES: Final = row("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False)
CLUSTER_ROLES: Final = row("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False)
VALIDATING_ADMISSION_POLICIES: Final = row(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
CERTIFICATE_SIGNING_REQUESTS: Final = row(
    "certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False
)
POD_CERTIFICATE_REQUESTS: Final = row(
    "certificates.k8s.io/v1", "podcertificaterequests", "PodCertificateRequest"
)
CLUSTER_TRUST_BUNDLES: Final = row(
    "certificates.k8s.io/v1", "clustertrustbundles", "ClusterTrustBundle", namespaced=False
)
STORAGE_VERSION_MIGRATIONS: Final = row(
    "storagemigration.k8s.io/v1", "storageversionmigrations", "StorageVersionMigration", namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Final = row(
    "authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
CUSTOM_RESOURCE_DEFINITIONS: Final = row(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def rows() -> Iterator[Resource[Any]]:
    """Return all rows of this module."""
    return (row for row in globals().values() if isinstance(row, Resource))
