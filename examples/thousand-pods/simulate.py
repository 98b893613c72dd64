"""Make, roll and delete many pods, and print how long the control plane took."""

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
def timed(what):
    began = time.perf_counter()
    yield
    print(f"{what:<28}{time.perf_counter() - began:6.1f} s", flush=True)


def rolled_out(pods):
    def is_so(deployment):
        status = deployment.get("status", {})
        counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return (
            status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [pods] * 3
        )

    return is_so


def delete_and_wait(cluster):
    """In the foreground: the Deployment goes when all that belongs to it has gone."""
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
        for what, tag in (("all pods ready", "1.28"), ("all pods of a new version", "1.29")):
            with timed(what):
                cluster.apply(DEPLOYMENT.format(pods=pods, tag=tag))
                cluster.wait("Deployment", "web", rolled_out(pods), timeout=300)
        with timed("all pods deleted"):
            delete_and_wait(cluster)


if __name__ == "__main__":
    main()
