"""Tokens in Secrets: valid as long as the Secret and the service account exist."""

import base64

import pytest

from mockube.apimachinery.status import Conflict
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.authn.serviceaccount import jwt
from mockube.apiserver.authn.serviceaccount.keys import load
from mockube.apiserver.authn.serviceaccount.legacy import ISSUER, LegacyTokens
from mockube.component_base.clock import SteppedClock
from tests.support.server.service_accounts import API, EC, pem

KEYS = load(pem(EC))
CLAIM = "kubernetes.io/serviceaccount/"
CLAIMS = {
    "iss": ISSUER,
    "sub": "system:serviceaccount:ns:robot",
    f"{CLAIM}namespace": "ns",
    f"{CLAIM}secret.name": "kept",
    f"{CLAIM}service-account.name": "robot",
    f"{CLAIM}service-account.uid": "uid-robot",
}
TOKEN = jwt.sign(KEYS, CLAIMS)
DAY = 24 * 3600


class LegacyTokenHarness:
    def __init__(self):
        self.clock = SteppedClock()
        account = {"name": "robot", "namespace": "ns", "uid": "uid-robot"}
        secret = {"name": "kept", "namespace": "ns", "uid": "uid-kept"}
        self.account = {"metadata": account}
        self.secret = {"metadata": secret, "data": {"token": base64.b64encode(TOKEN.encode()).decode()}}
        self.written = []
        self.tokens = LegacyTokens(KEYS, audiences=API, find=self.find, label=self.label, clock=self.clock)

    async def find(self, resource, _namespace, _name):
        return {"secrets": self.secret, "serviceaccounts": self.account}[resource]

    async def label(self, namespace, name, change):
        self.written.append((namespace, name, change["metadata"]["labels"]))
        labels = self.secret["metadata"].get("labels", {}) | change["metadata"]["labels"]
        self.secret["metadata"]["labels"] = labels

    async def token_error(self, token=TOKEN, audiences=API):
        try:
            known = await self.tokens.authenticate_token(token, audiences)
        except BadToken as error:
            return str(error)
        return "" if known else "no token of this kind"


@pytest.fixture
def cluster():
    return LegacyTokenHarness()


async def test_legacy_token_authenticates_service_account(cluster):
    known = await cluster.tokens.authenticate_token(TOKEN, API)
    assert (known.user.name, known.user.uid) == ("system:serviceaccount:ns:robot", "uid-robot")
    assert known.user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    )
    assert not known.user.extra


async def test_tokens_of_other_authenticators_are_ignored(cluster):
    assert await cluster.token_error("a.b.c") == "no token of this kind"
    assert await cluster.token_error(jwt.sign(KEYS, {**CLAIMS, "iss": "x"})) == "no token of this kind"


def remove_secret(cluster):
    cluster.secret = None


def mark_secret_deleted(cluster):
    cluster.secret["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"


def another_token(cluster):
    cluster.secret["data"]["token"] = ""


def no_account(cluster):
    cluster.account = None


def another_account(cluster):
    cluster.account["metadata"]["uid"] = "other"


def mark_account_deleted(cluster):
    cluster.account["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"


def invalid(cluster):
    cluster.secret["metadata"]["labels"] = {"kubernetes.io/legacy-token-invalid-since": "2030-01-01"}


MARKED = (
    "the token in secret ns/kept for service account ns/robot has been marked invalid. Use tokens from the "
    "TokenRequest API or manually created secret-based tokens, or remove the "
    "'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"
)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (remove_secret, "Token has been invalidated"),
        (mark_secret_deleted, "Token has been invalidated"),
        (another_token, "Token does not match server's copy"),
        (no_account, 'serviceaccounts "robot" not found'),
        (another_account, "ServiceAccount UID (other) does not match claim (uid-robot)"),
        (mark_account_deleted, "ServiceAccount ns/robot has been deleted"),
        (invalid, MARKED),
    ],
)
async def test_legacy_token_is_refused_after_change_of_secret_or_account(cluster, change, problem):
    change(cluster)
    assert await cluster.token_error() == problem


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ("sub", "sub claim is missing"),
        (f"{CLAIM}namespace", "namespace claim is missing"),
        (f"{CLAIM}secret.name", "secretName claim is missing"),
        (f"{CLAIM}service-account.name", "serviceAccountName claim is missing"),
        (f"{CLAIM}service-account.uid", "serviceAccountUID claim is missing"),
    ],
)
async def test_every_claim_is_required(cluster, claim, problem):
    assert await cluster.token_error(jwt.sign(KEYS, {**CLAIMS, claim: ""})) == problem


async def test_subject_must_be_the_account(cluster):
    token = jwt.sign(KEYS, {**CLAIMS, "sub": "system:serviceaccount:ns:other"})
    assert await cluster.token_error(token) == "sub claim is invalid"


async def test_legacy_token_is_for_audiences_of_server(cluster):
    problem = 'token audiences ["api"] is invalid for the target audiences ["other"]'
    assert await cluster.token_error(audiences=("other",)) == problem


async def test_last_use_is_written_once_a_day(cluster):
    await cluster.token_error()
    await cluster.token_error()
    today = f"{cluster.clock.now():%Y-%m-%d}"
    assert cluster.written == [("ns", "kept", {"kubernetes.io/legacy-token-last-used": today})]
    cluster.clock.advance(2 * DAY)
    await cluster.token_error()
    assert len(cluster.written) == 2


async def test_failed_write_of_last_use_does_not_refuse_token(cluster):
    async def refuse(*_):
        raise Conflict("another client wrote first")

    tokens = LegacyTokens(KEYS, audiences=API, find=cluster.find, label=refuse, clock=cluster.clock)
    assert await tokens.authenticate_token(TOKEN, API)


WARNING = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated"
    " secret-based tokens."
)
ABOUT = "authentication.k8s.io/legacy-token"
SUBJECT = "system:serviceaccount:ns:robot"


async def test_manual_token_use_is_in_audit_annotations(cluster):
    notes = (await cluster.tokens.authenticate_token(TOKEN, API)).notes
    assert notes == ({f"{ABOUT}-manual-secret": "kept", ABOUT: SUBJECT}, (), None)
    assert cluster.tokens.uses == {"legacy_tokens": 1, "legacy_manual_token_uses": 1}


async def test_use_of_auto_generated_token_causes_warning(cluster):
    cluster.account["secrets"] = [{"name": "kept"}]
    notes = (await cluster.tokens.authenticate_token(TOKEN, API)).notes
    assert notes == ({f"{ABOUT}-autogenerated-secret": "kept", ABOUT: SUBJECT}, (WARNING,), None)
    assert cluster.tokens.uses == {"legacy_tokens": 1, "legacy_auto_token_uses": 1}


async def test_use_of_token_marked_invalid_is_counted(cluster):
    cluster.secret["metadata"]["labels"] = {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}
    assert "has been marked invalid" in await cluster.token_error()
    assert cluster.tokens.uses == {"legacy_tokens": 1, "invalid_legacy_auto_token_uses": 1}
