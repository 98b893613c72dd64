"""The chart's manifests come up, and what its values promise is there."""

from pathlib import Path

RENDERED = Path(__file__).with_name("rendered.yaml")


def test_every_part_comes_up(mockube):
    for applied in mockube.apply(RENDERED):
        if applied["kind"] == "Deployment":
            mockube.wait("Deployment", applied["metadata"]["name"], "Available")


def test_services_find_their_pods(mockube):
    mockube.apply(RENDERED)
    mockube.wait("Endpoints", "shop-web", lambda found: addresses(found) == 3)


def addresses(endpoints):
    return sum(len(subset.get("addresses", ())) for subset in endpoints.get("subsets", ()))
