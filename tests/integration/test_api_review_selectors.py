"""Selectors in SubjectAccessReviews: their validation, and errors about those that are ignored."""

import pytest

from tests.support.server import apiserver

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
LABELS, FIELDS = (f"spec.resourceAttributes.{name}" for name in ("labelSelector", "fieldSelector"))
VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def requirement(key="a", operator="Exists", **values):
    return {"requirements": [{"key": key, "operator": operator, **values}]}


@pytest.mark.parametrize("where", [LABELS, FIELDS])
@pytest.mark.parametrize(
    ("selector", "wrong"),
    [
        (
            {},
            "{0}.requirements: Required value: when {0} is specified, requirements or rawSelector is required",
        ),
        (
            requirement() | {"rawSelector": "a=b"},
            '{0}.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements',
        ),
        (requirement(operator="In"), f"{{0}}.requirements[0].values: Required value: {VALUES}"),
        (requirement(values=["x"]), f"{{0}}.requirements[0].values: Forbidden: {NO_VALUES}"),
    ],
)
async def test_selectors_of_access_reviews_are_validated(client, where, selector, wrong):
    asked = {"verb": "list", "resource": "pods", where.rpartition(".")[2]: selector}
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    refused = await client.post(path, {"spec": {"resourceAttributes": asked}})
    assert refused.status == 422
    assert refused.body["message"] == f'.authorization.k8s.io "" is invalid: {wrong.format(where)}'


@pytest.mark.parametrize(
    ("selectors", "ignored"),
    [
        ({"labelSelector": requirement()}, None),
        ({"labelSelector": {"rawSelector": "a=b"}, "fieldSelector": {"rawSelector": "a=b"}}, None),
        ({"labelSelector": requirement(operator="Foo")}, f"{LABELS} ignored due to parse error"),
        ({"labelSelector": {"rawSelector": "a!!"}}, f"{LABELS} ignored due to parse error"),
        ({"fieldSelector": requirement()}, f"{FIELDS} ignored due to parse error"),
        (
            {
                "labelSelector": requirement(operator="Foo"),
                "fieldSelector": {
                    "requirements": [
                        {"key": "a", "operator": "In", "values": ["b"]},
                        {"key": "a", "operator": "In", "values": ["b", "c"]},
                    ]
                },
            },
            f"{FIELDS} partially ignored due to parse error; {LABELS} ignored due to parse error",
        ),
    ],
)
async def test_unparsable_selectors_are_reported(client, selectors, ignored):
    asked = {"verb": "list", "resource": "pods", **selectors}
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    answer = await client.post(path, {"spec": {"resourceAttributes": asked}})
    assert (answer.status, answer.body["status"].get("evaluationError")) == (201, ignored)
