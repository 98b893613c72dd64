"""Webhooks that do not answer during a step, and answer again."""

import pytest

from mockube.apimachinery.status import NotFound
from mockube.component_base.packs import LABEL
from mockube.exploration.disturbances import apply
from mockube.exploration.plans import WEBHOOKS, Disturbance
from mockube.exploration.webhooks import has_webhook
from tests.unit.mockube.exploration.test_plan_run import new_run

SERVICE = {"service": {"name": "operator", "namespace": "default"}, "caBundle": "b25l"}
URL = {"url": "https://127.0.0.1:9443/validate"}
CONFIGURATION = {
    "metadata": {"name": "checks"},
    "webhooks": [{"clientConfig": SERVICE}, {"clientConfig": URL}],
}
DEFINITION = {
    "metadata": {"name": "shops.example.com"},
    "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": SERVICE}}},
}
OF_PACK = {**DEFINITION, "metadata": {"name": "shops.example.com", "labels": {LABEL: "shops"}}}
WITHOUT = {"metadata": {"name": "sites.example.com"}, "spec": {"conversion": {"strategy": "None"}}}
CLOSED = "https://127.0.0.1:1/closed"


class Configurations:
    """A server that has the `clientConfig` of each webhook."""

    def __init__(self, **trees):
        self.trees = trees
        self.patched = []

    async def list(self, kind, *_):
        return self.trees.get(kind, [])

    async def get(self, kind, name, _namespace):
        for tree in self.trees.get(kind, []):
            if tree["metadata"]["name"] == name:
                return tree
        raise NotFound(kind, name)

    async def patch(self, values, _namespace, patch_type, _subresource):
        kind, name, [patch] = values
        tree = await self.get(kind, name, "")
        *parts, last = [int(part) if part.isdecimal() else part for part in patch["path"].split("/")[1:]]
        for part in parts:
            tree = tree[part]
        tree[last] = patch["value"]
        self.patched.append((patch_type, name, patch["value"]))


def new_trees():
    def copied(tree):
        if isinstance(tree, dict):
            return {name: copied(value) for name, value in tree.items()}
        return [copied(each) for each in tree] if isinstance(tree, list) else tree

    return {
        "validatingwebhookconfigurations": [copied(CONFIGURATION)],
        "customresourcedefinitions": [copied(WITHOUT), copied(DEFINITION)],
    }


async def stopped(**trees):
    run, _, _ = new_run()
    run.requests = Configurations(**trees)
    await apply(run, Disturbance(action=WEBHOOKS, step=0))
    return run, run.requests


async def test_webhooks_lead_nowhere_until_the_step_after_the_next():
    run, requests = await stopped(**new_trees())
    closed = {"url": CLOSED, "caBundle": "b25l"}
    assert requests.patched == [
        ("json", "checks", closed),
        ("json", "checks", {"url": CLOSED}),
        ("json", "shops.example.com", closed),
    ]
    run.count_step()
    await run.release()
    assert len(requests.patched) == 3
    run.count_step()
    await run.release()
    assert requests.trees == new_trees()


async def test_webhook_that_was_changed_meanwhile_is_left_as_it_is():
    run, requests = await stopped(**new_trees())
    first, second = requests.trees["validatingwebhookconfigurations"][0]["webhooks"]
    first["clientConfig"]["caBundle"] = "dHdv"
    second["clientConfig"] = {"url": "https://127.0.0.1:9444/other"}
    requests.trees["customresourcedefinitions"].clear()
    await run.release_all()
    assert first["clientConfig"] == {**SERVICE, "caBundle": "dHdv"}
    assert second["clientConfig"] == {"url": "https://127.0.0.1:9444/other"}


async def test_disturbance_without_a_webhook_does_not_take_place():
    run, _ = await stopped(customresourcedefinitions=[WITHOUT, OF_PACK])
    assert not run.outcome.is_applied


@pytest.mark.parametrize(
    ("tree", "has_one"),
    [(CONFIGURATION, True), (DEFINITION, True), (OF_PACK, False), (WITHOUT, False), ({}, False)],
)
def test_webhook_is_seen_in_an_object(tree, has_one):
    assert has_webhook(tree) == has_one
