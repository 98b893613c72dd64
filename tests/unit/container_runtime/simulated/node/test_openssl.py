"""openssl on a node shows certificates as OpenSSL does."""

import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.serving_certificates import self_signed_certificate
from mockube.container_runtime.simulated.node.certificate_text import (
    certificate_text,
    load_certificate,
    name_text,
    time_text,
)


@pytest.fixture(scope="module")
def pair():
    return self_signed_certificate(
        "127.0.0.1", now=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), random=SystemRandom()
    )


def test_times_and_names_have_the_format_of_openssl(pair):
    certificate = load_certificate(pair[0])
    assert time_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "Jan  2 03:04:05 2026 GMT"
    assert name_text(certificate.subject).startswith(("CN = ", "O = "))


def test_other_files_are_no_certificates():
    assert load_certificate(b"# This certificate or key is not simulated.\n") is None


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_text_is_that_of_openssl(pair, tmp_path):
    path = tmp_path / "tls.crt"
    path.write_bytes(pair[0])
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-text", "-in", path], capture_output=True, text=True, check=True
    )
    assert certificate_text(load_certificate(pair[0])) == done.stdout
