"""An invalid AuthorizationConfiguration is refused with the errors of a real kube-apiserver (`refusals.txt`)."""

from pathlib import Path

import pytest

from mockube.apiserver.authz.configuration import from_modes, read_configuration
from mockube.apiserver.config.authorization import AuthorizationOptions, authorization_settings, problem
from mockube.component_base.configuration_files import ConfigurationError

HERE = Path(__file__).parent
HEAD = b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"


def configuration_error(data, required=()):
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(data, required)
    return str(raised.value)


def test_authorization_configuration_problems_are_upstreams():
    assert (
        configuration_error((HERE / "refused.yaml").read_bytes())
        == (HERE / "refusals.txt").read_text().strip()
    )


FORMS = {
    b"authorizers: [{type: RBAC, name: x}]": "expected name rbac for authorizer RBAC instead of x",
    b"authorizers: 1": "failed to load AuthorizationConfiguration from file: json: cannot unmarshal number into Go"
    " struct field AuthorizationConfiguration.authorizers of type []v1.AuthorizerConfiguration",
    b"authorizers: [{typ: x}]": "failed to load AuthorizationConfiguration from file: strict decoding error: unknown"
    ' field "authorizers[0].typ"',
    b"authorizers: [{type: Webhook, name: a, webhook: {timeout: x}}]": "failed to load AuthorizationConfiguration from"
    ' file: time: invalid duration "x"',
}


@pytest.mark.parametrize(("text", "message"), FORMS.items())
def test_undecodable_authorization_configuration_is_refused_as_upstream_does(text, message):
    assert configuration_error(HEAD + text) == message


def test_empty_authorization_configuration_is_refused():
    assert (
        configuration_error(b"")
        == "authorizers: Required value: at least one authorization mode must be defined"
    )


def test_reloaded_configuration_must_keep_initial_types():
    text = HEAD + b"authorizers: [{type: RBAC, name: rbac}]"
    assert read_configuration(text, ["RBAC"]).authorizers[0].name == "rbac"
    assert configuration_error(text, ["RBAC", "Node"]) == "missing required types: [Node]"


def test_authorization_modes_become_authorizers():
    found = from_modes(["Node", "Webhook"], {"timeout": "30s"})
    assert [(one.type, one.name) for one in found.authorizers] == [("Node", "node"), ("Webhook", "default")]
    hook = found.authorizers[1].webhook
    assert (hook.seconds, hook.allow_nanoseconds, hook.deny_nanoseconds) == (30, 300 * 10**9, 30 * 10**9)


FLAGS = {
    "a mode": ({"authorization_mode": ("Magic",)}, 'authorization-mode "Magic" is not a valid mode'),
    "no policies": (
        {"authorization_mode": ("ABAC",)},
        "authorization-mode ABAC's authorization policy file not passed",
    ),
    "no mode for policies": (
        {"authorization_policy_file": object()},
        "cannot specify --authorization-policy-file without mode ABAC",
    ),
    "no webhook": (
        {"authorization_mode": ("Webhook",)},
        "authorization-mode Webhook's authorization config file not passed",
    ),
    "no mode for a webhook": (
        {"authorization_webhook_config_file": Path("x")},
        "cannot specify --authorization-webhook-config-file without mode Webhook",
    ),
    "a version": (
        {"authorization_webhook_version": "v2"},
        'unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"',
    ),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize(("flags", "message"), FLAGS.values(), ids=FLAGS)
def test_invalid_authorization_flags_have_upstreams_messages(flags, message):
    assert problem(AuthorizationOptions(**flags)) == message


def test_webhook_flags_become_configuration(tmp_path):
    file = tmp_path / "hook"
    flags = AuthorizationOptions(
        authorization_mode=("RBAC", "Webhook"),
        authorization_webhook_config_file=file,
        authorization_webhook_cache_unauthorized_ttl=0,
    )
    hook = authorization_settings(flags).configuration.authorizers[1].webhook
    assert hook.connection_info.kube_config_file == str(file)
    assert (hook.cache_authorized_requests, hook.cache_unauthorized_requests) == (True, False)
    assert authorization_settings(AuthorizationOptions()) is None
