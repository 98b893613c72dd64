"""The operator runs as a process, with a cluster of the fixture `mockube`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BLOG = "{{apiVersion: example.com/v1, kind: Website, metadata: {{name: blog}}, spec: {{pages: {pages}}}}}"


@pytest.fixture
def cluster(mockube):
    """Yield a cluster with the definition, in which the operator runs."""
    mockube.apply(HERE / "website.yaml")
    mockube.wait("CustomResourceDefinition", "websites.example.com", "Established")
    operator = subprocess.Popen(
        [sys.executable, HERE / "operator_of_websites.py"],
        env={**os.environ, "KUBECONFIG": str(mockube.kubeconfig)},
    )
    yield mockube
    operator.kill()
    operator.wait()


def test_website_gets_deployment_and_status(cluster):
    cluster.apply(BLOG.format(pages=2))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 2})
    cluster.apply(BLOG.format(pages=3))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 3})
    deployment = cluster.wait("Deployment", "blog", "Available")
    assert deployment["metadata"]["ownerReferences"][0]["kind"] == "Website"


def test_failed_creation_is_retried(cluster):
    fault = cluster.inject(verb="create", resource="deployments", status=500, times=2)
    cluster.apply(BLOG.format(pages=1))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 1})
    assert fault.hits == 2


def test_deleted_website_deletes_deployment(cluster):
    cluster.apply(BLOG.format(pages=1))
    cluster.wait("Deployment", "blog", "Available")
    cluster.delete("Website", "blog")
    cluster.wait_gone("Deployment", "blog")


def test_deployment_is_created_once(cluster):
    cluster.apply(BLOG.format(pages=1))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 1})
    assert len(cluster.calls(verb="create", resource="deployments", user="kubernetes-admin")) == 1


def test_invalid_website_is_refused(cluster):
    with pytest.raises(Exception, match="should be less than or equal to 9"):
        cluster.apply(BLOG.format(pages=10))
