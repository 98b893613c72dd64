"""The API server with a pack of a user: defaults, validation, conversion, roles, and errors of its functions."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.bootstrap.cluster import packed_definitions
from mockube.apiserver.bootstrap.ensure import ensure
from tests.support import packs
from tests.support.server import apiserver
from tests.support.server.definitions import established

WEBSITES = "/apis/example.com/v1/namespaces/default/websites"
SCHEMA = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
WEBHOOK = """
from mockube.apimachinery import errors
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.packs.webhook import KindWebhook

def set_defaults(website, old):
    website["spec"].setdefault("host", "example.com")

def validate(registry, new, old):
    if new["spec"]["host"] == "fail":
        raise KeyError("of the pack")
    if new["spec"]["host"] == "bad":
        yield errors.invalid(ROOT.child("spec", "host"), "bad", "no host")

def webhooks():
    return [KindWebhook(group="example.com", resource="websites", set_defaults=set_defaults, validate=validate)]
"""


@pytest.fixture
async def client(pack_folder):
    definition = packs.definition().replace("{type: object}", SCHEMA)
    rule = "{'apiGroups': ['example.com'], 'resources': ['websites'], 'verbs': ['*']}"
    packs.install(
        pack_folder, "served_pack", WEBHOOK + packs.pack_of(f"webhooks=webhooks, roles=[{rule}]", definition)
    )
    async with apiserver.running("--packs=served_pack") as client:
        yield client


def website(**spec):
    return {"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "blog"}, "spec": spec}


async def test_functions_set_defaults_and_validate(client):
    created = await client.post(WEBSITES, website())
    assert (created.status, created.body["spec"]) == (201, {"host": "example.com"})
    refused = await client.patch(f"{WEBSITES}/blog", {"spec": {"host": "bad"}})
    assert refused.status == 422
    problem = 'spec.host: Invalid value: "bad": no host'
    assert refused.body["message"] == f'admission webhook "vwebsite.kb.io" denied the request: {problem}'


async def test_error_of_a_function_is_reported_as_that_of_a_webhook(client, caplog):
    failed = await client.post(WEBSITES, website(host="fail"))
    assert failed.status == 500
    assert failed.body["message"] == (
        "Internal error occurred: failed calling webhook \"vwebsite.kb.io\": KeyError: 'of the pack'"
    )
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [KeyError]


async def test_kinds_stay_listed_while_their_definitions_are_established(client):
    """A client that starts with the server finds them in discovery at any time."""
    catalog, seen = client.server.catalog, []
    resource = GroupResource("example.com", "websites")
    catalog.on_change.append(lambda: seen.append(catalog.is_listed(resource)))
    await ensure(client.server.registry, client.server.registry.row, packed_definitions(["served_pack"]))
    await established(client, "websites.example.com")
    assert {*seen, catalog.is_listed(resource)} == {True}
    assert len(seen) > 0
