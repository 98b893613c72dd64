"""Situations of a cluster, as objects with their statuses: what `why` must say of each, and whose writes it must name."""

from dataclasses import dataclass, field

from .explained import condition

NAMESPACE = "shop"
API_VERSIONS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Ingress": "networking.k8s.io/v1",
    "IngressClass": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "CertificateSigningRequest": "certificates.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1",
}
CLUSTER_SCOPED = {
    "Namespace",
    "Node",
    "IngressClass",
    "CertificateSigningRequest",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
}


@dataclass(frozen=True)
class Situation:
    name: str
    subject: str
    """Such as Pod/web."""
    cause: str
    """A part of the cause."""
    objects: tuple = ()
    changes: tuple = ()
    """What a user `ada` does then: an object with a merge patch, or None to delete it, or "evict"."""
    origin: str = ""
    """The first origin, such as `secret/db data.password`."""
    author: str = ""
    """Who wrote it last."""
    commands: tuple = ()
    """The beginnings of the commands that change something."""
    absent: tuple = field(default=())
    """Parts of commands that must not be offered."""


def obj(kind, name, /, *, metadata=(), owner=None, **fields):
    """Return an object; its owner is one of an earlier object, such as Deployment/web."""
    metadata = {"name": name, **dict(metadata)}
    if kind not in CLUSTER_SCOPED:
        metadata["namespace"] = NAMESPACE
    tree = {"apiVersion": API_VERSIONS.get(kind, "v1"), "kind": kind, "metadata": metadata, **fields}
    if owner:
        owner_kind, owner_name = owner.split("/")
        metadata["ownerReferences"] = [
            {
                "apiVersion": API_VERSIONS[owner_kind],
                "kind": owner_kind,
                "name": owner_name,
                "uid": f"uid of {owner}",
                "controller": True,
            }
        ]
    return tree


def node(name="a", *, labels=(), taints=(), ready="True", cpu="4", annotations=(), **spec):
    status = {
        "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"},
        "conditions": [condition("Ready", ready, "KubeletReady")],
    }
    metadata = {
        "labels": {"kubernetes.io/hostname": name, **dict(labels)},
        "annotations": dict(annotations),
    }
    return obj("Node", name, metadata=metadata, spec={"taints": [*taints], **spec}, status=status)


def template(container=(), labels=(("app", "web"),), **spec):
    containers = [{"name": "c", "image": "nginx", **dict(container)}]
    return {"metadata": {"labels": dict(labels)}, "spec": {"containers": containers, **spec}}


def pod(name="web", *, owner=None, container=(), labels=(("app", "web"),), status=(), **spec):
    made = template(container, labels, **spec)
    status = {"phase": "Pending", **dict(status)}
    metadata = {"labels": dict(labels)}
    return obj("Pod", name, metadata=metadata, owner=owner, spec=made["spec"], status=status)


def state(state, **fields):
    """Return the status of a pod whose container is in a state."""
    container = {
        "name": "c",
        "image": "nginx",
        "imageID": "",
        "ready": False,
        "restartCount": 1,
        "state": state,
        **fields,
    }
    conditions = [condition("Initialized", "True"), condition("Ready", "False")]
    return {"containerStatuses": [container], "conditions": conditions}


def waiting(reason, message=""):
    return state({"waiting": {"reason": reason, "message": message}})


def ended(reason, code):
    end = {"exitCode": code, "reason": reason, "startedAt": TIME, "finishedAt": TIME}
    return state({"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": end})


TIME = "2026-01-31T12:00:00Z"
READY = {
    "phase": "Running",
    "conditions": [condition("Initialized", "True"), condition("Ready", "True")],
    "containerStatuses": [
        {
            "name": "c",
            "image": "nginx",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": TIME}},
        }
    ],
}


def unscheduled(message="0/1 nodes are available"):
    return {"conditions": [condition("PodScheduled", "False", "Unschedulable", message)]}


def deployment(name="web", *, made=None, replicas=1, labels=(("app", "web"),), status=(), **spec):
    counts = {
        "observedGeneration": 1,
        "replicas": 1,
        "updatedReplicas": 1,
        "unavailableReplicas": 1,
        **dict(status),
    }
    return obj(
        "Deployment",
        name,
        metadata={"annotations": {"deployment.kubernetes.io/revision": "1"}},
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": made or template(labels=labels),
            **spec,
        },
        status=counts,
    )


def replica_set(name="web-1", *, owner="Deployment/web", made=None, labels=(("app", "web"),), status=()):
    return obj(
        "ReplicaSet",
        name,
        metadata={"annotations": {"deployment.kubernetes.io/revision": "1"}},
        owner=owner,
        spec={"replicas": 1, "selector": {"matchLabels": dict(labels)}, "template": made or template()},
        status={"replicas": 1, "observedGeneration": 1, **dict(status)},
    )


def deployed(*, container=(), status=(), pod_status=(), **spec):
    """Return a Deployment, its ReplicaSet and its pod."""
    made = template(container, **spec)
    node_name = (
        {} if "conditions" in pod_status and "containerStatuses" not in pod_status else {"nodeName": "a"}
    )
    return (
        deployment(made=made, status=status),
        replica_set(made=made),
        pod("web-1-x", owner="ReplicaSet/web-1", container=container, status=pod_status, **node_name, **spec),
    )


def service(selector=(("app", "web"),), target=80, name="web"):
    return obj(
        "Service",
        name,
        spec={"selector": dict(selector), "ports": [{"port": 80, "targetPort": target}]},
    )


def budget(healthy=1, desired=1, **spec):
    status = {
        "observedGeneration": 1,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": 1,
        "disruptionsAllowed": 0,
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, **(spec or {"minAvailable": 1})}
    return obj("PodDisruptionBudget", "web", spec=spec, status=status)


TAINT = {"key": "only", "value": "db", "effect": "NoSchedule"}
SECRET_KEY = {"env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]}
MEMORY = {"resources": {"limits": {"memory": "64Mi"}, "requests": {"memory": "64Mi"}}}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def affinity(kind, app="db"):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_affinity(key, *values):
    expression = {"key": key, "operator": "In", "values": [*values]}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def definition(name, kind, plural, *, is_accepted=True):
    names = {
        "plural": plural,
        "singular": kind.lower(),
        "kind": kind,
        "listKind": f"{kind}List",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    status = {
        "acceptedNames": names,
        "storedVersions": ["v1"],
        "conditions": [condition("Established", "True")],
    }
    if not is_accepted:
        message = '"Widget" is already in use'
        conditions = [
            condition("NamesAccepted", "False", "KindConflict", message),
            condition("Established", "False", "NotAccepted", "not all names are accepted"),
        ]
        status = {"acceptedNames": {"plural": plural, "kind": ""}, "conditions": conditions}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    return obj("CustomResourceDefinition", name, spec=spec, status=status)


SITUATIONS = (
    # --- containers
    Situation(
        "memory limit of a pod without a controller",
        "Pod/web",
        "used more memory than its limit of 64Mi",
        (node(), pod(container=MEMORY, status=ended("OOMKilled", 137), nodeName="a")),
        origin="pod/web spec.containers[c].resources",
        commands=("kubectl -n shop patch pod/web --subresource=resize -p",),
        absent=("set resources",),
    ),
    Situation(
        "memory limit of a pod without a controller that is not restarted",
        "Pod/web",
        "used more memory than its limit of 64Mi",
        (
            node(),
            pod(
                container=MEMORY,
                restartPolicy="Never",
                nodeName="a",
                status={
                    **state({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
                    "phase": "Failed",
                },
            ),
        ),
        absent=("set resources", "resize"),
    ),
    Situation(
        "memory limit of a Deployment",
        "Deployment/web",
        "used more memory than its limit of 64Mi",
        (node(), *deployed(container=MEMORY, pod_status=ended("OOMKilled", 137))),
        origin="deployment/web spec.template.spec.containers[c].resources",
        commands=(
            "kubectl -n shop set resources deployment/web --containers=c --limits=memory=128Mi --requests=memory=128Mi",
        ),
    ),
    Situation(
        "image that was changed",
        "Deployment/web",
        "the image nginx:lates of the container c does not exist in its registry",
        (
            node(),
            *deployed(container={"image": "nginx"}, pod_status=waiting("ImagePullBackOff", "not found")),
        ),
        changes=(
            (
                "Deployment/web",
                {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:lates"}]}}}},
            ),
            ("ReplicaSet/web-1", {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}),
            ("Pod/web-1-x", {"spec": {"containers": [{"name": "c", "image": "nginx:lates"}]}}),
            ("Deployment/web/status", {"status": {"observedGeneration": 2}}),
        ),
        origin="deployment/web spec.template.spec.containers[c].image",
        author="ada",
        commands=(
            "kubectl -n shop patch deployment/web -p",
            "kubectl -n shop set image deployment/web c=IMAGE",
        ),
    ),
    Situation(
        "image of a Job, whose template cannot be changed",
        "Job/load",
        "does not exist in its registry",
        (
            node(),
            obj("Job", "load", spec={"template": template(restartPolicy="Never")}),
            pod(
                "load-x",
                owner="Job/load",
                restartPolicy="Never",
                nodeName="a",
                status=waiting("ErrImagePull", "not found"),
            ),
        ),
        absent=("set image", "patch"),
    ),
    Situation(
        "probe that fails",
        "Pod/web",
        "the readiness probe of the container c (GET / at port 80) has not succeeded",
        (
            node(),
            pod(
                container={"readinessProbe": {"httpGet": {"port": 80}}},
                status={**state({"running": {"startedAt": TIME}}), "phase": "Running"},
                nodeName="a",
            ),
        ),
    ),
    Situation(
        "program that fails",
        "Deployment/web",
        "ended with exit code 3: its own program failed",
        (node(), *deployed(pod_status=ended("Error", 3))),
        origin="deployment/web spec.template.spec.containers[c]",
        author="admin",
    ),
    # --- what a pod needs
    Situation(
        "key that was removed from a Secret",
        "Deployment/web",
        "needs the key password of the Secret db, which has no such key",
        (
            node(),
            obj("Secret", "db", data={"password": "eA==", "user": "eA=="}),
            *deployed(container=SECRET_KEY, pod_status=waiting("CreateContainerConfigError")),
        ),
        changes=(("Secret/db", {"data": {"password": None}}),),
        origin="secret/db data.password",
        author="ada",
        commands=("kubectl -n shop patch secret/db --type=merge -p",),
    ),
    Situation(
        "key of a Secret that is immutable",
        "Pod/web",
        "needs the key password of the Secret db, which has no such key",
        (
            node(),
            obj("Secret", "db", data={}, immutable=True),
            pod(container=SECRET_KEY, status=waiting("CreateContainerConfigError"), nodeName="a"),
        ),
        origin="secret/db data.password",
        absent=("patch",),
    ),
    Situation(
        "Secret that was deleted",
        "Pod/web",
        "needs the Secret db, which does not exist",
        (
            node(),
            obj("Secret", "db", data={"password": "eA=="}),
            pod(container=SECRET_KEY, status=waiting("CreateContainerConfigError"), nodeName="a"),
        ),
        changes=(("Secret/db", None),),
        origin="secret/db",
        author="ada",
        commands=("kubectl -n shop create secret generic db --from-literal=password=VALUE",),
    ),
    Situation(
        "ConfigMap of a volume that does not exist",
        "Pod/web",
        "the volume v needs the ConfigMap settings, which does not exist",
        (
            node(),
            pod(
                volumes=[{"name": "v", "configMap": {"name": "settings"}}],
                status=waiting("ContainerCreating"),
                nodeName="a",
            ),
        ),
        origin="configmap/settings",
        commands=("kubectl -n shop create configmap settings",),
    ),
    Situation(
        "claim without a StorageClass",
        "PersistentVolumeClaim/data",
        "the StorageClass fast does not exist",
        (
            obj(
                "PersistentVolumeClaim",
                "data",
                spec={
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "fast",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                status={"phase": "Pending"},
            ),
        ),
        origin="storageclass/fast",
    ),
    # --- the scheduler
    Situation(
        "resources that no node has",
        "Deployment/web",
        "Insufficient cpu (1); a: cpu: requests 8, free 4 of 4",
        (
            node(),
            *deployed(
                container={"resources": {"requests": {"cpu": "8"}}},
                pod_status=unscheduled("1 Insufficient cpu."),
            ),
        ),
        origin="deployment/web spec.template.spec.containers[c].resources",
        commands=("kubectl -n shop patch deployment/web -p",),
    ),
    Situation(
        "taint that a user set",
        "Pod/web",
        "node(s) had untolerated taint(s) (1); a: only=db:NoSchedule",
        (node(), pod(status=unscheduled("1 node(s) had untolerated taint(s)"))),
        changes=(("Node/a", {"spec": {"taints": [TAINT]}}),),
        origin="node/a spec.taints[only]",
        author="ada",
        commands=("kubectl -n shop patch pod/web --type=json -p", "kubectl taint nodes a only:NoSchedule-"),
    ),
    Situation(
        "cordon",
        "Pod/web",
        "node(s) were unschedulable (1); a: cordoned",
        (node(), pod(status=unscheduled("1 node(s) were unschedulable"))),
        changes=(("Node/a", {"spec": {"unschedulable": True}}),),
        origin="node/a spec.unschedulable",
        author="ada",
        commands=("kubectl uncordon a",),
    ),
    Situation(
        "node that is cordoned",
        "Node/a",
        "the node is cordoned",
        (node(unschedulable=True),),
        origin="node/a spec.unschedulable",
        author="admin",
        commands=("kubectl uncordon a",),
    ),
    Situation(
        "host port that another pod has",
        "Pod/web",
        "didn't have free ports for the requested pod ports (1); a: the host port 8080/TCP is that of the pod shop/other",
        (
            node(),
            pod(
                "other",
                container={"ports": [{"containerPort": 80, "hostPort": 8080}]},
                status=READY,
                nodeName="a",
            ),
            pod(
                container={"ports": [{"containerPort": 80, "hostPort": 8080}]},
                status=unscheduled("1 node(s) didn't have free ports for the requested pod ports"),
            ),
        ),
        origin="pod/other",
        commands=("kubectl -n shop delete pod/other",),
    ),
    Situation(
        "label that a spread lacks",
        "Deployment/web",
        "(missing required label) (1); a: lacks the label zone",
        (
            node(),
            *deployed(
                topologySpreadConstraints=[SPREAD],
                pod_status=unscheduled(
                    "1 node(s) didn't match pod topology spread constraints (missing required label)"
                ),
            ),
        ),
        origin="deployment/web spec.template.spec.topologySpreadConstraints",
        commands=("kubectl label node a zone=VALUE --overwrite", "kubectl -n shop patch deployment/web -p"),
    ),
    Situation(
        "spread that is full",
        "Pod/web",
        "a: zone=one has 1 of the pods, zone=two has 0, and maxSkew is 1",
        (
            node(labels={"zone": "one"}),
            node("b", labels={"zone": "two"}, unschedulable=True),
            pod("other", status=READY, nodeName="a"),
            pod(
                topologySpreadConstraints=[SPREAD],
                status=unscheduled(
                    "1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable"
                ),
            ),
        ),
        origin="pod/web spec.topologySpreadConstraints",
        absent=("patch pod/web",),
    ),
    Situation(
        "affinity to pods that are not there",
        "Deployment/web",
        "podAffinity app=db in the same kubernetes.io/hostname matches no pod there",
        (
            node(),
            *deployed(
                affinity=affinity("podAffinity"),
                pod_status=unscheduled("1 node(s) didn't match pod affinity rules"),
            ),
        ),
        origin="deployment/web spec.template.spec.affinity.podAffinity",
        commands=("kubectl -n shop patch deployment/web -p",),
    ),
    Situation(
        "anti-affinity to a pod that is there",
        "Pod/web",
        "podAntiAffinity app=db in the same kubernetes.io/hostname matches the pod shop/db there",
        (
            node(),
            pod("db", labels={"app": "db"}, status=READY, nodeName="a"),
            pod(
                affinity=affinity("podAntiAffinity"),
                status=unscheduled("1 node(s) didn't match pod anti-affinity rules"),
            ),
        ),
        origin="pod/web spec.affinity.podAntiAffinity",
    ),
    Situation(
        "anti-affinity of a pod that is there",
        "Pod/web",
        "podAntiAffinity app=web in the same kubernetes.io/hostname of the pod shop/db there matches it",
        (
            node(),
            pod(
                "db",
                labels={"app": "db"},
                affinity=affinity("podAntiAffinity", "web"),
                status=READY,
                nodeName="a",
            ),
            pod(status=unscheduled("1 node(s) didn't satisfy existing pods anti-affinity rules")),
        ),
        origin="pod/db spec.affinity.podAntiAffinity",
    ),
    Situation(
        "label of a node selector that was removed",
        "Pod/web",
        "a: lacks disk=ssd",
        (
            node(labels={"disk": "ssd"}),
            pod(
                nodeSelector={"disk": "ssd"},
                status=unscheduled("1 node(s) didn't match Pod's node affinity/selector"),
            ),
        ),
        changes=(("Node/a", {"metadata": {"labels": {"disk": None}}}),),
        origin="pod/web spec.nodeSelector.disk",
        commands=("kubectl label node a disk=ssd --overwrite",),
        absent=("patch pod/web",),
    ),
    Situation(
        "rule of a node affinity",
        "Pod/web",
        "a: nodeAffinity needs disk In [ssd, nvme], and it has hdd",
        (
            node(labels={"disk": "hdd"}),
            pod(
                affinity=node_affinity("disk", "ssd", "nvme"),
                status=unscheduled("1 node(s) didn't match Pod's node affinity/selector"),
            ),
        ),
        origin="pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        commands=("kubectl label node a disk=ssd --overwrite",),
    ),
    Situation(
        "scheduler that does not run",
        "Pod/web",
        "its schedulerName is mine, and no scheduler of that name runs",
        (node(), pod(schedulerName="mine")),
        origin="pod/web spec.schedulerName",
        absent=("patch",),
    ),
    Situation(
        "scheduler of a Deployment that does not run",
        "Deployment/web",
        "its schedulerName is mine, and no scheduler of that name runs",
        (
            node(),
            deployment(made=template(schedulerName="mine")),
            replica_set(made=template(schedulerName="mine")),
            pod("web-1-x", owner="ReplicaSet/web-1", schedulerName="mine"),
        ),
        origin="deployment/web spec.template.spec.schedulerName",
        commands=("kubectl -n shop patch deployment/web -p",),
    ),
    Situation(
        "scheduling gate",
        "Pod/web",
        "until its scheduling gates are removed: example.com/a",
        (node(), pod(schedulingGates=[{"name": "example.com/a"}])),
        origin="pod/web spec.schedulingGates",
        commands=("kubectl -n shop patch pod/web --type=json -p",),
    ),
    # --- workloads
    Situation(
        "Deployment that was scaled to 0",
        "Deployment/web",
        "it is scaled to 0",
        (
            deployment(
                replicas=3,
                status={
                    "replicas": 0,
                    "updatedReplicas": 0,
                    "availableReplicas": 0,
                    "unavailableReplicas": 0,
                },
            ),
        ),
        changes=(
            ("Deployment/web", {"spec": {"replicas": 0}}),
            ("Deployment/web/status", {"status": {"observedGeneration": 2}}),
        ),
        origin="deployment/web spec.replicas",
        author="ada",
        commands=(
            'kubectl -n shop patch deployment/web --type=merge -p \'{"spec":{"replicas":3}}\'',
            "kubectl -n shop scale deployment/web --replicas=1",
        ),
    ),
    Situation(
        "Deployment that is paused",
        "Deployment/web",
        "the Deployment is paused",
        (deployment(paused=True), replica_set(made=template({"image": "old"}))),
        origin="deployment/web spec.paused",
        author="admin",
        commands=("kubectl -n shop rollout resume deployment/web",),
    ),
    Situation(
        "quota that is exhausted",
        "Deployment/web",
        "the ResourceQuota few is exhausted: requested: pods=1, used: pods=3, limited: pods=3",
        (
            obj("ResourceQuota", "few", spec={"hard": {"pods": "3"}}),
            deployment(),
            replica_set(
                status={
                    "replicas": 0,
                    "conditions": [
                        condition(
                            "ReplicaFailure",
                            "True",
                            "FailedCreate",
                            'pods "web-1-x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3',
                        )
                    ],
                }
            ),
        ),
        origin="resourcequota/few spec.hard",
        author="admin",
        commands=(
            'kubectl -n shop patch resourcequota/few --type=merge -p \'{"spec":{"hard":{"pods":"4"}}}\'',
        ),
    ),
    Situation(
        "ServiceAccount that was deleted",
        "Deployment/web",
        "the ServiceAccount robot does not exist",
        (
            obj("ServiceAccount", "robot"),
            deployment(),
            replica_set(
                status={
                    "replicas": 0,
                    "conditions": [
                        condition(
                            "ReplicaFailure",
                            "True",
                            "FailedCreate",
                            'pods "web-1-x" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found',
                        )
                    ],
                }
            ),
        ),
        changes=(("ServiceAccount/robot", None),),
        origin="serviceaccount/robot",
        author="ada",
        commands=("kubectl -n shop create serviceaccount robot",),
    ),
    Situation(
        "Pod Security of the namespace",
        "Deployment/web",
        "Pod Security refuses the pod: it violates restricted:latest",
        (
            deployment(),
            replica_set(
                status={
                    "replicas": 0,
                    "conditions": [
                        condition(
                            "ReplicaFailure",
                            "True",
                            "FailedCreate",
                            'pods "web-1-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
                        )
                    ],
                }
            ),
        ),
        origin='namespace/shop metadata.labels["pod-security.kubernetes.io/enforce"]',
        commands=("kubectl label namespace shop pod-security.kubernetes.io/enforce=privileged",),
    ),
    Situation(
        "DaemonSet whose labels no node has",
        "DaemonSet/agent",
        "none of 1 node may run its pod: node(s) didn't match Pod's node affinity/selector (1); a: lacks gpu=yes",
        (
            node(),
            obj(
                "DaemonSet",
                "agent",
                spec={
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": template(nodeSelector={"gpu": "yes"}),
                },
                status={"observedGeneration": 1},
            ),
        ),
        origin="daemonset/agent spec.template.spec.nodeSelector.gpu",
        commands=("kubectl label node a gpu=yes --overwrite", "kubectl -n shop patch daemonset/agent -p"),
    ),
    Situation(
        "DaemonSet that tolerates no taint of the nodes",
        "DaemonSet/agent",
        "node(s) had untolerated taint(s) (1); a: only=db:NoSchedule",
        (
            node(taints=[TAINT]),
            obj(
                "DaemonSet",
                "agent",
                spec={"selector": {"matchLabels": {"app": "web"}}, "template": template()},
                status={"observedGeneration": 1},
            ),
        ),
        origin="node/a spec.taints[only]",
        author="admin",
        commands=("kubectl -n shop patch daemonset/agent -p", "kubectl taint nodes a only:NoSchedule-"),
    ),
    Situation(
        "Job that is suspended",
        "Job/load",
        "the Job is suspended",
        (obj("Job", "load", spec={"suspend": True, "template": template(restartPolicy="Never")}),),
        origin="job/load spec.suspend",
        author="admin",
        commands=("kubectl -n shop patch job/load -p",),
    ),
    Situation(
        "Job whose pod was drained",
        "Job/load",
        "the pod load-x was evicted by ada",
        (
            node(),
            obj("Job", "load", spec={"backoffLimit": 0, "template": template(restartPolicy="Never")}),
            pod("load-x", owner="Job/load", restartPolicy="Never", nodeName="a", status=READY),
            obj(
                "Event",
                "created",
                involvedObject={
                    "kind": "Job",
                    "namespace": NAMESPACE,
                    "name": "load",
                    "uid": "uid of Job/load",
                },
                reason="SuccessfulCreate",
                message="Created pod: load-x",
                lastTimestamp=TIME,
            ),
        ),
        changes=(
            ("Pod/load-x", "evict"),
            (
                "Job/load/status",
                {
                    "status": {
                        "failed": 1,
                        "startTime": TIME,
                        "conditions": [
                            condition(
                                "FailureTarget", "True", "BackoffLimitExceeded", "has reached the limit"
                            ),
                            condition("Failed", "True", "BackoffLimitExceeded", "has reached the limit"),
                        ],
                    }
                },
            ),
        ),
        origin="pod/load-x",
        author="ada",
    ),
    Situation(
        "CronJob that is suspended",
        "CronJob/nightly",
        "the CronJob is suspended",
        (
            obj(
                "CronJob",
                "nightly",
                spec={
                    "schedule": "0 0 * * *",
                    "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}},
                },
            ),
        ),
        changes=(("CronJob/nightly", {"spec": {"suspend": True}}),),
        origin="cronjob/nightly spec.suspend",
        author="ada",
        commands=("kubectl -n shop patch cronjob/nightly -p",),
    ),
    # --- Services and what leads to them
    Situation(
        "selector of a Service that was changed",
        "Service/web",
        "nearest is deployment/web: it has app=web, not app=wbe",
        (node(), *deployed(pod_status=READY), service()),
        changes=(("Service/web", {"spec": {"selector": {"app": "wbe"}}}),),
        origin="service/web spec.selector.app",
        author="ada",
        commands=("kubectl -n shop set selector service web app=web",),
    ),
    Situation(
        "Service of a DaemonSet without nodes",
        "Service/web",
        "daemonset/agent, whose pods it selects, has none: none of 1 node may run its pod",
        (
            node(),
            obj(
                "DaemonSet",
                "agent",
                spec={
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": template(nodeSelector={"gpu": "yes"}),
                },
                status={"observedGeneration": 1},
            ),
            service(),
        ),
        origin="daemonset/agent spec.template.spec.nodeSelector.gpu",
        absent=("set selector",),
    ),
    Situation(
        "Service of a Deployment that was scaled to 0",
        "Service/web",
        "deployment/web, whose pods it selects, has none: it is scaled to 0",
        (
            deployment(
                replicas=0,
                status={
                    "replicas": 0,
                    "updatedReplicas": 0,
                    "availableReplicas": 0,
                    "unavailableReplicas": 0,
                },
            ),
            service(),
        ),
        origin="deployment/web spec.replicas",
        commands=("kubectl -n shop scale deployment/web --replicas=1",),
        absent=("set selector",),
    ),
    Situation(
        "Service whose port has no such name",
        "Service/web",
        "no container of its pods has a port named http",
        (
            node(),
            *deployed(container={"ports": [{"name": "web", "containerPort": 80}]}, pod_status=READY),
            service(target="http"),
        ),
        origin="service/web spec.ports",
        commands=("kubectl -n shop patch service/web --type=merge -p",),
    ),
    Situation(
        "Ingress whose Service was deleted",
        "Ingress/web",
        "the Service web, to which shop.example/ leads, does not exist",
        (
            obj("IngressClass", "nginx", spec={"controller": "k8s.io/ingress-nginx"}),
            service(),
            obj(
                "Ingress",
                "web",
                spec={
                    "ingressClassName": "nginx",
                    "rules": [
                        {
                            "host": "shop.example",
                            "http": {
                                "paths": [
                                    {
                                        "path": "/",
                                        "pathType": "Prefix",
                                        "backend": {"service": {"name": "web", "port": {"number": 80}}},
                                    }
                                ]
                            },
                        }
                    ],
                },
            ),
        ),
        changes=(("Service/web", None),),
        origin="service/web",
        author="ada",
    ),
    Situation(
        "Ingress of a class that does not exist",
        "Ingress/web",
        "there is no IngressClass traefik",
        (
            obj("IngressClass", "nginx", spec={"controller": "k8s.io/ingress-nginx"}),
            obj(
                "Ingress",
                "web",
                spec={
                    "ingressClassName": "traefik",
                    "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
                },
            ),
        ),
        origin="ingress/web spec.ingressClassName",
        commands=("kubectl -n shop patch ingress/web -p",),
    ),
    # --- the rest
    Situation(
        "budget that forbids every eviction",
        "PodDisruptionBudget/web",
        "no ready pod may be evicted: 1 pods are healthy, and 1 must be",
        (node(), pod(status=READY, nodeName="a"), budget()),
        origin="poddisruptionbudget/web spec.minAvailable",
        author="admin",
        commands=("kubectl -n shop patch poddisruptionbudget/web --type=merge -p",),
    ),
    Situation(
        "eviction that a budget refused",
        "Request/",
        "the PodDisruptionBudget web forbids the eviction of the pod web",
        (node(), pod(status=READY, nodeName="a"), budget()),
        changes=(("Pod/web", "evict"),),
        origin="poddisruptionbudget/web spec.minAvailable",
        author="admin",
        commands=("kubectl -n shop patch poddisruptionbudget/web --type=merge -p",),
    ),
    Situation(
        "node that a user disconnected",
        "Node/a",
        "the node a is disconnected by the annotation mockube.dev/stop-heartbeats",
        (node(ready="Unknown"),),
        changes=(("Node/a", {"metadata": {"annotations": {"mockube.dev/stop-heartbeats": "true"}}}),),
        origin='node/a metadata.annotations["mockube.dev/stop-heartbeats"]',
        author="ada",
        commands=("kubectl patch node/a --type=merge -p",),
    ),
    Situation(
        "names that another definition has",
        "CustomResourceDefinition/widgets2.example.com",
        "the CustomResourceDefinition widgets.example.com has the name",
        (
            definition("widgets.example.com", "Widget", "widgets"),
            definition("widgets2.example.com", "Widget", "widgets2", is_accepted=False),
        ),
        origin="customresourcedefinition/widgets2.example.com spec.names",
        author="admin",
    ),
    Situation(
        "finalizer that nobody removes",
        "ConfigMap/kept",
        "waits for its finalizer example.com/backup",
        (obj("ConfigMap", "kept", metadata={"finalizers": ["example.com/backup"]}),),
        changes=(("ConfigMap/kept", None),),
        origin="configmap/kept metadata.finalizers",
        author="admin",
        commands=("kubectl -n shop patch configmap/kept --type=json -p",),
        absent=("--type=merge",),
    ),
    Situation(
        "autoscaler at its maximum",
        "HorizontalPodAutoscaler/web",
        "it wants more replicas than maxReplicas",
        (
            obj(
                "HorizontalPodAutoscaler",
                "web",
                spec={
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                    "maxReplicas": 2,
                },
                status={
                    "currentReplicas": 2,
                    "desiredReplicas": 2,
                    "conditions": [
                        condition("ScalingActive", "True"),
                        condition("ScalingLimited", "True", "TooManyReplicas", "more than the maximum"),
                    ],
                },
            ),
        ),
        origin="horizontalpodautoscaler/web spec.maxReplicas",
        author="admin",
        commands=("kubectl -n shop patch horizontalpodautoscaler/web -p",),
    ),
)
