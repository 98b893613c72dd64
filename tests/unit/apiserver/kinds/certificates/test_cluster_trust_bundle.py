"""Names, signers and trust anchors of ClusterTrustBundles."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support import field_rules
from tests.support.server.pod_certificates import authority, certificate

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANCHOR = authority(NOW)
LEAF = certificate(NOW, NOW + timedelta(days=1))
WITHOUT_CONSTRAINTS = certificate(NOW, NOW + timedelta(days=1), basic=False)
KIND = "certificates.k8s.io/v1", "ClusterTrustBundle"


def bundle(name="a", **spec):
    return {"metadata": {"name": name}, "spec": {"trustBundle": ANCHOR, **spec}}


def create_errors(tree):
    return field_rules.create_errors(*KIND, tree)


def omitted(problem):
    return [f'spec.trustBundle: Invalid value: "<value omitted>": {problem}']


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        pytest.param(bundle(), [], id="without signer"),
        pytest.param(bundle("a.b:c:d", signerName="a.b/c"), [], id="of a signer"),
        pytest.param(
            bundle("a:b"),
            [
                'metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its name'
            ],
            id="colon without signer",
        ),
        pytest.param(
            bundle("a", signerName="a.b/c"),
            [
                'metadata.name: Invalid value: "a": ClusterTrustBundle for signerName a.b/c must be named with prefix a.b:c:'
            ],
            id="name without prefix",
        ),
        pytest.param(
            bundle(trustBundle=""), omitted("at least one trust anchor must be provided"), id="empty"
        ),
        pytest.param(
            bundle(trustBundle=ANCHOR * 2), omitted("duplicate trust anchor (indices [0 1])"), id="repeated"
        ),
        pytest.param(bundle(trustBundle=LEAF), omitted("entry 0 does not have the CA bit set"), id="leaf"),
        pytest.param(
            bundle(trustBundle=WITHOUT_CONSTRAINTS),
            omitted("entry 0 does not have the CA bit set"),
            id="without basic constraints",
        ),
        pytest.param(
            bundle(trustBundle=ANCHOR + "-----BEGIN X-----\nYQ==\n-----END X-----\n"),
            omitted("entry 1 has bad block type: X"),
            id="other block",
        ),
        pytest.param(
            bundle(trustBundle="-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"),
            omitted("entry 0 does not parse as X.509"),
            id="no certificate",
        ),
        pytest.param(
            bundle(trustBundle="x" * (1024 * 1024 + 1)),
            ["spec.trustBundle: Too long: may not be more than 1048576 bytes"],
            id="too long",
        ),
    ],
)
def test_new_bundle_is_validated(tree, found):
    assert create_errors(tree) == found


def test_update_keeps_signer_and_parses_changed_bundles_only():
    old = bundle(trustBundle="was valid once")
    assert field_rules.update_errors(*KIND, old, old) == []
    named = bundle("a.b:c:a", signerName="a.b/c")
    errors = field_rules.update_errors(*KIND, bundle("a.b:c:a", signerName="a.b/d"), named)
    assert errors == ['spec.signerName: Invalid value: "a.b/c": field is immutable']
