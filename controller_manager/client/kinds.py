"""The rows of the resources that controllers watch and write."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Resource, whole_tree


def _row(api_version: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource[ReadOnlyTree]:
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group, version=version, plural=plural, kind=kind, namespaced=namespaced, view=whole_tree
    )


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

CONFIG_MAPS: Final = _row("v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource(
    group="", version="v1", plural="secrets", kind="Secret", namespaced=True, view=_without_unused_data
)
SERVICES: Final = _row("v1", "services", "Service")
SERVICE_ACCOUNTS: Final = _row("v1", "serviceaccounts", "ServiceAccount")
ENDPOINTS: Final = _row("v1", "endpoints", "Endpoints")
EVENTS: Final = _row("v1", "events", "Event")
SCHEDULING_EVENTS: Final = _row("events.k8s.io/v1", "events", "Event")
NAMESPACES: Final = _row("v1", "namespaces", "Namespace", namespaced=False)
NODES: Final = _row("v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUMES: Final = _row("v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = _row("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
REPLICATION_CONTROLLERS: Final = _row("v1", "replicationcontrollers", "ReplicationController")
RESOURCE_QUOTAS: Final = _row("v1", "resourcequotas", "ResourceQuota")
DEPLOYMENTS: Final = _row("apps/v1", "deployments", "Deployment")
REPLICA_SETS: Final = _row("apps/v1", "replicasets", "ReplicaSet")
STATEFUL_SETS: Final = _row("apps/v1", "statefulsets", "StatefulSet")
DAEMON_SETS: Final = _row("apps/v1", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS: Final = _row("apps/v1", "controllerrevisions", "ControllerRevision")
JOBS: Final = _row("batch/v1", "jobs", "Job")
CRON_JOBS: Final = _row("batch/v1", "cronjobs", "CronJob")
HORIZONTAL_POD_AUTOSCALERS: Final = _row(
    "autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
LEASES: Final = _row("coordination.k8s.io/v1", "leases", "Lease")
ENDPOINT_SLICES: Final = _row("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
SERVICE_CIDRS: Final = _row("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", namespaced=False)
IP_ADDRESSES: Final = _row("networking.k8s.io/v1", "ipaddresses", "IPAddress", namespaced=False)
NETWORK_POLICIES: Final = _row("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy")
INGRESSES: Final = _row("networking.k8s.io/v1", "ingresses", "Ingress")
INGRESS_CLASSES: Final = _row("networking.k8s.io/v1", "ingressclasses", "IngressClass", namespaced=False)
POD_DISRUPTION_BUDGETS: Final = _row("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
RESOURCE_CLAIMS: Final = _row("resource.k8s.io/v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES: Final = _row(
    "resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"
)
RESOURCE_SLICES: Final = _row("resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_TAINT_RULES: Final = _row(
    "resource.k8s.io/v1", "devicetaintrules", "DeviceTaintRule", namespaced=False
)
DEVICE_CLASSES: Final = _row("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False)
STORAGE_CLASSES: Final = _row("storage.k8s.io/v1", "storageclasses", "StorageClass", namespaced=False)
VOLUME_ATTRIBUTES_CLASSES: Final = _row(
    "storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", namespaced=False
)
VOLUME_ATTACHMENTS: Final = _row(
    "storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False
)
CSI_DRIVERS: Final = _row("storage.k8s.io/v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = _row("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity")
CSI_NODES: Final = _row("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False)
CLUSTER_ROLES: Final = _row("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False)
VALIDATING_ADMISSION_POLICIES: Final = _row(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
CERTIFICATE_SIGNING_REQUESTS: Final = _row(
    "certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False
)
POD_CERTIFICATE_REQUESTS: Final = _row(
    "certificates.k8s.io/v1", "podcertificaterequests", "PodCertificateRequest"
)
CLUSTER_TRUST_BUNDLES: Final = _row(
    "certificates.k8s.io/v1", "clustertrustbundles", "ClusterTrustBundle", namespaced=False
)
STORAGE_VERSION_MIGRATIONS: Final = _row(
    "storagemigration.k8s.io/v1", "storageversionmigrations", "StorageVersionMigration", namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Final = _row(
    "authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
UNITED_DEPLOYMENTS: Final = _row("apps.kruise.io/v1alpha1", "uniteddeployments", "UnitedDeployment")
CLONE_SETS: Final = _row("apps.kruise.io/v1alpha1", "clonesets", "CloneSet")
ADVANCED_STATEFUL_SETS: Final = _row("apps.kruise.io/v1beta1", "statefulsets", "StatefulSet")
CUSTOM_RESOURCE_DEFINITIONS: Final = _row(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def rows() -> Iterator[Resource[Any]]:
    """Return all rows of this module."""
    return (row for row in globals().values() if isinstance(row, Resource))
