import pytest

GROUP = "admissionregistration.k8s.io/v1"
MATCH = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("ValidatingWebhookConfiguration", {}),
        ("MutatingWebhookConfiguration", {"reinvocationPolicy": "Never"}),
    ],
)
def test_webhook_defaults(with_defaults, kind, more):
    webhook = {"name": "a.b.c", "clientConfig": {"service": {"namespace": "n", "name": "s"}}, "rules": [RULE]}
    defaulted = with_defaults(GROUP, kind, {"webhooks": [webhook]})["webhooks"][0]
    assert defaulted == MATCH | more | {
        "name": "a.b.c",
        "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 443}},
        "rules": [RULE | {"scope": "*"}],
        "failurePolicy": "Fail",
        "sideEffects": None,
        "timeoutSeconds": 10,
        "admissionReviewVersions": None,
    }


def test_specified_webhook_fields_are_kept(with_defaults):
    own = {
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "objectSelector": {"matchLabels": {"a": "b"}},
        "timeoutSeconds": 1,
    }
    defaulted = with_defaults(GROUP, "ValidatingWebhookConfiguration", {"webhooks": [own]})["webhooks"][0]
    assert own.items() <= defaulted.items()


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"])
def test_policy_defaults(with_defaults, kind):
    spec = {
        "matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": [RULE | {"scope": "Cluster"}]}
    }
    made = with_defaults(GROUP, kind, {"spec": spec})["spec"]
    assert made["failurePolicy"] == "Fail"
    assert made["matchConstraints"] == MATCH | {
        "resourceRules": [RULE | {"scope": "*"}],
        "excludeResourceRules": [RULE | {"scope": "Cluster"}],
    }


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"])
def test_binding_match_resources_defaults(with_defaults, kind):
    spec = with_defaults(GROUP, kind, {"spec": {"matchResources": {"matchPolicy": "Exact"}}})["spec"]
    assert spec["matchResources"] == MATCH | {"matchPolicy": "Exact"}
    assert "matchResources" not in with_defaults(GROUP, kind, {"spec": {}})["spec"]
