"""Validation of webhook configurations."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors

VERSION, KIND = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "scope": "*",
}
HOOK = {
    "name": "a.example.com",
    "rules": [RULE],
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "sideEffects": "None",
    "timeoutSeconds": 10,
    "clientConfig": {"url": "https://example.com/x"},
    "admissionReviewVersions": ["v1"],
}
BAD = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


def configuration(*hooks):
    return {"metadata": {"name": "c"}, "webhooks": [*hooks]}


def errors_of(fields):
    """Return the errors of a configuration with one webhook, without the path of the webhook."""
    texts = create_errors(VERSION, KIND, configuration(changed(HOOK, fields)))
    return [text.removeprefix("webhooks[0].") for text in texts]


def url_errors(url):
    return [text.removeprefix("clientConfig.url: ") for text in errors_of({"clientConfig": {"url": url}})]


def service_errors(fields):
    service = {"namespace": "ns", "name": "s", "port": 443, **fields}
    return [
        text.removeprefix("clientConfig.service.")
        for text in errors_of({"clientConfig": {"service": service}})
    ]


def rule_errors(fields):
    return [text.removeprefix("rules[0].") for text in errors_of({"rules": [{**RULE, **fields}]})]


def changed_errors(old, new):
    return update_errors(VERSION, KIND, configuration(changed(HOOK, old)), configuration(changed(HOOK, new)))


HOOKS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"name": ""}, ["name: Required value"], id="no name"),
    pytest.param({"name": "example.com"},
        ['name: Invalid value: "example.com": should be a domain with at least three segments separated by dots'],
        id="name of two segments"),
    pytest.param({"name": "A.example.com"},
        [('name: Invalid value: "A.example.com": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid name"),
    pytest.param({"sideEffects": ABSENT},
        ["sideEffects: Required value: must specify one of None, NoneOnDryRun"], id="no side effects"),
    pytest.param({"sideEffects": "Some"},
        ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'], id="some side effects"),
    pytest.param({"timeoutSeconds": 1}, [], id="shortest timeout"),
    pytest.param({"timeoutSeconds": 0},
        ["timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"], id="timeout zero"),
    pytest.param({"timeoutSeconds": 30}, [], id="longest timeout"),
    pytest.param({"timeoutSeconds": 31},
        ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"], id="timeout too long"),
    pytest.param({"failurePolicy": "Retry", "matchPolicy": "Similar"},
        ['failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"',
         'matchPolicy: Unsupported value: "Similar": supported values: "Equivalent", "Exact"'], id="unknown policies"),
    pytest.param({"namespaceSelector": BAD, "objectSelector": BAD},
        [('namespaceSelector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an '
          "empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
         ('objectSelector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selectors"),
    pytest.param({"clientConfig": {}},
        ["clientConfig: Required value: exactly one of url or service is required"], id="no client"),
    pytest.param({"clientConfig": {"url": "https://a", "service": {"namespace": "ns", "name": "s", "port": 443}}},
        ["clientConfig: Required value: exactly one of url or service is required"], id="two clients"),
    pytest.param({"admissionReviewVersions": []},
        ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"], id="no versions"),
    pytest.param({"admissionReviewVersions": ["v2"]},
        ['admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1'],
        id="unknown versions"),
    pytest.param({"admissionReviewVersions": ["v2", "v1beta1"]}, [], id="unknown version among others"),
    pytest.param({"admissionReviewVersions": ["v1", "v1"]},
        ['admissionReviewVersions[1]: Invalid value: "v1": duplicate version'], id="version twice"),
    pytest.param({"admissionReviewVersions": ["v1", "1"]},
        [('admissionReviewVersions[1]: Invalid value: "1": a DNS-1035 label must consist of lower case '
          "alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric "
          "character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')")],
        id="invalid version"),
    pytest.param({"rules": []}, [], id="no rules"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), HOOKS)
def test_webhooks_are_validated(change, expected):
    assert errors_of(change) == expected


RULES = [
    pytest.param({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}, [], id="all"),
    pytest.param({"operations": [], "apiGroups": [], "apiVersions": [], "resources": []},
        ["operations: Required value",
         "apiGroups: Required value",
         "apiVersions: Required value",
         "resources: Required value"], id="nothing"),
    pytest.param({"operations": ["READ"]},
        [('operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", '
          '"UPDATE"')], id="unknown operation"),
    pytest.param({"operations": ["*", "CREATE"]},
        ["operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations"],
        id="all operations with another"),
    pytest.param({"apiGroups": ["*", "apps"]},
        ["apiGroups: Invalid value: [\"*\",\"apps\"]: if '*' is present, must not specify other API groups"],
        id="all groups with another"),
    pytest.param({"apiVersions": ["*", "v1"]},
        ["apiVersions: Invalid value: [\"*\",\"v1\"]: if '*' is present, must not specify other API versions"],
        id="all versions with another"),
    pytest.param({"apiVersions": [""]}, ["apiVersions[0]: Required value"], id="empty version"),
    pytest.param({"resources": [""]}, ["resources[0]: Required value"], id="empty resource"),
    pytest.param({"resources": ["pods", "pods/status", "pods/*"]}, [], id="resources and a subresource"),
    pytest.param({"resources": ["pods/*", "pods/status"]},
        ["resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status"],
        id="all subresources with another"),
    pytest.param({"resources": ["*/status", "pods/status"]},
        ["resources[1]: Invalid value: \"pods/status\": if '*/status' is present, must not specify pods/status"],
        id="one subresource of all resources with another"),
    pytest.param({"resources": ["*", "pods"]},
        [("resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources "
          "without subresources")], id="all resources with another"),
    pytest.param({"scope": "Galaxy"},
        ['scope: Unsupported value: "Galaxy": supported values: "*", "Cluster", "Namespaced"'], id="unknown scope"),
    pytest.param({"scope": None}, [], id="no scope"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), RULES)
def test_rules_are_validated(change, expected):
    assert rule_errors(change) == expected


URLS = [
    pytest.param("https://example.com:443/x", [], id="URL"),
    pytest.param("http://example.com",
        ["Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"],
        id="other scheme"),
    pytest.param("example.com",
        ["Invalid value: \"\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
         'Invalid value: "": host must be specified; desired format: https://host[/path]'], id="no scheme"),
    pytest.param("https:///x",
        ['Invalid value: "": host must be specified; desired format: https://host[/path]'], id="no host"),
    pytest.param("https://u:p@example.com",
        ['Invalid value: "u:p": user information is not permitted in the URL'], id="user"),
    pytest.param("https://example.com#f",
        ['Invalid value: "f": fragments are not permitted in the URL'], id="fragment"),
    pytest.param("https://example.com?q",
        ['Invalid value: "q": query parameters are not permitted in the URL'], id="query"),
    pytest.param("https://[::1",
        [("Required value: url must be a valid URL: parse \"https://[::1\": missing ']' in host; desired "
          "format: https://host[/path]")], id="unbalanced bracket"),
    pytest.param("https://a b",
        [('Required value: url must be a valid URL: parse "https://a b": invalid character " " in host name; '
          "desired format: https://host[/path]")], id="space in the host"),
    pytest.param("https://a:b",
        [('Required value: url must be a valid URL: parse "https://a:b": invalid port ":b" after host; desired '
          "format: https://host[/path]")], id="name of a port"),
    pytest.param("https://a:-1",
        [('Required value: url must be a valid URL: parse "https://a:-1": invalid port ":-1" after host; '
          "desired format: https://host[/path]")], id="negative port"),
    pytest.param("https://a/%zz",
        [('Required value: url must be a valid URL: parse "https://a/%zz": invalid URL escape "%zz"; desired '
          "format: https://host[/path]")], id="invalid escape"),
    pytest.param("https://%zz",
        [('Required value: url must be a valid URL: parse "https://%zz": invalid URL escape "%zz"; desired '
          "format: https://host[/path]")], id="invalid escape in the host"),
    pytest.param("https://a/?%zz",
        ['Invalid value: "%zz": query parameters are not permitted in the URL'], id="invalid escape in the query"),
    pytest.param("https://a#%zz",
        [('Required value: url must be a valid URL: parse "https://a#%zz": invalid URL escape "%zz"; desired '
          "format: https://host[/path]")], id="invalid escape in the fragment"),
    pytest.param("https://a\x01/",
        [('Required value: url must be a valid URL: parse "https://a\\x01/": net/url: invalid control character '
          "in URL; desired format: https://host[/path]")], id="control character"),
    pytest.param(":x",
        [('Required value: url must be a valid URL: parse ":x": missing protocol scheme; desired format: '
          "https://host[/path]")], id="no scheme before the colon"),
    pytest.param("1https://a",
        [('Required value: url must be a valid URL: parse "1https://a": first path segment in URL cannot '
          "contain colon; desired format: https://host[/path]")], id="invalid scheme"),
    pytest.param("https://ex℀mple.com/", [], id="host outside ASCII"),
    pytest.param("HTTPS://example.com", [], id="scheme in capitals"),
    pytest.param("https://example.com#a%20b",
        ['Invalid value: "a b": fragments are not permitted in the URL'], id="escape in the fragment"),
    pytest.param("https://a/b c", [], id="space in the path"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), URLS)
def test_urls_are_validated(change, expected):
    assert url_errors(change) == expected


SERVICES = [
    pytest.param({"path": "/a/b.c/"}, [], id="path"),
    pytest.param({"path": "/"}, [], id="root"),
    pytest.param({"path": ""}, [], id="no path"),
    pytest.param({"path": "a"},
        ["path: Invalid value: \"a\": must start with a '/'",
         'path: Invalid value: "a": segment[0] may not be empty'], id="relative path"),
    pytest.param({"path": "//"},
        ['path: Invalid value: "//": segment[0] may not be empty'], id="path of two slashes"),
    pytest.param({"path": "/a//b"},
        ['path: Invalid value: "/a//b": segment[1] may not be empty'], id="path with an empty segment"),
    pytest.param({"path": "/A"},
        [('path: Invalid value: "/A": segment[0]: a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="path with an invalid segment"),
    pytest.param({"namespace": ""}, ["name: Required value"], id="no namespace"),
    pytest.param({"name": ""}, ["namespace: Required value"], id="no name"),
    pytest.param({"port": 0},
        ["port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"], id="port zero"),
    pytest.param({"port": 65536},
        ["port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive"], id="port too high"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SERVICES)
def test_services_are_validated(change, expected):
    assert service_errors(change) == expected


CHANGES = [
    pytest.param({"sideEffects": "Unknown"}, {"sideEffects": "Some"}, [], id="side effects stay unknown"),
    pytest.param({}, {"sideEffects": "Some"},
        ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
        id="side effects become unknown"),
    pytest.param({"admissionReviewVersions": ["v2"]}, {"admissionReviewVersions": ["v3"]},
        [], id="versions stay unknown"),
    pytest.param({}, {"admissionReviewVersions": ["v3"]},
        ['webhooks[0].admissionReviewVersions: Invalid value: ["v3"]: must include at least one of v1, v1beta1'],
        id="versions become unknown"),
    pytest.param({"objectSelector": BAD}, {"namespaceSelector": BAD}, [], id="selector stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_webhooks_are_validated(old, new, expected):
    assert changed_errors(old, new) == expected


def test_name_of_webhook_may_be_repeated_when_one_was():
    twice = configuration(HOOK, HOOK)
    repeated = ['webhooks[1].name: Duplicate value: "a.example.com"']
    assert create_errors(VERSION, KIND, twice) == repeated
    assert update_errors(VERSION, KIND, configuration(HOOK), twice) == repeated
    assert update_errors(VERSION, KIND, twice, twice) == []


def test_mutating_webhook_has_policy_of_reinvocation():
    tree = configuration({**HOOK, "reinvocationPolicy": "Always"})
    assert create_errors(VERSION, "MutatingWebhookConfiguration", tree) == [
        'webhooks[0].reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"'
    ]
