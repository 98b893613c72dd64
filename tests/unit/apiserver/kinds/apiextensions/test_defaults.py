import pytest


@pytest.fixture
def definition(with_defaults):
    return lambda **tree: with_defaults("apiextensions.k8s.io/v1", "CustomResourceDefinition", tree)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"plural": "foos", "kind": "FooBar"},
            {"plural": "foos", "singular": "foobar", "kind": "FooBar", "listKind": "FooBarList"},
            id="of its kind",
        ),
        pytest.param(
            {"plural": "foos", "kind": "Foo", "singular": "f", "listKind": "Foos"},
            {"plural": "foos", "singular": "f", "kind": "Foo", "listKind": "Foos"},
            id="its own",
        ),
        pytest.param({"plural": "foos"}, {"plural": "foos", "kind": ""}, id="of no kind"),
    ],
)
def test_names_defaults(definition, given, expected):
    made = definition(spec={"names": given}, status={"acceptedNames": given})
    assert made["spec"]["names"] == expected
    assert made["status"]["acceptedNames"] == {"kind": ""} | given


def test_conversion_defaults(definition):
    assert definition()["spec"]["conversion"] == {"strategy": "None"}


def test_conversion_webhook_port_default(definition):
    service = {"namespace": "n", "name": "s"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    made = definition(spec={"conversion": {"strategy": "Webhook", "webhook": webhook}})
    assert made["spec"]["conversion"]["webhook"]["clientConfig"]["service"] == service | {"port": 443}


def version(name, *, storage):
    return {"name": name, "served": True, "storage": storage}


@pytest.mark.parametrize(
    ("versions", "status", "stored"),
    [
        pytest.param(
            [version("v1", storage=False), version("v2", storage=True)], {}, ["v2"], id="the stored one"
        ),
        pytest.param([version("v1", storage=True)], {"storedVersions": ["v0"]}, ["v0"], id="those that were"),
        pytest.param([version("v1", storage=False)], {}, None, id="none is stored"),
        pytest.param(None, {}, None, id="no versions"),
    ],
)
def test_stored_versions_default(definition, versions, status, stored):
    made = definition(spec={"versions": versions}, status=status)
    assert made["status"]["storedVersions"] == stored
