"""Clusters of older minor versions: the API server and mockube's controllers work together."""

import pytest

from mockube import Cluster
from mockube.apimachinery.schema import minors

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


def is_ready(deployment):
    return deployment.get("status", {}).get("readyReplicas") == 3


@pytest.mark.parametrize("minor", minors.MINORS)
def test_deployment_becomes_ready_in_older_minor(minor):
    with Cluster(version=minor, nodes=1, packs="") as cluster:
        cluster.apply(WEB)
        cluster.wait("Deployment", "web", is_ready)
        assert cluster.complaints == []


def test_unknown_minor_is_refused():
    with pytest.raises(ValueError, match=r"\"1\.28\" is not one of the minor releases"):
        Cluster(version="1.28")
