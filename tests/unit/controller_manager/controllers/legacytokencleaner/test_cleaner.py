"""Unused token Secrets are labelled and later deleted, as in kube-controller-manager 1.36.3."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.client.kinds import PODS, SECRETS, SERVICE_ACCOUNTS
from mockube.controller_manager.controllers.legacytokencleaner.controller import (
    BY_TYPE,
    INVALID_SINCE,
    LAST_USED,
    TYPE,
    tracked_since,
    unused_tokens,
)
from tests.support.controllers.fake_caches import FakeCaches

NOW = datetime(2030, 6, 15, 12, tzinfo=UTC)
PERIOD = timedelta(days=10)
ACCOUNT = {"metadata": {"name": "old", "namespace": "ns", "uid": "u"}, "secrets": [{"name": "t"}]}


def secret(*, labels=None, created="2030-01-01T00:00:00Z", uid="u", **fields):
    marks = {"kubernetes.io/service-account.name": "old", "kubernetes.io/service-account.uid": uid}
    metadata = {
        "name": "t",
        "namespace": "ns",
        "annotations": marks,
        "labels": labels or {},
        "creationTimestamp": created,
    }
    return {"metadata": {**metadata, **fields}, "type": TYPE}


def pod(spec):
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}


def unused_marks(one, *pods, account=ACCOUNT):
    def by_type(secret):
        return [secret["type"]]

    caches = FakeCaches(
        {SECRETS: [one], PODS: pods, SERVICE_ACCOUNTS: [account]}, {SECRETS: {BY_TYPE: by_type}}
    )
    return [token.is_marked for token in unused_tokens(caches, NOW, PERIOD)]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(secret(), [False], id="never used"),
        pytest.param(secret(uid=""), [False], id="of an account of that name"),
        pytest.param(secret(labels={LAST_USED: "2030-06-04"}), [False], id="used long ago"),
        pytest.param(secret(labels={LAST_USED: "2030-06-05"}), [], id="used on the last day"),
        pytest.param(secret(labels={LAST_USED: "never"}), [], id="used at no time"),
        pytest.param(secret(created="2030-06-05T12:00:00Z"), [], id="new"),
        pytest.param(secret(created="2030-06-05T11:59:59Z"), [False], id="just old enough"),
        pytest.param(secret(deletionTimestamp="2030-06-15T12:00:00Z"), [], id="going"),
        pytest.param(secret(uid="v"), [], id="of an account that is gone"),
        pytest.param({**secret(), "type": "Opaque"}, [], id="no token"),
        pytest.param(secret(labels={INVALID_SINCE: "2030-06-04"}), [True], id="marked long ago"),
        pytest.param(secret(labels={INVALID_SINCE: "2030-06-05"}), [], id="marked"),
        pytest.param(secret(labels={INVALID_SINCE: "2030-02-30"}), [False], id="marked on no day"),
        pytest.param(secret(labels={INVALID_SINCE: "20300604"}), [False], id="marked in another way"),
    ],
)
def test_unused_token_is_marked_then_deleted(one, expected):
    assert unused_marks(one) == expected


def test_manually_created_token_is_kept():
    assert unused_marks(secret(), account={**ACCOUNT, "secrets": []}) == []


def test_token_used_by_pod_is_kept():
    container = {"envFrom": [{"secretRef": {"name": "t"}}]}
    assert unused_marks(secret(), pod({"initContainers": [container]})) == []
    assert unused_marks(secret(), pod({"containers": [{"envFrom": [{"configMapRef": {"name": "t"}}]}]})) == [
        False
    ]


def test_last_use_counts_from_end_of_day():
    assert tracked_since({"data": {"since": "2020-01-31"}}) == datetime(2020, 2, 1, tzinfo=UTC)
    assert tracked_since({"data": {"since": "today"}}) is None
    assert tracked_since({}) is None
