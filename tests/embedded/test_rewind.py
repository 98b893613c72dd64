"""A rewind while controllers run: what was deleted is there again, and no controller removes it."""

import pytest

from mockube import Cluster

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
KINDS = ("deployment", "replicaset", "pod")


def identities(cluster):
    found = [cluster.list(kind) for kind in KINDS]
    return {(each["metadata"]["name"], each["metadata"]["uid"]) for trees in found for each in trees}


@pytest.mark.parametrize("times", [1, 2])
def test_deleted_deployment_is_back_with_its_replica_set_and_pods(times):
    with Cluster(nodes=1) as cluster:
        cluster.apply(WEB)
        ready = cluster.wait("deployment/web", "Available")
        before = identities(cluster)
        for _ in range(times):
            cluster.delete("deployment", "web")
            cluster.advance(60)
            assert identities(cluster) == set()
            cluster.rewind(ready["metadata"]["resourceVersion"])
            cluster.advance(60)
            assert identities(cluster) == before
