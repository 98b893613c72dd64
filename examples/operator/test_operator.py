"""The operator as a process of its own, before a real API server with real controllers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BLOG = "{{apiVersion: example.com/v1, kind: Website, metadata: {{name: blog}}, spec: {{pages: {pages}}}}}"


@pytest.fixture
def cluster(mockube):
    """With the definition, and the operator at work."""
    mockube.apply(HERE / "website.yaml")
    mockube.wait("CustomResourceDefinition", "websites.example.com", "Established")
    operator = subprocess.Popen(
        [sys.executable, HERE / "operator_of_websites.py"],
        env={**os.environ, "KUBECONFIG": str(mockube.kubeconfig)},
    )
    yield mockube
    operator.kill()
    operator.wait()


def test_a_website_gets_its_pods_and_tells_of_them(cluster):
    cluster.apply(BLOG.format(pages=2))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 2})
    cluster.apply(BLOG.format(pages=3))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 3})
    deployment = cluster.wait("Deployment", "blog", "Available")
    assert deployment["metadata"]["ownerReferences"][0]["kind"] == "Website"


def test_a_refusal_is_survived(cluster):
    refusals = cluster.inject(verb="create", resource="deployments", status=500, times=2)
    cluster.apply(BLOG.format(pages=1))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 1})
    assert refusals.hits == 2


def test_what_is_deleted_is_cleaned_up(cluster):
    cluster.apply(BLOG.format(pages=1))
    cluster.wait("Deployment", "blog", "Available")
    cluster.delete("Website", "blog")
    cluster.wait_gone("Deployment", "blog")


def test_it_asks_for_no_more_than_it_needs(cluster):
    cluster.apply(BLOG.format(pages=1))
    cluster.wait("Website", "blog", lambda site: site.get("status") == {"ready": 1})
    assert len(cluster.calls(verb="create", resource="deployments", user="kubernetes-admin")) == 1


def test_what_the_definition_forbids_never_reaches_the_operator(cluster):
    with pytest.raises(Exception, match="should be less than or equal to 9"):
        cluster.apply(BLOG.format(pages=10))
