"""The page of a whole cluster in a real browser: what needs controllers and nodes."""

import pytest

from tests.support.processes.page import opened_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: main, image: busybox, command: [sh, -c, "echo hello from the log; sleep 3600"]}]}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeName: node-1, containers: [{name: main, image: nginx}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


async def test_controllers_show_queues_and_what_was_reconciled():
    async with opened_cluster(DEPLOYMENT) as (cluster, page):
        await cluster.wait("Deployment", "web", "Available")
        await page.go("#/controllers")
        queue = page.tab.get_by_role("button", name="replicaset", exact=True)
        await queue.click()
        await page.text("The newest reconciliations of the queue replicaset")
        await page.text("create pods: 2")
        await page.tab.get_by_role("button", name="Show all queues").click()
        await page.text("create replicasets.apps")
        assert await page.tab.get_by_role("img", name="Reconciliations by queue").count() == 1


async def test_log_is_followed_and_shell_runs_commands():
    async with opened_cluster(POD) as (cluster, page):
        await cluster.wait("Pod", "web", "Ready")
        await page.go("#/objects?select=pods|default|web&tab=logs")
        await page.tab.get_by_role("log", name="Log of main").filter(has_text="hello from the log").wait_for()
        await page.tab.get_by_role("tab", name="Shell").click()
        command = page.tab.locator("input[name=line]:enabled")
        await command.fill("echo $((6 * 7)) in $(hostname)")
        await command.press("Enter")
        await page.tab.get_by_role("log", name="Shell in main").filter(has_text="42 in web").wait_for()
        await command.fill("exit 3")
        await command.press("Enter")
        await page.text("The shell has ended with exit code 3.")


async def test_drain_evicts_and_shows_what_a_budget_refuses():
    async with opened_cluster(DEPLOYMENT) as (cluster, page):
        await cluster.wait("Deployment", "web", "Available")
        await cluster.apply(BUDGET)
        await cluster.wait("PodDisruptionBudget", "web", "DisruptionAllowed=False")
        await page.go("#/cluster?select=nodes||node-1&tab=actions")
        drain = page.tab.get_by_role("button", name="Drain")
        await drain.click()
        await page.text("node-1 is cordoned, and 0 of 2 pods are evicted.")
        await page.text("Cannot evict pod as it would violate the pod's disruption budget.")
        await cluster.delete("PodDisruptionBudget", "web")
        await drain.click()
        await page.text("node-1 is cordoned, and 2 of 2 pods are evicted.")
        assert (await cluster.get("Node", "node-1"))["spec"]["unschedulable"] is True


async def test_ages_and_activity_follow_the_clock_of_the_cluster():
    async with opened_cluster(POD) as (cluster, page):
        await cluster.wait("Pod", "web", "Ready")
        await cluster.advance(7200)
        await page.go("#/objects?find=web")
        row = page.tab.get_by_role("treeitem").filter(has_text="web")
        await row.get_by_text("2h", exact=True).wait_for()
        await page.go("#/activity?find=")
        await page.tab.get_by_role("img", name="Requests by client").wait_for()
