"""Names that Kubernetes defines: labels, annotations, finalizers, taints, reasons, fields and namespaces.

A name belongs here if more than one package uses it, or if clients rely on it. Data only.
"""

from typing import Final

# --- fields

CONTAINER_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
"""The fields of a pod's status with the states of its containers."""

# --- namespaces

NAMESPACE_DEFAULT: Final = "default"
NAMESPACE_SYSTEM: Final = "kube-system"
NAMESPACE_PUBLIC: Final = "kube-public"
NAMESPACE_NODE_LEASE: Final = "kube-node-lease"

# --- labels of nodes and namespaces

LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
LABEL_OS: Final = "kubernetes.io/os"
LABEL_ARCH: Final = "kubernetes.io/arch"
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
LABEL_REGION: Final = "topology.kubernetes.io/region"
LABEL_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
LABEL_NODE_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
LABEL_METADATA_NAME: Final = "kubernetes.io/metadata.name"

# --- labels that controllers write

LABEL_POD_TEMPLATE_HASH: Final = "pod-template-hash"
LABEL_CONTROLLER_REVISION_HASH: Final = "controller-revision-hash"
LABEL_STATEFULSET_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
LABEL_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
LABEL_JOB_NAME: Final = "batch.kubernetes.io/job-name"
LABEL_JOB_CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
LABEL_JOB_NAME_LEGACY: Final = "job-name"
LABEL_JOB_CONTROLLER_UID_LEGACY: Final = "controller-uid"
LABEL_JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
LABEL_SERVICE_NAME: Final = "kubernetes.io/service-name"
LABEL_HEADLESS_SERVICE: Final = "service.kubernetes.io/headless"
LABEL_ENDPOINT_SLICE_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
LABEL_ENDPOINT_SLICE_SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"

# --- annotations

ANNOTATION_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATION_DESCRIPTION: Final = "kubernetes.io/description"
ANNOTATION_REVISION: Final = "deployment.kubernetes.io/revision"
ANNOTATION_REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
ANNOTATION_DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
ANNOTATION_MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
ANNOTATION_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
ANNOTATION_ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
ANNOTATION_POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
ANNOTATION_MIRROR_POD: Final = "kubernetes.io/config.mirror"
ANNOTATION_JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
ANNOTATION_CRONJOB_SCHEDULED_TIMESTAMP: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
ANNOTATION_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
"""The record of a leader election that uses an Endpoints or ConfigMap object as its lock."""
ANNOTATION_LAST_CHANGE_TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
ANNOTATION_ENDPOINTS_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
ANNOTATION_PV_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
ANNOTATION_PV_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
ANNOTATION_BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The storage class of a claim or a volume, which precedes the field."""
ANNOTATION_DEFAULT_STORAGE_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
ANNOTATION_BETA_DEFAULT_STORAGE_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"
ANNOTATION_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
"""The class of an Ingress, if the field has none."""
ANNOTATION_DEFAULT_INGRESS_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"

# --- finalizers

FINALIZER_ORPHAN: Final = "orphan"
FINALIZER_FOREGROUND: Final = "foregroundDeletion"
FINALIZER_NAMESPACE: Final = "kubernetes"
FINALIZER_PV_PROTECTION: Final = "kubernetes.io/pv-protection"
FINALIZER_PVC_PROTECTION: Final = "kubernetes.io/pvc-protection"
FINALIZER_VAC_PROTECTION: Final = "kubernetes.io/vac-protection"
FINALIZER_JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"

STANDARD_FINALIZERS: Final = frozenset({FINALIZER_NAMESPACE, FINALIZER_ORPHAN, FINALIZER_FOREGROUND})
"""The finalizers that are valid without a domain."""

# --- taints

TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
TAINT_MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
TAINT_DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
TAINT_PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
TAINT_NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"
TAINT_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
TAINT_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"

# --- reasons of status causes, beside those of field errors

CAUSE_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
CAUSE_DISRUPTION_BUDGET: Final = "DisruptionBudget"

# --- reasons of events

REASON_SUCCESSFUL_CREATE: Final = "SuccessfulCreate"
REASON_FAILED_CREATE: Final = "FailedCreate"
REASON_SUCCESSFUL_DELETE: Final = "SuccessfulDelete"
REASON_FAILED_DELETE: Final = "FailedDelete"
REASON_SCALING_REPLICA_SET: Final = "ScalingReplicaSet"

# --- condition types

CONDITION_READY: Final = "Ready"
CONDITION_POD_SCHEDULED: Final = "PodScheduled"
CONDITION_INITIALIZED: Final = "Initialized"
CONDITION_CONTAINERS_READY: Final = "ContainersReady"
CONDITION_DISRUPTION_TARGET: Final = "DisruptionTarget"
CONDITION_AVAILABLE: Final = "Available"
CONDITION_NOT_SIMULATED: Final = "mockube.dev/NotSimulated"
"""The condition of a pod of which a program or a probe was not run: that it is ready is assumed. Its message names what."""
CONDITION_PROGRESSING: Final = "Progressing"
CONDITION_REPLICA_FAILURE: Final = "ReplicaFailure"
PREFIXES_OF_CONTENTS: Final = {"volume": "mockube-volume", "node": "mockube-node", "pod": "mockube-pod"}
"""The beginnings of the names of the Secrets in kube-system that have the files of volumes, nodes and emptyDirs."""
STOPPED_UNITS: Final = "mockube.dev/stopped-units"
"""The annotation of a node that names the systemd units that do not run, such as kubelet=stopped@2026-01-01T00:00:00Z."""
STOP_HEARTBEATS: Final = "mockube.dev/stop-heartbeats"
"""The annotation that stops all activity of a node's kubelet, as if the node were disconnected."""
STOPPED_BY_FAULT: Final = "fault"
"""Its value while a Fault with `partition` disconnects the node; the server removes it with the Fault."""
STOPS_HEARTBEATS: Final = ("true", STOPPED_BY_FAULT)
"""The values that disconnect a node: that of users, and that of Faults."""
