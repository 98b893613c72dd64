"""Distinguished names: the subject and the issuer of a certificate."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery.memoize import memoize

from . import der
from .der import CertificateError, Reader

_INVALID: Final = "x509: invalid RDNSequence"
_COMMON_NAME: Final = "2.5.4.3"
_ORGANIZATION: Final = "2.5.4.10"
_UID: Final = "1.3.6.1.4.1.57683.2"
"""Kubernetes' identifier of a user's UID."""
_PRINTABLE: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 '()+,-./:=?*&")
_NUMERIC: Final = frozenset(b"0123456789 ")


class SubjectName(Struct, frozen=True, kw_only=True):
    common_name: str = ""
    organizations: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()


@memoize(1000, max_length=1000)
def parse_name(element: bytes) -> SubjectName:
    """Parse an encoded name; raise CertificateError if one of its values is invalid."""
    common_name, organizations, uids = "", list[str](), list[str]()
    names = Reader(element).nested_reader(der.SEQUENCE, _INVALID)
    while names:
        attributes = names.nested_reader(der.SET, _INVALID)
        while attributes:
            attribute = attributes.nested_reader(der.SEQUENCE, f"{_INVALID}: invalid attribute")
            identifier = attribute.identifier(f"{_INVALID}: invalid attribute type")
            tag, content = attribute.any(f"{_INVALID}: invalid attribute value")
            value = _text(tag, content)
            if identifier == _COMMON_NAME:
                common_name = value
            elif identifier == _ORGANIZATION:
                organizations.append(value)
            elif identifier == _UID:
                uids.append(value)
    return SubjectName(common_name=common_name, organizations=tuple(organizations), uids=tuple(uids))


def _text(tag: int, content: bytes) -> str:
    if tag not in _DECODERS:
        raise _invalid_value(f"unsupported string type: {tag}")
    name, decode = _DECODERS[tag]
    try:
        return decode(content)
    except ValueError:
        raise _invalid_value(f"invalid {name}") from None


def _invalid_value(problem: str) -> CertificateError:
    return CertificateError(f"{_INVALID}: invalid attribute value: {problem}")


def _restricted_decoder(allowed: frozenset[int]) -> Callable[[bytes], str]:
    def decode(content: bytes) -> str:
        if not allowed.issuperset(content):
            raise ValueError
        return content.decode("ascii")

    return decode


def _utf16(content: bytes) -> str:
    """Decode UCS-2, which has no surrogates and no noncharacters."""
    if len(content) % 2:
        raise ValueError
    text = content.removesuffix(b"\0\0").decode("utf-16-be")
    if any(point > 0xFFFD or 0xFDD0 <= point <= 0xFDEF for point in map(ord, text)):
        raise ValueError
    return text


_DECODERS: Final[Mapping[int, tuple[str, Callable[[bytes], str]]]] = {
    der.UTF8_STRING: ("UTF-8 string", bytes.decode),
    der.PRINTABLE_STRING: ("PrintableString", _restricted_decoder(_PRINTABLE)),
    der.NUMERIC_STRING: ("NumericString", _restricted_decoder(_NUMERIC)),
    der.IA5_STRING: ("IA5String", lambda content: content.decode("ascii")),
    der.T61_STRING: ("T61String", lambda content: content.decode("latin-1")),
    der.BMP_STRING: ("BMPString", _utf16),
}
"""By tag: the name in messages, and the decoder."""
