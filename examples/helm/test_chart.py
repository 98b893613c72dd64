"""The Deployments of the rendered chart become available, and its Services have endpoints."""

from pathlib import Path

RENDERED = Path(__file__).with_name("rendered.yaml")


def test_deployments_become_available(mockube):
    deployments = [tree for tree in mockube.apply(RENDERED) if tree["kind"] == "Deployment"]
    mockube.wait(deployments, "Available")


def test_service_has_address_of_each_pod(mockube):
    mockube.apply(RENDERED)
    mockube.wait("Endpoints", "shop-web", lambda tree: count_addresses(tree) == 3)


def count_addresses(endpoints):
    return sum(len(subset.get("addresses", ())) for subset in endpoints.get("subsets", ()))
