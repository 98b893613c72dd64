"""The invariants of the library hold for the controllers of a cluster with ordinary work: each is the operator of its own writes."""

import asyncio

import pytest
from msgspec.structs import replace

from mockube import Cluster
from mockube.client import kubeconfig
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.control_objects import list_changes
from mockube.exploration.invariants import LIBRARY, read_invariant
from mockube.exploration.trace import Trace
from mockube.exploration.trace_replay import TraceReplay

WORK = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers: [{name: c, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  minReplicas: 4
  maxReplicas: 5
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {minAvailable: 2, selector: {matchLabels: {app: db}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup}
spec:
  schedule: "* * * * *"
  successfulJobsHistoryLimit: 1
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: busybox, command: [sh, -c, exit 0]}]
"""
IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
CHANGES = 5000
FLAGS = {
    "flags": [f"--control-changes={CHANGES}"],
    "manager_flags": ["--use-service-account-credentials"],
}
DELETES_FOR_OTHERS = ":generic-garbage-collector"
"""It deletes also claims of running pods, if the retention of their StatefulSet says so."""
LARGE = "CustomResourceDefinition"
"""Those of the packs are too large for a Change."""
OF_TWO_WRITERS = "ServiceCIDR"
"""The server and a controller write its condition, with different messages, and a new time of the transition, as upstream."""


def work(cluster):
    """Create workloads, update, scale and delete them, lose a node, and let the schedule come."""
    cluster.apply(WORK)
    cluster.advance(60)
    cluster.wait("deployment/web", "jsonpath={.status.readyReplicas}=4")
    cluster.wait("statefulset/db", "jsonpath={.status.readyReplicas}=3")
    for kind, name in (("deployment", "web"), ("statefulset", "db"), ("daemonset", "agent")):
        cluster.patch(kind, name, IMAGE, type="strategic")
    cluster.advance(150)
    cluster.wait("statefulset/db", "jsonpath={.status.updatedReplicas}=3")
    cluster.wait("statefulset/db", "jsonpath={.status.readyReplicas}=3")
    cluster.scale("statefulset", "db", 1)
    cluster.advance(60)
    cluster.wait_gone("pod", "db-1")
    node = cluster.get("pod", "db-0")["spec"]["nodeName"]  # that of its volume, which is on no other node
    cluster.delete("node", "node-1" if node != "node-1" else "node-2")
    cluster.advance(60)
    cluster.wait("statefulset/db", "jsonpath={.status.readyReplicas}=1")
    for target in ("hpa/web", "deployment/web", "statefulset/db", "daemonset/agent", "cronjob/backup"):
        cluster.delete(target)
    cluster.wait_gone("persistentvolumeclaim", "data-db-0")
    cluster.wait_gone("statefulset", "db")


async def changes_of(cluster):
    access = kubeconfig.read(cluster.kubeconfig)
    async with open_client(access, RealClock()) as client:
        return await list_changes(client, {})


@pytest.mark.slow
def test_library_holds_for_controllers():
    with Cluster(nodes=3, **FLAGS) as cluster:
        work(cluster)
        changes = asyncio.run(changes_of(cluster))
    assert len(changes) < CHANGES
    trace = Trace(clock=RealClock(), operator="", objects={})
    for change in changes:
        is_left_out = change["spec"]["object"]["kind"] in (LARGE, OF_TWO_WRITERS)
        if not change["spec"].get("patchOmitted") and not is_left_out:
            trace.add_change(change)
    rules, replayed, found = [read_invariant(name) for name in LIBRARY], TraceReplay(trace), []
    for change in trace.changes:
        state = replayed.apply(change)
        if change.user.startswith("system:") and not change.user.endswith(DELETES_FOR_OTHERS):
            state = replace(state, operator=change.user)
        kind = change.identity[0]
        found += [
            (rule.problem(state), change.line())
            for rule in rules
            if rule.applies_to(kind) and rule.problem(state)
        ]
    assert found == []
    kinds = {change.identity[0].partition(".")[0] for change in trace.changes}
    assert {"Job", "PersistentVolumeClaim", "StatefulSet", "PodDisruptionBudget"} <= kinds
