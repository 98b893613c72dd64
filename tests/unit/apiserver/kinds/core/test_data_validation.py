"""Validation of ConfigMaps, Secrets, LimitRanges and ResourceQuotas."""

from base64 import b64encode

import pytest

from tests.support.field_rules import create_errors, update_errors

METADATA = {"name": "a", "namespace": "ns"}
ACCOUNT = "kubernetes.io/service-account.name"


def errors_of(kind, fields):
    return create_errors("v1", kind, {"metadata": METADATA, **fields})


def changed_errors(kind, old, new):
    return update_errors("v1", kind, {"metadata": METADATA, **old}, {"metadata": METADATA, **new})


def secret_errors(secret_type, *keys, annotations=None, **texts):
    data = {
        **dict.fromkeys(keys, "YQ=="),
        **{key: b64encode(text.encode()).decode() for key, text in texts.items()},
    }
    metadata = {**METADATA, "annotations": annotations or {}}
    return create_errors(
        "v1", "Secret", {"metadata": metadata, "type": f"kubernetes.io/{secret_type}", "data": data}
    )


def limit_errors(limits):
    texts = errors_of("LimitRange", {"spec": {"limits": limits}})
    return [text.removeprefix("spec.limits") for text in texts]


def container(**fields):
    return {"type": "Container", **fields}


def quota_errors(spec):
    return errors_of("ResourceQuota", {"spec": spec})


def selector(*requirements, **spec):
    return {"scopeSelector": {"matchExpressions": [*requirements]}, **spec}


def scope(name, operator="Exists", **fields):
    return {"scopeName": name, "operator": operator, **fields}


CONFIG_MAPS = [
    pytest.param({"data": {"a.b-c_D": "x"}, "binaryData": {"e": "YQ=="}}, [], id="data"),
    pytest.param({"data": {"": "x"}},
        [("data[]: Invalid value: \"\": a valid config key must consist of alphanumeric characters, '-', '_' or "
          "'.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
          "'[-._a-zA-Z0-9]+')")], id="empty key"),
    pytest.param({"binaryData": {"a/b": "YQ=="}},
        [('binaryData[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '
          "'-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
          "'[-._a-zA-Z0-9]+')")], id="key with slash"),
    pytest.param({"data": {".": "x", "..": "x", "..a": "x"}},
        ["data[.]: Invalid value: \".\": must not be '.'",
         "data[..]: Invalid value: \"..\": must not be '..'",
         "data[..a]: Invalid value: \"..a\": must not start with '..'"], id="key of dots"),
    pytest.param({"data": {"a": "x"}, "binaryData": {"a": "YQ=="}},
        ['data[a]: Invalid value: "a": duplicate of key present in binaryData'], id="key twice"),
    pytest.param({"data": {"a": "x" * 1048573}, "binaryData": {"b": "YWJj"}}, [], id="longest data"),
    pytest.param({"data": {"a": "x" * 1048574}, "binaryData": {"b": "YWJj"}},
        ["[]: Too long: may not be more than 1048576 bytes"], id="longer data"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CONFIG_MAPS)
def test_config_maps_are_validated(change, expected):
    assert errors_of("ConfigMap", change) == expected


CONFIG_MAP_CHANGES = [
    pytest.param({"data": {"a": "1"}}, {"data": {"a": "2"}}, [], id="data"),
    pytest.param({"immutable": True, "data": {"a": "1"}}, {"immutable": True, "data": {"a": "2"}},
        ["data: Forbidden: field is immutable when `immutable` is set"], id="immutable data"),
    pytest.param({"immutable": True}, {"immutable": True, "binaryData": {"a": "YQ=="}},
        ["binaryData: Forbidden: field is immutable when `immutable` is set"], id="immutable binary data"),
    pytest.param({"immutable": True}, {"immutable": False},
        ["immutable: Forbidden: field is immutable when `immutable` is set"], id="immutable becomes false"),
    pytest.param({"immutable": True}, {},
        ["immutable: Forbidden: field is immutable when `immutable` is set"], id="immutable becomes absent"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CONFIG_MAP_CHANGES)
def test_changes_of_config_maps_are_validated(old, new, expected):
    assert changed_errors("ConfigMap", old, new) == expected


SECRETS = [
    pytest.param(("service-account-token",),
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"], id="account"),
    pytest.param(("basic-auth", "username", "password"), [], id="user and password"),
    pytest.param(("basic-auth", "username"), [], id="user"),
    pytest.param(("basic-auth",),
        ["data[username]: Required value",
         "data[password]: Required value"], id="neither user nor password"),
    pytest.param(("ssh-auth", "ssh-privatekey"), [], id="key"),
    pytest.param(("ssh-auth",), ["data[ssh-privatekey]: Required value"], id="no key"),
    pytest.param(("tls", "tls.crt", "tls.key"), [], id="certificate"),
    pytest.param(("tls",),
        ["data[tls.crt]: Required value",
         "data[tls.key]: Required value"], id="no certificate"),
    pytest.param(("tls", "tls.crt"), ["data[tls.key]: Required value"], id="no key of a certificate"),
    pytest.param(("dockerconfigjson",), ["data[.dockerconfigjson]: Required value"], id="no configuration of Docker"),
    pytest.param(("dockercfg",), ["data[.dockercfg]: Required value"], id="no older configuration of Docker"),
    pytest.param(("dockercfg", ".dockercfg"),
        [("data[.dockercfg]: Invalid value: \"<secret contents redacted>\": invalid character 'a' looking for "
          "beginning of value")], id="no JSON"),
    pytest.param(("other",), [], id="another type"),
    pytest.param(("other", "a/b"),
        [("data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', "
          "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
          "'[-._a-zA-Z0-9]+')")], id="invalid key of the data"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SECRETS)
def test_secrets_are_validated(change, expected):
    assert secret_errors(*change) == expected


SECRET_CHANGES = [
    pytest.param({"data": {"a": "YQ=="}}, {"data": {"a": "Yg=="}}, [], id="data"),
    pytest.param({"immutable": True}, {"immutable": True, "data": {"a": "Yg=="}},
        ["data: Forbidden: field is immutable when `immutable` is set"], id="immutable data"),
    pytest.param({"type": "a"}, {"type": "b"}, ['type: Invalid value: "b": field is immutable'], id="type"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), SECRET_CHANGES)
def test_changes_of_secrets_are_validated(old, new, expected):
    assert changed_errors("Secret", old, new) == expected


LIMITS = [
    pytest.param([], [], id="no limits"),
    pytest.param([container(min={"cpu": "1"}, max={"cpu": "4"}, default={"cpu": "3"}, defaultRequest={"cpu": "2"}, maxLimitRequestRatio={"cpu": "4"})],
        [], id="limits of containers"),
    pytest.param([{}],
        ['[0].type: Invalid value: "": name part must be non-empty',
         ("[0].type: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', "
          "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
          "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="no type"),
    pytest.param([{"type": "Node"}],
        ['[0].type: Invalid value: "Node": must be a standard limit type or fully qualified'], id="unknown type"),
    pytest.param([{"type": "example.com/a"}], [], id="type of another domain"),
    pytest.param([container(), container()], ['[1].type: Duplicate value: "Container"'], id="type twice"),
    pytest.param([{"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}],
        ["[0].default: Forbidden: may not be specified when `type` is 'Pod'",
         "[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"], id="defaults of pods"),
    pytest.param([container(max={"gpu": "1"})],
        ['[0].max[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
         '[0].max[gpu]: Invalid value: "gpu": must be a standard resource for containers'], id="unknown resource"),
    pytest.param([{"type": "example.com/a", "max": {"gpu": "1"}}],
        ['[0].max[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified'],
        id="unknown resource of another type"),
    pytest.param([{"type": "PersistentVolumeClaim", "default": {"storage": "1"}}],
        [("[0].limits: Required value: either minimum or maximum storage value is required, but neither was "
          "provided")], id="claims without storage"),
    pytest.param([{"type": "PersistentVolumeClaim", "min": {"storage": "1"}}], [], id="claims with storage"),
    pytest.param([container(min={"cpu": "2"}, max={"cpu": "1"})],
        ['[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'], id="minimum above maximum"),
    pytest.param([container(min={"cpu": "2"}, defaultRequest={"cpu": "1"})],
        ['[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1'],
        id="minimum above default request"),
    pytest.param([container(max={"cpu": "1"}, defaultRequest={"cpu": "2"})],
        ['[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than max value 1'],
        id="default request above maximum"),
    pytest.param([container(default={"cpu": "1"}, defaultRequest={"cpu": "2"})],
        [('[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit '
          "value 1")], id="default request above default"),
    pytest.param([container(min={"cpu": "2"}, default={"cpu": "1"})],
        ['[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1'],
        id="minimum above default"),
    pytest.param([container(max={"cpu": "1"}, default={"cpu": "2"})],
        ['[0].default[cpu]: Invalid value: "1": default value 2 is greater than max value 1'],
        id="default above maximum"),
    pytest.param([container(maxLimitRequestRatio={"cpu": "900m"})],
        ['[0].maxLimitRequestRatio[cpu]: Invalid value: "900m": ratio 900m is less than 1'], id="ratio below one"),
    pytest.param([container(min={"cpu": "1"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "3"})],
        ['[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
        id="ratio above maximum by minimum"),
    pytest.param([container(default={"example.com/a": "2"}, defaultRequest={"example.com/a": "1"})],
        [('[0].defaultRequest[example.com/a]: Invalid value: "1": default value 2 must equal to defaultRequest '
          "value 1 in example.com/a")], id="extended resource with other default"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), LIMITS)
def test_limit_ranges_are_validated(change, expected):
    assert limit_errors(change) == expected


QUOTAS = [
    pytest.param({"hard": {"pods": "1", "requests.cpu": "500m", "count/jobs.batch": "1", "requests.example.com/a": "1"}},
        [], id="amounts"),
    pytest.param({"hard": {"pods": "-1"}},
        ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'], id="negative amount"),
    pytest.param({"hard": {"pods": "500m"}},
        ['spec.hard[pods]: Invalid value: "500m": must be an integer'], id="part of a pod"),
    pytest.param({"hard": {"gpu": "1"}},
        ['spec.hard[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
         'spec.hard[gpu]: Invalid value: "gpu": must be a standard resource for quota'], id="unknown resource"),
    pytest.param({"hard": {"a b": "1"}},
        [("spec.hard[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' "
          "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         'spec.hard[a b]: Invalid value: "a b": must be a standard resource for quota'], id="invalid resource"),
    pytest.param({"hard": {"pods": "1"}, "scopes": ["BestEffort", "Terminating"]}, [], id="scopes"),
    pytest.param({"scopes": ["Best"]},
        ['spec.scopes: Invalid value: ["Best"]: unsupported scope'], id="unknown scope"),
    pytest.param({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
        ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        id="resource outside the scope"),
    pytest.param({"scopes": ["Terminating", "NotTerminating"]},
        ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'], id="scopes that conflict"),
    pytest.param(selector(scope("PriorityClass", "In", values=["a"])), [], id="selector"),
    pytest.param(selector(scope("Best")),
        ['spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Best": unsupported scope'],
        id="selector of an unknown scope"),
    pytest.param(selector(scope("BestEffort", "In", values=["a"])),
        [("spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' when scope is "
          "any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
          "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
          "ResourceQuotaScopeCrossNamespacePodAffinity")], id="selector by values of another scope"),
    pytest.param(selector(scope("PriorityClass", "NotIn")),
        [("spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when "
          "`operator` is 'In' or 'NotIn' for scope selector")], id="selector without values"),
    pytest.param(selector(scope("PriorityClass", "DoesNotExist", values=["a"])),
        [('spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: must be no value when `operator` '
          "is 'Exist' or 'DoesNotExist' for scope selector")], id="selector with surplus values"),
    pytest.param(selector(scope("PriorityClass", "Is")),
        ['spec.scopeSelector.matchExpressions.operator: Invalid value: "Is": not a valid selector operator'],
        id="selector with unknown operator"),
    pytest.param(selector(scope("BestEffort"), hard={"cpu": "1"}),
        [("spec.scopeSelector.matchExpressions: Invalid value: "
          '{"MatchExpressions":[{"ScopeName":"BestEffort","Operator":"Exists","Values":null}]}: unsupported '
          "scope applied to resource")], id="selector of a resource outside the scope"),
    pytest.param(selector(scope("BestEffort"), scope("NotBestEffort")),
        ["spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes"],
        id="selector of scopes that conflict"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), QUOTAS)
def test_quotas_are_validated(change, expected):
    assert quota_errors(change) == expected


QUOTA_CHANGES = [
    pytest.param({"hard": {"pods": "1"}}, {"hard": {"pods": "2"}}, [], id="amounts"),
    pytest.param({"scopes": ["BestEffort", "Terminating"]}, {"scopes": ["Terminating", "BestEffort"]},
        [], id="order of scopes"),
    pytest.param({"scopes": ["BestEffort"]}, {"scopes": ["Terminating"]},
        ['spec.scopes: Invalid value: ["Terminating"]: field is immutable'], id="scopes"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), QUOTA_CHANGES)
def test_changes_of_quotas_are_validated(old, new, expected):
    assert changed_errors("ResourceQuota", {"spec": old}, {"spec": new}) == expected


def test_token_needs_name_of_account():
    assert secret_errors("service-account-token", annotations={ACCOUNT: "a"}) == []
    assert secret_errors("service-account-token", annotations={ACCOUNT: ""}) == [
        "metadata.annotations[kubernetes.io/service-account.name]: Required value"
    ]


def test_data_of_secret_have_at_most_one_mebibyte():
    data = {"a": b64encode(bytes(1024 * 1024)).decode()}
    assert errors_of("Secret", {"data": data}) == []
    assert errors_of("Secret", {"data": {**data, "b": "YQ=="}}) == [
        "data: Too long: may not be more than 1048576 bytes"
    ]


def test_status_of_quota_is_validated():
    quota = {"metadata": METADATA, "spec": {}}
    new = {**quota, "status": {"hard": {"pods": "-1"}, "used": {"gpu": "1"}}}
    assert update_errors("v1", "ResourceQuota", quota, new, "status") == [
        'status.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
        'status.used[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
        'status.used[gpu]: Invalid value: "gpu": must be a standard resource for quota',
    ]
