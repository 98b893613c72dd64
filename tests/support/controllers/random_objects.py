"""Small objects of random walks: how they begin, and the values that their fields may get."""

from datetime import timedelta

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.client import kinds

NAMES = ("a", "b", "c")
APPS = ("x", "y")
NODES = ("n1", "n2")
CONTAINER = {
    "name": "c",
    "image": "i:1",
    "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}],
}
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [CONTAINER], "restartPolicy": "Always"},
}
JOB_TEMPLATE = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
PRESENT = {kinds.PODS: 3, kinds.JOBS: 1, kinds.CRON_JOBS: 1, kinds.SERVICES: 1, kinds.DEPLOYMENTS: 1}
"""The numbers of objects at the beginning, where they are not two."""


def new_object(resource, walk):
    tree = _NEW[resource](walk) if resource in _NEW else {"metadata": {}}
    names = NODES if resource is kinds.NODES else NAMES
    metadata = {"name": walk.choose(names), "labels": {"app": walk.choose(APPS)}, **tree["metadata"]}
    if resource.namespaced:
        metadata["namespace"] = "default"
    return {**tree, "metadata": metadata}


def _ago(*seconds):
    return tuple(
        lambda walk, _, before=each: format_time(walk.clock.now() - timedelta(seconds=before))
        for each in seconds
    )


def _owner(resource, *, controls=True):
    """Return a function that returns the owner reference to one of the objects."""

    def references(walk, _):
        owners = walk.all(resource)
        if not owners:
            return []
        return [{**meta.controller_reference(walk.choose(owners)), "controller": controls}]

    return references


def _ready(status, seconds=0, **more):
    """Return a function that returns conditions of a pod or node."""

    def conditions(walk, _):
        at = format_time(walk.clock.now() - timedelta(seconds=seconds))
        return [{"type": "Ready", "status": status, "lastTransitionTime": at, **more}]

    return conditions


def _ended(code, **more):
    def statuses(walk, _):
        state = {"terminated": {"exitCode": code, "finishedAt": format_time(walk.clock.now()), **more}}
        return [{"name": "c", "restartCount": 0, "state": state}]

    return statuses


def running_status(walk, _):
    (ready,) = _ready("True")(walk, None)
    return {
        "phase": "Running",
        "conditions": [ready],
        "podIPs": [{"ip": f"10.1.0.{walk.choose(range(1, 9))}"}],
    }


def _final_status(code):
    def status(walk, _):
        ended = {"containerStatuses": _ended(code)(walk, None), "podIPs": [{"ip": "10.1.0.7"}]}
        return {"phase": "Failed" if code else "Succeeded", **ended}

    return status


def _selector(app):
    return {"matchLabels": {"app": app}}


def _pod(walk):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": walk.choose(NAMES)}}]
    return {
        "metadata": {"name": f"p{walk.choose(range(6))}"},
        "spec": {"containers": [CONTAINER], "nodeName": walk.choose((*NODES, "")), "volumes": volumes},
        "status": {"phase": walk.choose(("Pending", "Running", "Running"))},
    }


def _node(walk):
    return {
        "metadata": {
            "annotations": {
                "kwok.x-k8s.io/node": "fake",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "labels": {
                "kubernetes.io/hostname": "h",
                "topology.kubernetes.io/zone": walk.choose(("z1", "z2")),
            },
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": walk.choose(("1", "4"))},
        },
    }


def _workload(walk, **spec):
    return {
        "metadata": {},
        "spec": {
            "replicas": walk.choose((1, 2, 3)),
            "selector": _selector("x"),
            "template": TEMPLATE,
            **spec,
        },
        "status": {},
    }


def _deployment(walk):
    rolling = {"maxSurge": walk.choose((0, 1, "50%")), "maxUnavailable": 1}
    strategy = walk.choose(({"type": "Recreate"}, *[{"type": "RollingUpdate", "rollingUpdate": rolling}] * 2))
    return _workload(walk, strategy=strategy, revisionHistoryLimit=1, progressDeadlineSeconds=60)


def _stateful_set(walk):
    return _workload(
        walk,
        serviceName="s",
        podManagementPolicy=walk.choose(("OrderedReady", "Parallel")),
        updateStrategy=walk.choose(
            (
                {"type": "OnDelete"},
                *[{"type": "RollingUpdate", "rollingUpdate": {"partition": walk.choose((0, 1))}}] * 2,
            )
        ),
        revisionHistoryLimit=1,
        volumeClaimTemplates=walk.choose(
            ([], [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}])
        ),
        persistentVolumeClaimRetentionPolicy={
            "whenDeleted": walk.choose(("Retain", "Delete")),
            "whenScaled": walk.choose(("Retain", "Delete")),
        },
    )


def _daemon_set(walk):
    rolling = {"maxSurge": walk.choose((0, 1)), "maxUnavailable": walk.choose((0, 1))}
    tree = _workload(
        walk,
        updateStrategy=walk.choose(
            ({"type": "OnDelete"}, *[{"type": "RollingUpdate", "rollingUpdate": rolling}] * 2)
        ),
        revisionHistoryLimit=1,
    )
    return {**tree, "metadata": {"annotations": {"deprecated.daemonset.template.generation": "1"}}}


def _job(walk):
    mode = walk.choose(("Indexed", "NonIndexed"))
    spec = {
        "parallelism": walk.choose((1, 2, 3)),
        "completions": walk.choose((2, 3)),
        "completionMode": mode,
        "backoffLimit": walk.choose((0, 1, 6)),
        "suspend": False,
        "podReplacementPolicy": walk.choose(("TerminatingOrFailed", "Failed")),
        "selector": _selector("x"),
        "template": JOB_TEMPLATE,
    }
    if walk.choose((True, False)):
        spec["ttlSecondsAfterFinished"] = walk.choose((0, 60))
    if mode == "Indexed":
        spec |= walk.choose(
            (
                {},
                {"backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
                {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            )
        )
    on_codes = {"operator": "In", "values": [42]}
    rules = [
        {
            "action": walk.choose(("FailJob", "Ignore", "Count")),
            "onExitCodes": on_codes,
            "onPodConditions": [],
        }
    ]
    if walk.choose((True, False)):
        spec["podFailurePolicy"] = {"rules": rules}
    return {"metadata": {}, "spec": spec, "status": {}}


def _cron_job(walk):
    spec = {
        "schedule": walk.choose(("*/5 * * * *", "0 * * * *")),
        "concurrencyPolicy": walk.choose(("Allow", "Forbid", "Replace")),
        "suspend": False,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"metadata": {"labels": {"app": "x"}}, "spec": {"template": JOB_TEMPLATE}},
    }
    return {"metadata": {}, "spec": spec, "status": {}}


def _service(walk):
    ports = [{"name": "http", "port": 80, "targetPort": walk.choose((8080, "web")), "protocol": "TCP"}]
    address = walk.choose(("10.0.0.9", "None"))
    return {
        "metadata": {},
        "spec": {
            "selector": {"app": "x"},
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ports": ports,
        },
    }


def _endpoints(walk):
    subsets = [
        {
            "addresses": [{"ip": "10.1.0.1"}, {"ip": "10.1.0.2"}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        }
    ]
    return {"metadata": {}, "subsets": walk.choose((subsets, []))}


def _claim(walk):
    spec = {
        "accessModes": [walk.choose(("ReadWriteOnce", "ReadWriteMany"))],
        "resources": {"requests": {"storage": walk.choose(("1Gi", "2Gi"))}},
        "storageClassName": walk.choose(("a", "b", "")),
    }
    return {
        "metadata": {"finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _volume(walk):
    source = walk.choose(
        ({"hostPath": {"path": "/x"}}, {"csi": {"driver": "simulated.mockube.dev", "volumeHandle": "h"}})
    )
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": walk.choose(("1Gi", "3Gi"))},
        "storageClassName": walk.choose(("a", "")),
        "persistentVolumeReclaimPolicy": walk.choose(("Retain", "Delete")),
        **source,
    }
    return {
        "metadata": {"finalizers": ["kubernetes.io/pv-protection"]},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def _storage_class(walk):
    provisioner = walk.choose(
        ("ebs.csi.aws.com", "rancher.io/local-path", "example.com/own", "kubernetes.io/no-provisioner")
    )
    mode = walk.choose(("Immediate", "WaitForFirstConsumer"))
    annotations = walk.choose(({}, {"storageclass.kubernetes.io/is-default-class": "true"}))
    return {
        "metadata": {"annotations": annotations},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": walk.choose((True, False)),
    }


def _attachment(walk):
    source = {"persistentVolumeName": walk.choose(NAMES)}
    return {
        "metadata": {},
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": walk.choose(NODES), "source": source},
        "status": {"attached": walk.choose((True, False))},
    }


def _budget(walk):
    limit = walk.choose(
        ({"minAvailable": walk.choose((1, "50%"))}, {"maxUnavailable": walk.choose((1, "50%"))})
    )
    return {"metadata": {}, "spec": {"selector": _selector("x"), **limit}}


def _token(walk):
    data = {
        "token-id": "YWJjZGVm",
        "token-secret": "MDEyMzQ1Njc4OWFiY2RlZg==",
        "usage-bootstrap-signing": "dHJ1ZQ==",
    }
    return {
        "metadata": {"namespace": "kube-system", "name": "bootstrap-token-abcdef"},
        "type": walk.choose(("bootstrap.kubernetes.io/token", "Opaque")),
        "data": data,
    }


def _cluster_role(walk):
    rules = [{"apiGroups": [""], "resources": [walk.choose(("pods", "nodes"))], "verbs": ["get"]}]
    return {"metadata": {}, "rules": rules} | walk.choose(
        ({}, {"aggregationRule": {"clusterRoleSelectors": [_selector("x")]}})
    )


def _cidr(walk):
    return {"metadata": {}, "spec": {"cidrs": [walk.choose(("10.0.0.0/24", "10.0.0.0/16", "fd00::/112"))]}}


def _address(walk):
    return {"metadata": {"name": walk.choose(("10.0.0.5", "10.0.3.4", "fd00--5"))}, "spec": {}}


def _device_claim(walk):
    tolerations = walk.choose(([], [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]))
    results = [
        {
            "driver": "d",
            "pool": "p",
            "device": walk.choose(("g", "h")),
            "request": "gpu",
            "tolerations": tolerations,
        }
    ]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [_pod_consumer(walk, None)]}
    return {
        "metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {},
        "status": walk.choose((status, status, {})),
    }


def _pod_consumer(walk, _):
    pods = walk.all(kinds.PODS)
    pod = walk.choose(pods) if pods else {"metadata": {"name": "gone", "uid": "gone"}}
    return {"resource": "pods", "name": meta.name(pod), "uid": meta.uid(pod)}


def _device_slice(walk):
    taints = [
        {
            "key": "k",
            "effect": walk.choose(("NoExecute", "NoSchedule")),
            "timeAdded": format_time(walk.clock.now()),
        }
    ]
    devices = [{"name": "g", "taints": walk.choose((taints, []))}, {"name": "h"}]
    return {
        "metadata": {},
        "spec": {"driver": "d", "pool": {"name": "p", "generation": walk.choose((1, 2))}, "devices": devices},
    }


def _taint_rule(walk):
    selector = walk.choose(({}, {"driver": "d"}, {"pool": "p", "device": "g"}, {"driver": "x"}))
    taint = {
        "key": "r",
        "effect": walk.choose(("NoExecute", "None")),
        "timeAdded": format_time(walk.clock.now()),
    }
    return {"metadata": {}, "spec": {"deviceSelector": selector, "taint": taint}}


_NEW = {
    kinds.RESOURCE_CLAIMS: _device_claim,
    kinds.RESOURCE_SLICES: _device_slice,
    kinds.DEVICE_TAINT_RULES: _taint_rule,
    kinds.RESOURCE_CLAIM_TEMPLATES: lambda _: {
        "metadata": {},
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {}}},
    },
    kinds.PODS: _pod,
    kinds.NODES: _node,
    kinds.DEPLOYMENTS: _deployment,
    kinds.REPLICA_SETS: _workload,
    kinds.REPLICATION_CONTROLLERS: lambda walk: _workload(walk, selector={"app": "x"}),
    kinds.STATEFUL_SETS: _stateful_set,
    kinds.DAEMON_SETS: _daemon_set,
    kinds.JOBS: _job,
    kinds.CRON_JOBS: _cron_job,
    kinds.SERVICES: _service,
    kinds.ENDPOINTS: _endpoints,
    kinds.ENDPOINT_SLICES: lambda _: {"metadata": {}, "addressType": "IPv4", "endpoints": [], "ports": []},
    kinds.PERSISTENT_VOLUME_CLAIMS: _claim,
    kinds.PERSISTENT_VOLUMES: _volume,
    kinds.STORAGE_CLASSES: _storage_class,
    kinds.VOLUME_ATTACHMENTS: _attachment,
    kinds.VOLUME_ATTRIBUTES_CLASSES: lambda _: {
        "metadata": {"finalizers": ["kubernetes.io/vac-protection"]},
        "driverName": "d",
    },
    kinds.CSI_DRIVERS: lambda walk: {
        "metadata": {"name": "ebs.csi.aws.com"},
        "spec": {"attachRequired": walk.choose((True, False))},
    },
    kinds.POD_DISRUPTION_BUDGETS: _budget,
    kinds.SECRETS: _token,
    kinds.CONFIG_MAPS: lambda _: {
        "metadata": {"name": "cluster-info", "namespace": "kube-public"},
        "data": {"kubeconfig": "k"},
    },
    kinds.CLUSTER_ROLES: _cluster_role,
    kinds.SERVICE_CIDRS: _cidr,
    kinds.IP_ADDRESSES: _address,
    kinds.CONTROLLER_REVISIONS: lambda walk: {
        "metadata": {},
        "data": {"spec": {"template": TEMPLATE}},
        "revision": walk.choose((1, 5)),
    },
    kinds.NAMESPACES: lambda _: {
        "metadata": {},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    },
}

_LABELS = (("metadata", "labels", "app"), (*APPS, None))
_WORKLOAD = (
    (("spec", "replicas"), (0, 1, 2, 4)),
    (
        ("spec", "template", "spec", "containers"),
        ([{**CONTAINER, "image": "i:2"}], [{**CONTAINER, "image": "i:3"}], [CONTAINER]),
    ),
    (("spec", "minReadySeconds"), (0, 30)),
)
_STRATEGIES = (
    {"type": "Recreate"},
    *(
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}
        for surge, missing in ((0, 1), (1, 0), ("50%", 0), (0, "100%"))
    ),
)
_ORPHANED = (("metadata", "ownerReferences"), ([],))

_RUNNING = [{"name": "c", "restartCount": 1, "state": {"running": {}}}]
_WAITING = [{"name": "c", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]


def _affinity(field, key, operator, values):
    """Return the affinity for some nodes. `field` is a field of a term."""
    terms = [{field: [{"key": key, "operator": operator, "values": values}]}]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


FIELDS = {
    kinds.RESOURCE_CLAIMS: (
        (("status", "reservedFor"), (lambda walk, _: [_pod_consumer(walk, None)], [])),
        (
            ("status", "allocation"),
            (None, {"devices": {"results": [{"driver": "d", "pool": "p", "device": "g", "request": "gpu"}]}}),
        ),
        (("metadata", "ownerReferences"), ([], _owner(kinds.PODS))),
        (("metadata", "finalizers"), (["resource.kubernetes.io/delete-protection"], [])),
        (("metadata", "annotations", "resource.kubernetes.io/pod-claim-name"), ("gpu", None)),
    ),
    kinds.RESOURCE_SLICES: (
        (
            ("spec", "pool"),
            ({"name": "p", "generation": 1}, {"name": "p", "generation": 3}, {"name": "q", "generation": 1}),
        ),
        (
            ("spec", "devices"),
            (
                [{"name": "g"}],
                [
                    {
                        "name": "g",
                        "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}],
                    }
                ],
            ),
        ),
    ),
    kinds.DEVICE_TAINT_RULES: (
        (("spec", "taint", "effect"), ("NoExecute", "NoSchedule", "None")),
        (("spec", "deviceSelector"), ({}, {"driver": "d", "pool": "p"}, {"device": "h"})),
    ),
    kinds.PODS: (
        (
            ("spec", "resourceClaims"),
            (
                [{"name": "gpu", "resourceClaimName": "a"}],
                [{"name": "gpu", "resourceClaimTemplateName": "a"}],
                [{"name": "gpu", "resourceClaimTemplateName": "gone"}],
                [],
            ),
        ),
        (("status", "resourceClaimStatuses"), ([{"name": "gpu", "resourceClaimName": "b"}], None)),
        (("status", "ephemeralContainerStatuses"), (_RUNNING, _WAITING, None)),
        (("status", "initContainerStatuses"), (_RUNNING, _WAITING, None)),
        (("status", "containerStatuses"), (_RUNNING, _WAITING, None)),
        (
            ("spec", "affinity"),
            (
                _affinity("matchFields", "metadata.name", "In", ["n1"]),
                _affinity("matchFields", "metadata.name", "NotIn", ["n1"]),
                _affinity("matchFields", "metadata.uid", "In", ["n1"]),
                _affinity("matchExpressions", "metadata.name", "In", ["n2"]),
                None,
            ),
        ),
        (("metadata", "generateName"), ("a-", None)),
        (("metadata", "labels", "controller-revision-hash"), ("x", None)),
        (("metadata", "labels", "pod-template-generation"), ("1", "2", None)),
        (("metadata", "annotations", "batch.kubernetes.io/job-completion-index"), ("0", "1", "7", "x", None)),
        (("metadata", "labels", "batch.kubernetes.io/job-completion-index"), ("0", None)),
        *[
            (
                ("status",),
                (running_status, running_status, _final_status(0), _final_status(1), _final_status(42)),
            )
        ]
        * 12,
        (("status", "phase"), ("Pending", "Running", "Succeeded", "Failed")),
        *[
            (
                ("status", "conditions"),
                (_ready("True"), _ready("True", 40), _ready("False"), _ready("Unknown"), ()),
            )
        ]
        * 2,
        (
            ("status", "containerStatuses"),
            (
                _ended(0),
                _ended(1),
                _ended(42),
                _ended(137, reason="OOMKilled"),
                [{"name": "c", "restartCount": 3}],
            ),
        ),
        (("status", "podIPs"), ([{"ip": "10.1.0.1"}], [{"ip": "10.1.0.2"}, {"ip": "fd00::2"}], [])),
        (("spec", "nodeName"), (*NODES, None)),
        (("spec", "hostname"), ("h", None)),
        (("spec", "subdomain"), ("a", None)),
        (
            ("spec", "volumes"),
            (
                [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}],
                [
                    {
                        "name": "v",
                        "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}},
                    }
                ],
                [],
            ),
        ),
        (("metadata", "labels", "app"), (*APPS, None)),
        (("metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"), ("-5", "7", None)),
        (
            ("metadata", "ownerReferences"),
            (
                [],
                _owner(kinds.REPLICA_SETS),
                _owner(kinds.JOBS),
                _owner(kinds.STATEFUL_SETS),
                _owner(kinds.DAEMON_SETS),
                _owner(kinds.JOBS, controls=False),
            ),
        ),
        (("metadata", "finalizers"), (["batch.kubernetes.io/job-tracking"], ["x/y"], [])),
        (("status", "startTime"), _ago(0, 100)),
    ),
    kinds.NODES: (
        (("spec", "unschedulable"), (True, None)),
        (
            ("spec", "taints"),
            ([{"key": "k", "effect": "NoSchedule"}], [{"key": "k", "effect": "NoExecute"}], []),
        ),
        (("status", "conditions"), (_ready("True"), _ready("False"), ())),
        (("metadata", "annotations", "kwok.x-k8s.io/node"), ("fake", None)),
        (
            ("metadata", "annotations", "volumes.kubernetes.io/controller-managed-attach-detach"),
            ("true", None),
        ),
        (("metadata", "labels", "topology.kubernetes.io/zone"), ("z1", "z2", None)),
        (("status", "volumesInUse"), (["kubernetes.io/csi/ebs.csi.aws.com^h"], [])),
    ),
    kinds.DEPLOYMENTS: (
        *_WORKLOAD,
        (("spec", "paused"), (True, False)),
        (("spec", "strategy"), _STRATEGIES),
        (("spec", "revisionHistoryLimit"), (0, 2)),
        (("spec", "progressDeadlineSeconds"), (60, 600, 2**31 - 1)),
        (("metadata", "annotations", "deprecated.deployment.rollback.to"), ("0", "1", "9", None)),
        (("metadata", "annotations", "note"), ("n", None)),
        _LABELS,
    ),
    kinds.REPLICA_SETS: (
        *_WORKLOAD,
        _LABELS,
        _ORPHANED,
        (("status", "availableReplicas"), (0, 1, 2)),
        (("status", "replicas"), (0, 1, 2)),
    ),
    kinds.REPLICATION_CONTROLLERS: (*_WORKLOAD, (("spec", "selector", "app"), APPS)),
    kinds.STATEFUL_SETS: (
        *_WORKLOAD,
        (("spec", "podManagementPolicy"), ("OrderedReady", "Parallel")),
        (
            ("spec", "updateStrategy"),
            (
                {"type": "OnDelete"},
                *({"type": "RollingUpdate", "rollingUpdate": {"partition": at}} for at in (0, 1, 9)),
                {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}},
            ),
        ),
        (("spec", "ordinals"), ({"start": 2}, None)),
        (
            ("spec", "persistentVolumeClaimRetentionPolicy"),
            (
                {"whenDeleted": "Delete", "whenScaled": "Retain"},
                {"whenDeleted": "Retain", "whenScaled": "Delete"},
            ),
        ),
    ),
    kinds.DAEMON_SETS: (
        *_WORKLOAD[1:],
        (("spec", "template", "spec", "nodeSelector"), ({"topology.kubernetes.io/zone": "z1"}, None)),
        (("spec", "template", "spec", "hostNetwork"), (True, None)),
        (
            ("spec", "updateStrategy"),
            (
                {"type": "OnDelete"},
                *(
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}
                    for surge, missing in ((0, 1), (1, 0), ("50%", 0), (0, "100%"))
                ),
            ),
        ),
        (("metadata", "annotations", "deprecated.daemonset.template.generation"), ("1", "2", "x")),
    ),
    kinds.CONTROLLER_REVISIONS: (_LABELS, _ORPHANED, (("revision",), (1, 7))),
    kinds.JOBS: (
        (("spec", "parallelism"), (0, 1, 2, 4)),
        (("spec", "completions"), (1, 2, 4)),
        (("spec", "suspend"), (True, False)),
        (("spec", "backoffLimit"), (0, 1, 6)),
        (("spec", "activeDeadlineSeconds"), (30, 600, None)),
        (("spec", "ttlSecondsAfterFinished"), (0, 60, None)),
        (("spec", "managedBy"), ("example.com/other", None)),
        (("spec", "template", "spec", "restartPolicy"), ("Never", "OnFailure")),
        (
            ("status", "conditions"),
            (
                [{"type": "Complete", "status": "True"}],
                [{"type": "Failed", "status": "True"}],
                [{"type": "Failed", "status": "False"}],
                [{"type": "Suspended", "status": "True"}],
                [],
            ),
        ),
        (("status", "completionTime"), _ago(0, 100)),
        (("metadata", "ownerReferences"), ([], _owner(kinds.CRON_JOBS))),
    ),
    kinds.CRON_JOBS: (
        (
            ("spec", "schedule"),
            ("*/5 * * * *", "0 * * * *", "@hourly", "TZ=UTC 1 1 * * *", "60 * * * *", "0 0 31 2 *"),
        ),
        (("spec", "timeZone"), ("Europe/Berlin", "Nowhere", None)),
        (("spec", "suspend"), (True, False)),
        (("spec", "startingDeadlineSeconds"), (30, 1000, None)),
        (("spec", "concurrencyPolicy"), ("Allow", "Forbid", "Replace")),
        (("spec", "successfulJobsHistoryLimit"), (0, 2)),
        (("spec", "failedJobsHistoryLimit"), (0, 2)),
        (("status", "lastScheduleTime"), _ago(0, 4000, 10**6)),
    ),
    kinds.SERVICES: (
        (("spec", "selector"), ({"app": "x"}, {"app": "y"}, None)),
        (("spec", "clusterIP"), ("10.0.0.9", "None")),
        (("spec", "publishNotReadyAddresses"), (True, None)),
        (
            ("spec", "ports"),
            (
                [],
                [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}],
                [
                    {"name": "a", "port": 1, "targetPort": 1, "protocol": "TCP"},
                    {"name": "b", "port": 2, "targetPort": 2, "protocol": "UDP", "appProtocol": "h"},
                ],
            ),
        ),
        (("spec", "ipFamilies"), (["IPv4"], ["IPv6"], ["IPv4", "IPv6"])),
        (("spec", "type"), ("ClusterIP", "ExternalName")),
        (("spec", "trafficDistribution"), ("PreferClose", "PreferSameNode", None)),
        (("metadata", "annotations", "service.kubernetes.io/topology-mode"), ("Auto", None)),
        (("metadata", "labels", "service.kubernetes.io/headless"), ("", None)),
        _LABELS,
    ),
    kinds.ENDPOINTS: (
        (
            ("subsets",),
            (
                [],
                [
                    {
                        "addresses": [{"ip": "10.1.0.1", "hostname": "h"}],
                        "notReadyAddresses": [{"ip": "fd00::9"}],
                        "ports": [{"port": 1}],
                    }
                ],
            ),
        ),
        (("metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"), ("true", None)),
        (("metadata", "labels", "endpoints.kubernetes.io/managed-by"), ("endpoint-controller", None)),
        (("metadata", "annotations", "control-plane.alpha.kubernetes.io/leader"), ("l", None)),
        (("metadata", "annotations", "note"), ("n", None)),
        _LABELS,
    ),
    kinds.ENDPOINT_SLICES: (
        (("metadata", "labels", "kubernetes.io/service-name"), ("a", None)),
        (
            ("metadata", "labels", "endpointslice.kubernetes.io/managed-by"),
            ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io", "other"),
        ),
        (("endpoints",), ([], [{"addresses": ["10.1.0.1"], "conditions": {"ready": True}}])),
    ),
    kinds.PERSISTENT_VOLUME_CLAIMS: (
        (("spec", "resources", "requests", "storage"), ("1Gi", "2Gi", "4Gi")),
        (("spec", "storageClassName"), ("a", "b", "", None)),
        (("spec", "volumeName"), ("a", "b", None)),
        (("spec", "selector"), (_selector("x"), None)),
        (("spec", "volumeMode"), ("Block", "Filesystem")),
        (("spec", "volumeAttributesClassName"), ("a", "b", None)),
        (("status", "phase"), ("Bound", "Pending", "Lost")),
        (("status", "capacity"), ({"storage": "1Gi"}, {"storage": "4Gi"}, None)),
        (("status", "allocatedResources"), ({"storage": "2Gi"}, None)),
        (
            ("status", "allocatedResourceStatuses"),
            (
                {"storage": "NodeResizePending"},
                {"storage": "NodeResizeInProgress"},
                {"storage": "ControllerResizeInProgress"},
                None,
            ),
        ),
        (
            ("status", "conditions"),
            ([{"type": "Resizing", "status": "True"}], [{"type": "x", "status": "True"}], []),
        ),
        (("metadata", "annotations", "volume.kubernetes.io/selected-node"), ("n1", None)),
        (
            ("metadata", "annotations", "volume.kubernetes.io/storage-provisioner"),
            ("ebs.csi.aws.com", "rancher.io/local-path", None),
        ),
        (("metadata", "annotations", "pv.kubernetes.io/bind-completed"), ("yes", None)),
        (("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"), ("yes", None)),
        (("metadata", "finalizers"), (["kubernetes.io/pvc-protection"], ["x/y"], [])),
        (("metadata", "ownerReferences"), ([], _owner(kinds.PODS), _owner(kinds.STATEFUL_SETS))),
        _LABELS,
    ),
    kinds.PERSISTENT_VOLUMES: (
        (
            ("spec", "claimRef"),
            (
                None,
                lambda walk, _: _claim_reference(walk),
                {"namespace": "default", "name": "a"},
                {"namespace": "default", "name": "b", "uid": "gone"},
            ),
        ),
        (("spec", "capacity", "storage"), ("1Gi", "2Gi", "4Gi")),
        (("spec", "persistentVolumeReclaimPolicy"), ("Retain", "Delete", "Recycle")),
        (("spec", "storageClassName"), ("a", "b", "")),
        (("spec", "accessModes"), (["ReadWriteOnce"], ["ReadWriteMany"])),
        (
            ("spec", "csi"),
            (
                {"driver": "ebs.csi.aws.com", "volumeHandle": "h"},
                {"driver": "other", "volumeHandle": "h"},
                None,
            ),
        ),
        (("spec", "volumeAttributesClassName"), ("a", None)),
        (("status", "phase"), ("Available", "Bound", "Released", "Failed")),
        (("metadata", "annotations", "pv.kubernetes.io/provisioned-by"), ("ebs.csi.aws.com", "other", None)),
        (("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"), ("yes", None)),
        (("metadata", "annotations", "volume.alpha.kubernetes.io/pre-resize-capacity"), ("1Gi", None)),
        (
            ("metadata", "finalizers"),
            (["kubernetes.io/pv-protection"], ["external-provisioner.volume.kubernetes.io/finalizer"], []),
        ),
        _LABELS,
    ),
    kinds.STORAGE_CLASSES: (
        (
            ("provisioner",),
            ("ebs.csi.aws.com", "rancher.io/local-path", "example.com/own", "kubernetes.io/no-provisioner"),
        ),
        (("volumeBindingMode",), ("Immediate", "WaitForFirstConsumer")),
        (("reclaimPolicy",), ("Delete", "Retain")),
        (("metadata", "annotations", "storageclass.kubernetes.io/is-default-class"), ("true", "false", None)),
    ),
    kinds.VOLUME_ATTACHMENTS: (
        (("status", "attached"), (True, False)),
        (("spec", "nodeName"), NODES),
        (("spec", "source", "persistentVolumeName"), NAMES),
        (("spec", "attacher"), ("ebs.csi.aws.com", "other")),
        (("metadata", "annotations", "csi.alpha.kubernetes.io/node-id"), ("n", None)),
        (("metadata", "finalizers"), (["external-attacher/ebs-csi-aws-com"], [])),
    ),
    kinds.VOLUME_ATTRIBUTES_CLASSES: ((("metadata", "finalizers"), (["kubernetes.io/vac-protection"], [])),),
    kinds.CSI_DRIVERS: ((("spec", "attachRequired"), (True, False)),),
    kinds.POD_DISRUPTION_BUDGETS: (
        (("spec", "minAvailable"), (0, 2, "30%", None)),
        (("spec", "maxUnavailable"), (0, 2, "30%", None)),
        (("spec", "selector"), (_selector("x"), _selector("y"), {}, None)),
        (("spec", "unhealthyPodEvictionPolicy"), ("AlwaysAllow", None)),
        (
            ("status", "disruptedPods"),
            (lambda walk, _: {"p1": format_time(walk.clock.now()), "p9": format_time(walk.clock.now())}, {}),
        ),
    ),
    kinds.SECRETS: (
        (("type",), ("bootstrap.kubernetes.io/token", "Opaque")),
        (
            ("data", "expiration"),
            ("MjAzMC0wMS0wMVQwMDowMDowMFo=", "MjAwMC0wMS0wMVQwMDowMDowMFo=", "eA==", None),
        ),
        (("data", "usage-bootstrap-signing"), ("dHJ1ZQ==", "ZmFsc2U=", None)),
        (("data", "token-id"), ("YWJjZGVm", "WA==", None)),
        (("data", "token-secret"), ("MDEyMzQ1Njc4OWFiY2RlZg==", None)),
    ),
    kinds.CONFIG_MAPS: (
        (("data", "kubeconfig"), ("k", "l", None)),
        (("data", "jws-kubeconfig-zzzzzz"), ("s", None)),
    ),
    kinds.CLUSTER_ROLES: (
        (
            ("rules",),
            (
                [],
                [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
                [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}],
            ),
        ),
        (
            ("aggregationRule",),
            (
                {"clusterRoleSelectors": [_selector("x")]},
                {"clusterRoleSelectors": [_selector("x"), _selector("y")]},
                None,
            ),
        ),
        _LABELS,
    ),
    kinds.SERVICE_CIDRS: (
        (("spec", "cidrs"), (["10.0.0.0/24"], ["10.0.0.0/16", "fd00::/112"])),
        (("metadata", "finalizers"), (["networking.k8s.io/service-cidr-finalizer"], [])),
    ),
    kinds.IP_ADDRESSES: (_LABELS,),
    kinds.NAMESPACES: ((("status", "phase"), ("Active", "Terminating")),),
    kinds.SERVICE_ACCOUNTS: (_LABELS,),
}
"""The fields of each resource that change, with their values: None removes the field, and a function takes the walk and the object."""


def _claim_reference(walk):
    claims = walk.all(kinds.PERSISTENT_VOLUME_CLAIMS)
    if not claims:
        return None
    claim = walk.choose(claims)
    return {"namespace": "default", "name": meta.name(claim), "uid": meta.uid(claim)}
