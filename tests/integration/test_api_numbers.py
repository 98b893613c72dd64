"""Numbers with a fraction or an exponent in integer fields, compared with kube-apiserver 1.36 by encoding."""

import pytest

from tests.support.server import apiserver

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TEXT = (
    '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME"},"spec":{"replicas":NUMBER,"selector":'
    '{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":'
    '[{"name":"a","image":"b"}]}}}}'
)


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(DEPLOYMENTS, deployment("base", "1"))
        yield client


def deployment(name, number):
    return TEXT.replace("NAME", name).replace("NUMBER", number).encode()


@pytest.mark.parametrize(
    ("number", "json", "yaml", "strategic", "apply"),
    [
        ("2.0", 400, 2, 2, 2),
        ("1e0", 400, 1, 1, 1),
        ("1E2", 400, 100, 100, 100),
        ("-0.0", 400, 0, 0, 0),
        ("2e9", 400, 2_000_000_000, 2_000_000_000, 2_000_000_000),
        ("2.5", 400, 400, 422, 500),
        ("1e-1", 400, 400, 422, 500),
        ("20000000000", 400, 400, 422, 422),  # the low bits are a negative number
        ("2147483648.0", 400, 400, 422, 422),
        (
            "9223372036854775808",
            400,
            400,
            0,
            0,
        ),  # what does not fit is converted to the smallest integer, whose low bits are 0
        ("100000000000000000000", 400, 400, 0, 0),
    ],
)
async def test_replicas_number_formats(client, number, json, yaml, strategic, apply):
    def replicas_or_status(answer):
        return answer.body["spec"]["replicas"] if answer.status in (200, 201) else answer.status

    patch = b'{"spec":{"replicas":%b}}' % number.encode()
    dry = f"{DEPLOYMENTS}?dryRun=All"
    of_json = await client.post(dry, deployment("a", number))
    of_yaml = await client.post(dry, deployment("a", number), Content_Type="application/yaml")
    of_block = await client.post(
        dry,
        deployment("a", number).replace(b'{"apiVersion"', b"{apiVersion"),
        Content_Type="application/yaml",
    )
    of_merge = await client.patch(f"{DEPLOYMENTS}/base?dryRun=All", patch)
    of_strategic = await client.patch(
        f"{DEPLOYMENTS}/base?dryRun=All", patch, kind="strategic-merge-patch+json"
    )
    of_apply = await client.patch(
        f"{DEPLOYMENTS}/a?dryRun=All&fieldManager=x", deployment("a", number), kind="apply-patch+yaml"
    )
    assert replicas_or_status(of_json) == json
    assert (replicas_or_status(of_yaml), replicas_or_status(of_block)) == (yaml, yaml)
    assert replicas_or_status(of_merge) == 422
    assert (replicas_or_status(of_strategic), replicas_or_status(of_apply)) == (strategic, apply)


@pytest.mark.parametrize(
    ("memory", "stored"),
    [
        ("1e30", "1e30"),
        ("1e5000", "100e4998"),
        ("9" * 5000, "9" * 5000),
        ("1e-30", "1e-3"),
    ],
)
async def test_extreme_memory_quantities_are_accepted(client, memory, stored):
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    for number, resources in enumerate([{"requests": {"memory": memory}}, {"limits": {"memory": memory}}]):
        container = {"name": "c", "image": "x", "resources": resources}
        pod = {"metadata": {"name": f"p{number}"}, "spec": {"containers": [container]}}
        answer = await client.post("/api/v1/namespaces/default/pods", pod)
        assert answer.status == 201, answer.data[:300]
        shown = answer.body["spec"]["containers"][0]["resources"]
        assert all(amounts["memory"] == stored for amounts in shown.values())
    table = await client.get(
        "/api/v1/namespaces/default/pods", Accept="application/json;as=Table;v=v1;g=meta.k8s.io"
    )
    assert (table.status, len(table.body["rows"])) == (200, 2)
