"""openssl as a program of a node: it shows certificates. What it would sign or encrypt is refused by name."""

from collections.abc import Generator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Input,
    Process,
    ProgramUsageError,
    Run,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .certificate_text import (
    alternative_names,
    certificate_text,
    load_certificate,
    name_text,
    time_text,
)

if TYPE_CHECKING:
    from cryptography import x509

_MAX_INPUT: Final = 1 << 20
_BLOCK: Final = 4096
_VERSION: Final = "OpenSSL 3.0.17 1 Jul 2025 (Library: OpenSSL 3.0.17 1 Jul 2025)\n"
_WITH_VALUE: Final = frozenset({"-in", "-inform", "-checkend", "-ext"})
_FLAGS: Final = frozenset(
    {"-noout", "-text", "-subject", "-issuer", "-dates", "-startdate", "-enddate", "-serial", "-fingerprint"}
)


def openssl(process: Process) -> Run:
    command, *arguments = process.arguments or ("",)
    if command == "version":
        yield write_text(_VERSION)
        return 0
    if command != "x509":
        raise ProgramUsageError(
            f"openssl {command} is not simulated: openssl x509 shows the certificates of a node"
        )
    options: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        if word not in _WITH_VALUE | _FLAGS:
            raise ProgramUsageError(f"openssl x509 {word} is not simulated")
        options[word] = next(words, "") if word in _WITH_VALUE else ""
    path = options.get("-in", "")
    try:
        data = process.host.files.read(process.path(path)) if path else (yield from _input())
    except FileError:
        yield process.report(
            f"Could not open file or uri for loading certificate from {path}: No such file or directory\nUnable to load certificate"
        )
        return 1
    certificate = load_certificate(data)
    if certificate is None:
        yield process.report(
            f"Could not read certificate from {path or '<stdin>'}\nUnable to load certificate"
        )
        return 1
    yield write_text(_selected_fields(certificate, options))
    if "-checkend" in options:
        return (yield from _check_end(process, certificate, options["-checkend"]))
    if "-noout" not in options:
        yield write_text(data.decode("ascii", "replace"))
    return 0


def _input() -> Generator[Effect, bytes | None, bytes]:
    data = b""
    while len(data) < _MAX_INPUT and (part := (yield Input(_BLOCK))):
        data += part
    return data


def _selected_fields(certificate: "x509.Certificate", options: dict[str, str]) -> str:
    """Return what the options show, in their order."""
    start = f"notBefore={time_text(certificate.not_valid_before_utc)}\n"
    end = f"notAfter={time_text(certificate.not_valid_after_utc)}\n"
    texts = {
        "-subject": lambda: f"subject={name_text(certificate.subject)}\n",
        "-issuer": lambda: f"issuer={name_text(certificate.issuer)}\n",
        "-dates": lambda: start + end,
        "-startdate": lambda: start,
        "-enddate": lambda: end,
        "-serial": lambda: f"serial={certificate.serial_number:X}\n",
        "-fingerprint": lambda: f"SHA1 Fingerprint={_fingerprint(certificate)}\n",
        "-text": lambda: certificate_text(certificate),
        "-ext": lambda: (
            f"X509v3 Subject Alternative Name: \n    {alternative_names(certificate)}\n"
            if options["-ext"] == "subjectAltName"
            else ""
        ),
    }
    return "".join(texts[option]() for option in options if option in texts)


def _fingerprint(certificate: "x509.Certificate") -> str:
    from cryptography.hazmat.primitives.hashes import SHA1  # noqa: PLC0415 - for few

    return ":".join(f"{byte:02X}" for byte in certificate.fingerprint(SHA1()))  # noqa: S303 - openssl shows it


def _check_end(process: Process, certificate: "x509.Certificate", text: str) -> Run:
    if not text.isdecimal():
        yield process.report(f'x509: Invalid non-negative number "{text[:20]}" for option -checkend')
        return 1
    end = process.host.now_running(is_shown=True) + timedelta(seconds=min(int(text), 10**10))
    expires = certificate.not_valid_after_utc < end
    yield write_text(f"Certificate will {'' if expires else 'not '}expire\n")
    return int(expires)
