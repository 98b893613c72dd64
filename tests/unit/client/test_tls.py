"""Which clients share a TLS context: those that trust the same and present no certificate of their own."""

import dataclasses

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.kubeconfig import Access
from mockube.client.tls import REAL_CLOCK, tls_context
from mockube.component_base.clock import SteppedClock
from mockube.component_base.serving_certificates import self_signed_certificate

CERTIFICATE, KEY = self_signed_certificate("127.0.0.1", now=REAL_CLOCK.now(), random=SeededRandom())
OTHER, _ = self_signed_certificate("127.0.0.2", now=REAL_CLOCK.now(), random=SeededRandom("other"))
ACCESS = Access(server="https://127.0.0.1:6443", authority=CERTIFICATE, token="one")


def test_context_is_shared_by_clients_with_the_same_trust():
    other = dataclasses.replace(ACCESS, server="https://127.0.0.1:7443", token="another")
    assert tls_context(ACCESS, REAL_CLOCK) is tls_context(other, REAL_CLOCK)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"authority": OTHER}, id="authority"),
        pytest.param({"insecure": True}, id="insecure"),
        pytest.param({"certificate": CERTIFICATE, "key": KEY}, id="certificate"),
    ],
)
def test_context_is_not_shared_by_clients_that_differ(other):
    assert tls_context(ACCESS, REAL_CLOCK) is not tls_context(
        dataclasses.replace(ACCESS, **other), REAL_CLOCK
    )


def test_context_with_a_certificate_is_of_one_client_alone():
    access = dataclasses.replace(ACCESS, certificate=CERTIFICATE, key=KEY)
    assert tls_context(access, REAL_CLOCK) is not tls_context(access, REAL_CLOCK)


def test_context_with_another_clock_is_of_one_client_alone():
    clock = SteppedClock()
    assert tls_context(ACCESS, clock) is not tls_context(ACCESS, clock)
