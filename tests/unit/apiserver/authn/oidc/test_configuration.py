"""An invalid AuthenticationConfiguration is refused with the errors of a real kube-apiserver (`refusals.txt`)."""

from pathlib import Path

import pytest

from mockube.apimachinery import errors
from mockube.apiserver.authn.oidc.authenticators import read_configuration
from mockube.apiserver.authn.oidc.validation import validate
from mockube.apiserver.config.authentication_configuration import NO_FILE, OpenIDConnect, problem
from mockube.component_base.configuration_files import ConfigurationError

HERE = Path(__file__).parent
HEAD = b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
OWN = ["https://kubernetes.default.svc"]


def test_configuration_problems_are_upstreams_in_order():
    _, found = validate(read_configuration((HERE / "refused.yaml").read_bytes()), ())
    text = (HERE / "refusals.txt").read_text().strip().removeprefix("invalid authentication configuration: ")
    assert errors.aggregate(found) == text


FORMS = {
    b"jwt: [{issuer: {ur: x}}]": 'strict decoding error: unknown field "jwt[0].issuer.ur"',
    b"jwt: [{issuer: {url: 1}}]": "json: cannot unmarshal number into Go struct field Issuer.jwt.issuer.url of type string",
    b"jwt: {}": "json: cannot unmarshal object into Go struct field AuthenticationConfiguration.jwt of type []v1.JWTAuthenticator",
    b"anonymous: 1": "json: cannot unmarshal number into Go struct field AuthenticationConfiguration.anonymous of type v1.AnonymousAuthConfig",
    b"x: 1\njwt: [{y: 1, z: 2}]": 'strict decoding error: unknown field "jwt[0].true", unknown field "jwt[0].z", unknown field "x"',
}


@pytest.mark.parametrize(("text", "message"), FORMS.items())
def test_undecodable_configuration_is_refused_as_in_go(text, message):
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(HEAD + text)
    assert str(raised.value) == message


def test_empty_configuration_is_refused():
    with pytest.raises(ConfigurationError, match="empty config data"):
        read_configuration(b"")


def test_more_than_64_authenticators_are_refused():
    _, found = validate(read_configuration(HEAD + b"jwt: [" + b"{}," * 65 + b"]"), ())
    assert errors.aggregate(found) == "jwt: Too many: 65: must have at most 64 items"


def test_egress_selector_is_refused_by_name():
    text = (
        HEAD
        + b"jwt: [{issuer: {url: 'https://x', audiences: [a], egressSelectorType: cluster}, claimMappings: {username: {claim: sub, prefix: ''}}}]"
    )
    _, found = validate(read_configuration(text), ())
    assert [str(one) for one in found] == [
        'jwt[0].issuer.egressSelectorType: Invalid value: "cluster": egress selectors are not built'
    ]


FLAGS = {
    "no client": (
        {"oidc_issuer_url": "https://x"},
        "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
    ),
    "no encryption": (
        {"oidc_issuer_url": "http://x", "oidc_client_id": "a"},
        'invalid authentication configuration: jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https',
    ),
    "an algorithm": (
        {"oidc_issuer_url": "https://x", "oidc_client_id": "a", "oidc_signing_algs": ("HS256",)},
        'oidc: unsupported signing alg: "HS256"',
    ),
    "the server itself": (
        {"oidc_issuer_url": OWN[0], "oidc_client_id": "a"},
        f'issuer.url: Invalid value: "{OWN[0]}": URL must not overlap with disallowed issuers: [{OWN[0]}]',
    ),
    "nothing": ({}, ""),
    "all is well": ({"oidc_issuer_url": "https://x", "oidc_client_id": "a"}, ""),
}


@pytest.mark.parametrize(("flags", "message"), FLAGS.values(), ids=FLAGS)
def test_invalid_oidc_flags_have_upstreams_messages(flags, message):
    assert problem(NO_FILE, OpenIDConnect(**flags), OWN) == message
