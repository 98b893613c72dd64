"""The page violates no rule of axe: each view and part of an object, in both colours and widths."""

import pytest

from tests.support.processes.page import NARROW, WIDE, opened_cluster, violations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small}
spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: "500"}}}]}
"""
PLACES = (
    "#/health",
    "#/cluster",
    "#/objects",
    "#/timeline",
    "#/activity",
    "#/controllers",
    *(
        f"#/objects?select=pods|default|large&tab={tab}"
        for tab in ("overview", "yaml", "changes", "why", "actions")
    ),
    "#/objects?select=pods|default|small&tab=logs",
    "#/objects?select=pods|default|small&tab=shell",
    "#/objects?select=nodes||node-1&tab=actions",
)


@pytest.mark.parametrize(
    ("scheme", "viewport"),
    [("light", WIDE), ("dark", WIDE), ("light", NARROW)],
    ids=["light", "dark", "narrow"],
)
async def test_page_violates_no_rule_of_axe(scheme, viewport):
    async with opened_cluster(WORKLOADS, scheme=scheme, viewport=viewport) as (cluster, page):
        await cluster.wait("Deployment", "web", "Available")
        await cluster.wait("Pod", "small", "Ready")
        assert await violations(page, PLACES) == {}
