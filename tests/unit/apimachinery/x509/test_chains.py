"""Chains of certificates are trusted or refused as by Go, with Go's errors.

`chains.json.gz` has named chains, random ones, and ones with a changed byte, with the answers of `tools/certificates`. To
record it again: `python -m tests.support.chains`.
"""

from collections.abc import Iterable, Iterator

import pytest

from mockube.apimachinery.x509.certificate import Certificate, parse_certificate
from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.pool import CertificatePool
from mockube.apimachinery.x509.tls import ServerVerifier, VerificationError
from mockube.apimachinery.x509.verify import CLIENT_AUTH, Options, verify
from tests.support.chains.recording import RecordedCase, read_recording
from tests.support.chains.shapes import Case

pytestmark = pytest.mark.thorough

RECORDED = [*read_recording()]
NAMED = [one for one in RECORDED if not one.case.name.startswith(("random", "changed byte"))]
OTHERS = [one for one in RECORDED if one not in NAMED]


def _parsed(certificates: Iterable[bytes]) -> Iterator[Certificate]:
    for data in certificates:
        try:
            yield parse_certificate(data)
        except CertificateError:
            continue


def _error_of(case: Case) -> str:
    roots = CertificatePool(_parsed(case.roots))
    try:
        if case.usage == "server":
            ServerVerifier(roots, lambda: case.time).check(case.chain, case.host)
        else:
            leaf, *others = map(parse_certificate, case.chain)
            options = Options(
                roots=roots, intermediates=CertificatePool(others), now=case.time, usage=CLIENT_AUTH
            )
            verify(leaf, options)
    except (CertificateError, VerificationError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("recorded", NAMED, ids=lambda recorded: recorded.case.name)
def test_chain_has_gos_error(recorded: RecordedCase) -> None:
    assert _error_of(recorded.case) == recorded.error


def test_random_chains_have_gos_errors() -> None:
    answers = {one.case.name: (_error_of(one.case), one.error) for one in OTHERS}
    assert len(answers) == 1000
    assert {name: pair for name, pair in answers.items() if pair[0] != pair[1]} == {}


def test_recording_has_trusted_and_refused_chains() -> None:
    assert len(NAMED) > 300
    assert sum(not one.error for one in NAMED) > 80
    assert sum(not one.error for one in OTHERS) > 20
