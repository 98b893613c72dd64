"""Create, update and delete a Deployment with many pods, and print the duration of each step."""

import argparse
import os
import time
from contextlib import contextmanager

from kubernetes import client

from mockube import Cluster

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {pods}
  selector: {{matchLabels: {{app: web}}}}
  strategy: {{rollingUpdate: {{maxSurge: 25%, maxUnavailable: 25%}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "nginx:{tag}"}}]}}
"""


@contextmanager
def print_duration(step):
    start = time.perf_counter()
    yield
    print(f"{step:<28}{time.perf_counter() - start:6.1f} s", flush=True)


def has_rolled_out(pods):
    def condition(deployment):
        status = deployment.get("status", {})
        counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return (
            status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [pods] * 3
        )

    return condition


def delete_and_wait(cluster):
    """Delete in the foreground: the Deployment is deleted after its ReplicaSets and pods."""
    apps = client.AppsV1Api(cluster.kubernetes())
    apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
    cluster.wait_gone("Deployment", "web", timeout=300)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=10)
    options = parser.parse_args()
    pods = options.pods // int(os.environ.get("PODS_DIVIDED_BY", "1"))  # for a quick test
    with Cluster(nodes=options.nodes) as cluster:
        for step, tag in (("all pods ready", "1.28"), ("all pods updated", "1.29")):
            with print_duration(step):
                cluster.apply(DEPLOYMENT.format(pods=pods, tag=tag))
                cluster.wait("Deployment", "web", has_rolled_out(pods), timeout=300)
        with print_duration("all pods deleted"):
            delete_and_wait(cluster)


if __name__ == "__main__":
    main()
