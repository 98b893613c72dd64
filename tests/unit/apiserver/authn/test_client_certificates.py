"""Certificates of clients: only a chain to a CA that is trusted now makes a user."""

from datetime import timedelta

import pytest

from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.authenticators import (
    Authentication,
    BearerTokens,
    CredentialCounts,
    PresentedCredentials,
)
from mockube.apiserver.authn.client_certificates import (
    RECHECK_SECONDS,
    CertificateVerifier,
    ClientCertificates,
)
from mockube.apiserver.authn.token_file import StaticTokens
from mockube.apiserver.metrics.access import CredentialMetrics
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from tests.support.chains import builder as b
from tests.support.chains import shapes
from tests.support.chains.builder import key
from tests.support.chains.clients import AUTHORITY, client_certificate, peer, verifier
from tests.support.chains.served import pem
from tests.support.metric_samples import sample_value

BOB = User(name="bob")
LEAF_BELOW_MIDDLE = client_certificate(issuer="CN=middle", signer=key("p256-middle"))


@pytest.fixture
def clock():
    return SteppedClock(b.NOW)


def chain(clock, *authorities, **options):
    bearer = BearerTokens((StaticTokens({"t": BOB}),), audiences=(), clock=clock)
    return Authentication((ClientCertificates(verifier(clock, *authorities), clock, **options), bearer))


async def user_of(clock, *certificates, authorization="", authorities=(), **options):
    presented = PresentedCredentials(authorization, peer(*certificates))
    return await chain(clock, *authorities, **options).authenticate(presented, "get", "/api")


async def test_certificate_names_user_and_groups(clock):
    user = await user_of(clock, client_certificate())
    assert (user.name, user.groups) == ("alice", ("dev", "ops", "system:authenticated"))


async def test_certificate_precedes_token(clock):
    assert (await user_of(clock, client_certificate(), authorization="Bearer t")).name == "alice"


async def test_certificate_without_common_name_is_ignored(clock):
    assert await user_of(clock, client_certificate("O=dev"), authorization="Bearer t") == BOB


REFUSED = {
    "of an unknown CA": (client_certificate(signer=key("p256-middle")),),
    "of a CA with the name of the trusted one, which it sends": (
        client_certificate(signer=key("p256-middle")),
        shapes.root(key=key("p256-middle"), signer=key("p256-middle")).der(),
    ),
    "signed by itself": (client_certificate(issuer="CN=alice", signer=key("p256-leaf")),),
    "of a server": (client_certificate(usages=[b.SERVER]),),
    "expired": (client_certificate(not_after=b.NOW - timedelta(seconds=1)),),
    "not valid yet": (client_certificate(not_before=b.NOW + timedelta(seconds=1)),),
    "below a user's": (
        client_certificate(issuer="CN=bob", signer=key("p256-middle")),
        client_certificate("CN=bob", key=key("p256-middle")),
    ),
    "below an intermediate that was not sent": (
        client_certificate(issuer="CN=middle", signer=key("p256-middle")),
    ),
    "below an expired intermediate": (
        client_certificate(issuer="CN=middle", signer=key("p256-middle")),
        shapes.middle(not_after=b.NOW - timedelta(seconds=1)).der(),
    ),
    "without meaning": (b"\x30\x00",),
    "followed by something without meaning": (client_certificate(), b"\x30\x00"),
}


@pytest.mark.parametrize("certificates", REFUSED.values(), ids=REFUSED)
async def test_certificate_that_does_not_verify_is_unauthorized_without_valid_token(clock, certificates):
    assert await user_of(clock, *certificates, authorization="Bearer t") == BOB
    for authorization in ("", "Bearer wrong"):
        with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
            await user_of(clock, *certificates, authorization=authorization)


async def test_reasons_of_all_authenticators_are_logged(clock, caplog):
    with pytest.raises(Unauthorized):
        await user_of(clock, client_certificate(usages=[b.SERVER]), authorization="Bearer wrong")
    (message,) = caplog.messages
    assert message.startswith('"Unable to authenticate the request" err="[verifying certificate SN=')
    assert message.endswith(
        'failed: x509: certificate specifies an incompatible key usage, invalid bearer token]"'
    )


async def test_certificate_below_intermediate_is_accepted(clock):
    assert (await user_of(clock, LEAF_BELOW_MIDDLE, shapes.middle().der())).name == "alice"


@pytest.mark.parametrize("trusted", [shapes.middle().der(), LEAF_BELOW_MIDDLE], ids=["middle", "leaf"])
async def test_any_certificate_of_chain_can_be_trusted(clock, trusted):
    assert (await user_of(clock, LEAF_BELOW_MIDDLE, authorities=(trusted,))).name == "alice"


async def test_certificate_without_usages_is_accepted(clock):
    assert (await user_of(clock, client_certificate(usages=[]))).name == "alice"


async def test_certificate_that_expires_on_open_connection_is_refused(clock):
    presented = PresentedCredentials("", peer(client_certificate(not_after=b.NOW + timedelta(seconds=60))))
    authentication = chain(clock)
    clock.advance(60)
    assert (await authentication.authenticate(presented, "get", "/api")).name == "alice"
    clock.advance(1)
    for path in ("/api", "/readyz"):
        with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
            await authentication.authenticate(presented, "get", path)


async def test_certificate_is_accepted_once_it_is_valid(clock):
    presented = PresentedCredentials("", peer(client_certificate(not_before=b.NOW + timedelta(seconds=60))))
    authentication = chain(clock)
    with pytest.raises(Unauthorized):
        await authentication.authenticate(presented, "get", "/api")
    clock.advance(60 + RECHECK_SECONDS)
    assert (await authentication.authenticate(presented, "get", "/api")).name == "alice"


def test_result_is_remembered_until_authorities_change(clock):
    reads, authorities = [], [pem(AUTHORITY)]

    def read_chain():
        reads.append(1)
        return (client_certificate(),)

    certificates = peer(client_certificate())
    certificates.read_chain = read_chain
    verified = CertificateVerifier(lambda: authorities[0], clock)
    assert [verified.verify(certificates).problem for _ in range(3)] == ["", "", ""]
    assert len(reads) == 1
    authorities[0] = pem(shapes.middle().der())
    assert "unknown authority" in verified.verify(certificates).problem
    authorities[0] = b""
    assert "unknown authority" in verified.verify(certificates).problem
    authorities[0] = pem(AUTHORITY)
    assert verified.verify(certificates).problem == ""
    assert len(reads) == 4


def test_refused_certificate_is_not_verified_again_for_each_request(clock):
    reads = []

    def read_chain():
        reads.append(1)
        return (client_certificate(usages=[b.SERVER]),)

    certificates = peer(client_certificate(usages=[b.SERVER]))
    certificates.read_chain = read_chain
    verified = verifier(clock)
    for _ in range(3):
        assert verified.verify(certificates).problem
    assert len(reads) == 1


async def test_result_of_one_certificate_is_not_that_of_another(clock):
    authentication = chain(clock)
    alice = PresentedCredentials("", peer(client_certificate()))
    eve = PresentedCredentials("", peer(client_certificate("CN=eve", signer=key("p256-middle"))))
    assert (await authentication.authenticate(alice, "get", "/api")).name == "alice"
    with pytest.raises(Unauthorized):
        await authentication.authenticate(eve, "get", "/api")
    chained = PresentedCredentials(
        "", peer(client_certificate("CN=eve", signer=key("p256-middle")), client_certificate())
    )
    with pytest.raises(Unauthorized):
        await authentication.authenticate(chained, "get", "/api")


@pytest.mark.parametrize(("subject", "uid"), [("CN=alice", ""), ("UID=u1,CN=alice", "u1")])
async def test_uid_of_certificate_is_users(clock, subject, uid):
    assert (await user_of(clock, client_certificate(subject))).uid == uid
    assert (await user_of(clock, client_certificate(subject), reads_uid=False)).uid == ""


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("UID=,CN=alice", "UID cannot be an empty string"),
        ("UID=a,UID=b,CN=alice", "expected 1 UID, but found multiple: [a b]"),
    ],
)
async def test_invalid_uid_is_unauthorized(clock, subject, problem, caplog):
    with pytest.raises(Unauthorized):
        await user_of(clock, client_certificate(subject))
    assert caplog.messages == [f'"Unable to authenticate the request" err="{problem}"']


async def test_remaining_lifetime_of_certificates_is_observed(clock):
    metrics = MetricsRegistry()
    counts = CredentialCounts(observe_certificate=CredentialMetrics(metrics).observe_certificate)
    certificate = client_certificate(not_after=b.NOW + timedelta(seconds=5000))
    await ClientCertificates(verifier(clock), clock, counts).authenticate(
        PresentedCredentials("", peer(certificate))
    )
    name = "apiserver_client_certificate_expiration_seconds_bucket"
    left = [sample_value(metrics, name, {"le": bound}) for bound in ("3600", "7200", "+Inf")]
    assert left == [0, 1, 1]
