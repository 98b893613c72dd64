"""An etcd cluster of three pods, each in a network of its own."""

from pathlib import Path

import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube import Cluster
from tests.support.pod_network import missing
from tests.support.stores.etcd_server import etcd_binary

pytestmark = [
    pytest.mark.etcd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"no network namespaces for pods: {missing()}"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
MEMBERS = ",".join(f"etcd-{number}=http://etcd-{number}.etcd:2380" for number in range(3))
OBJECTS = f"""
apiVersion: v1
kind: Service
metadata: {{name: etcd}}
spec: {{clusterIP: None, publishNotReadyAddresses: true, selector: {{app: etcd}}, ports: [{{port: 2380}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: etcd-client}}
spec: {{selector: {{app: etcd}}, ports: [{{port: 2379}}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: etcd}}
spec:
  serviceName: etcd
  replicas: 3
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{app: etcd}}}}
  volumeClaimTemplates:
    - metadata: {{name: data}}
      spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
  template:
    metadata: {{labels: {{app: etcd}}}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: etcd
          image: quay.io/coreos/etcd:v3
          env: [{{name: POD, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]
          args:
            - --name=$(POD)
            - --data-dir=/var/lib/etcd
            - --listen-client-urls=http://0.0.0.0:2379
            - --listen-peer-urls=http://0.0.0.0:2380
            - --advertise-client-urls=http://$(POD).etcd:2379
            - --initial-advertise-peer-urls=http://$(POD).etcd:2380
            - --initial-cluster={MEMBERS}
          readinessProbe: {{httpGet: {{path: /health, port: 2379}}, periodSeconds: 1}}
          volumeMounts: [{{name: data, mountPath: /var/lib/etcd}}]
"""


def is_complete(tree):
    return (tree.get("status") or {}).get("readyReplicas") == 3


def test_etcd_of_three_pods_survives_the_loss_of_one():
    folder = Path(etcd_binary()).parent
    files = {f"/usr/local/bin/{name}": str(folder / name) for name in ("etcd", "etcdctl")}
    images = {"quay.io/coreos/etcd:*": {"entrypoint": ["/usr/local/bin/etcd"], "files": files}}
    with Cluster(nodes=3, images=images) as cluster:
        pods = official.CoreV1Api(cluster.kubernetes())

        def etcdctl(pod, *arguments):
            command = ["etcdctl", "--endpoints=http://etcd-client:2379", *arguments]
            connect = pods.connect_get_namespaced_pod_exec
            return stream(connect, pod, "default", command=command, stdout=True, stderr=True)

        cluster.apply(OBJECTS)
        cluster.wait("StatefulSet", "etcd", is_complete, timeout=60)
        assert etcdctl("etcd-0", "put", "color", "blue") == "OK\n"
        first = cluster.get("Pod", "etcd-0")["metadata"]["uid"]
        pods.delete_namespaced_pod("etcd-0", "default")
        cluster.wait("Pod", "etcd-0", lambda pod: pod["metadata"]["uid"] != first, timeout=60)
        cluster.wait("StatefulSet", "etcd", is_complete, timeout=60)
        assert etcdctl("etcd-0", "get", "color") == "color\nblue\n"
        assert etcdctl("etcd-1", "member", "list").count("started") == 3
