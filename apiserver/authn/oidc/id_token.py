"""Parse and check ID tokens as upstream's library does, with its messages."""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
from cryptography.x509 import load_der_x509_certificate
from msgspec import Struct

from mockube.apimachinery import gotext
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.authn.signatures import BadJsonWebKey, from_jwk
from mockube.apiserver.wire.go_json import syntax_error, type_name
from mockube.component_base.clock import Clock

from .key_set import UNVERIFIED, KeySet, SignedToken

ALGORITHMS: Final = tuple(sorted(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)))
_GOOGLE: Final = "accounts.google.com"
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*")
_NOT_BEFORE_LEEWAY: Final = 60.0
_STANDARD_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_MAX_DIGITS: Final = 100
_BEFORE_1970: Final = 62_135_596_800
"""Seconds from year 1 to 1970."""
_GO_ZERO_TIME: Final = -_BEFORE_1970
_MIN_INT64: Final = -(1 << 63)
_CALENDAR_CYCLE: Final = 12_622_780_800
"""Seconds of 400 years, after which the calendar repeats."""


class UndecodableToken(ValueError):
    """A part of a token or a claim cannot be decoded; the text is Go's."""


def decode_part(part: str) -> bytes:
    """Decode unpadded URL-safe base64, or raise Undecodable with the offset of the error."""
    match = _BASE64.match(part)
    end = match.end() if match else 0
    if end < len(part) or len(part) % 4 == 1:
        raise UndecodableToken(
            f"illegal base64 data at input byte {end if end < len(part) else len(part) - 1}"
        )
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError as error:
        raise UndecodableToken(str(error)) from error


def object_of(data: bytes) -> dict[str, Any]:
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UndecodableToken(syntax_error(data) or str(error)) from error
    if not isinstance(tree, dict):
        raise wrong_type_error(tree, "oidc.idToken")
    return tree


def untrusted_issuer(token: str) -> str:
    """Return the issuer in a token, which is not verified, or raise Undecodable."""
    if token.strip().startswith("{"):
        raise UndecodableToken("token is not compact JWT")
    parts = token.split(".")
    if len(parts) != 3:
        raise UndecodableToken("malformed token")
    issuer = text_of(object_of(decode_part(parts[1])).get("iss"))
    return f"https://{_GOOGLE}" if issuer == _GOOGLE else issuer


def text_of(value: Any, place: str = "value") -> str:
    """Return a claim as Go decodes it into a string: null is empty."""
    if value is None or isinstance(value, str):
        return value or ""
    raise wrong_type_error(value, "string", place)


def wrong_type_error(value: Any, go_type: str, place: str = "value") -> UndecodableToken:
    return UndecodableToken(f"json: cannot unmarshal {type_name(value)} into Go {place} of type {go_type}")


def _claim_place(claim: str) -> str:
    return f"struct field idToken.{claim}"


class Verifier(Struct, frozen=True, kw_only=True):
    """Verifies the tokens of one issuer."""

    issuer: str
    audiences: Sequence[str]
    algorithms: Sequence[str]
    keys: KeySet
    clock: Clock

    async def verify(self, token: str) -> dict[str, Any]:
        """Return the claims of a token, or raise BadToken."""
        signed, payload = _parse(token)
        if signed.algorithm not in self.algorithms:
            detail = f"expected {gotext.quote_list(self.algorithms)} got {gotext.quote(signed.algorithm)}"
            raise BadToken(f"oidc: id token signed with unsupported algorithm, {detail}")
        try:
            await self.keys.verify(signed)
        except BadToken as error:
            raise BadToken(f"failed to verify signature: {error}") from error
        try:
            claims = object_of(payload)
            self._check(claims)
        except UndecodableToken as error:
            raise BadToken(f"oidc: failed to unmarshal claims: {error}") from error
        return claims

    def _check(self, claims: Mapping[str, Any]) -> None:
        issuer, audience = text_of(claims.get("iss"), _claim_place("iss")), _audience(claims.get("aud", []))
        text_of(claims.get("sub"), _claim_place("sub"))
        expiry, _ = (_required_time(claims, name) for name in ("exp", "iat"))
        not_before = None if claims.get("nbf") is None else _time(claims, "nbf")
        _check_sources(claims)
        if issuer != self.issuer and not (self.issuer == f"https://{_GOOGLE}" and issuer == _GOOGLE):
            detail = f"expected {gotext.quote(self.issuer)} got {gotext.quote(issuer)}"
            raise BadToken(f"oidc: id token issued by a different provider, {detail}")
        if not set(audience) & set(self.audiences):
            raise BadToken(self._audience_problem(audience))
        now = self.clock.now().timestamp()
        if expiry < now:
            raise BadToken(f"oidc: token is expired (Token Expiry: {_time_text(expiry)})")
        if not_before is not None and now + _NOT_BEFORE_LEEWAY < not_before:
            times = f"current time {_time_text(int(now))} before the nbf (not before) time: {_time_text(not_before)}"
            raise BadToken(f"oidc: {times}")

    def _audience_problem(self, audience: Sequence[str]) -> str:
        if len(self.audiences) == 1:
            return (
                f"oidc: expected audience {gotext.quote(self.audiences[0])} got {gotext.quote_list(audience)}"
            )
        return f"oidc: expected audience in {gotext.quote_list(sorted(self.audiences))} got {gotext.quote_list(audience)}"


def _parse(token: str) -> tuple[SignedToken, bytes]:
    """Return the signed parts of a token, and its payload."""
    if token.count(".") > 2:
        raise BadToken("oidc: malformed jwt")
    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken("oidc: malformed jwt: go-jose/go-jose: compact JWS format must have three parts")
    try:
        head, payload, signature = map(decode_part, parts)
        header = object_of(head)
        key_id, algorithm = _header(header, "kid", "key ID"), _header(header, "alg", "algorithm")
        _header(header, "nonce", "nonce")
        _check_key(header)
        _check_certificates(header)
    except UndecodableToken as error:
        raise BadToken(f"oidc: malformed jwt: {error}") from error
    # `crit` and `b64` name extensions, none of which is supported.
    if "crit" in header or header.get("b64") is False:
        raise BadToken(f"failed to verify signature: {UNVERIFIED}")
    return SignedToken(key_id, algorithm, f"{parts[0]}.{parts[1]}".encode(), signature), payload


def _header(header: Mapping[str, Any], name: str, title: str) -> str:
    try:
        return text_of(header.get(name))
    except UndecodableToken as error:
        raise _header_error(header, name, title, error) from error


def _header_error(header: Mapping[str, Any], name: str, title: str, error: Exception) -> UndecodableToken:
    header_text = gotext.quote(gotext.marshal(header[name]))
    return UndecodableToken(f"failed to unmarshal {title}: {error}: {header_text}")


def _check_key(header: Mapping[str, Any]) -> None:
    """Check the format of a key in the header; the key is not used for verification."""
    key = header.get("jwk")
    try:
        if isinstance(key, dict):
            from_jwk(key)
        elif key is not None:
            raise wrong_type_error(key, "jose.rawJSONWebKey")
    except (UndecodableToken, BadJsonWebKey) as error:
        raise _header_error(header, "jwk", "JWK", error) from error


def _check_certificates(header: Mapping[str, Any]) -> None:
    """Check the format of certificates in the header; they are not used for verification."""
    chain = header.get("x5c")
    try:
        if chain is not None and not isinstance(chain, list):
            raise wrong_type_error(chain, "[]string")
        for certificate in map(text_of, chain or ()):
            load_der_x509_certificate(_decode_standard(certificate))
    except (UndecodableToken, ValueError) as error:
        raise _header_error(header, "x5c", "x5c header", error) from error


def _decode_standard(text: str) -> bytes:
    """Decode base64 with padding, or raise Undecodable."""
    match = _STANDARD_BASE64.match(text)
    end = match.end() if match else 0
    if end < len(text) or len(text) % 4:
        place = end if end < len(text) else end - end % 4
        raise UndecodableToken(f"illegal base64 data at input byte {place}")
    return base64.b64decode(text)


def _check_sources(claims: Mapping[str, Any]) -> None:
    """Check that each distributed claim has a source."""
    names, sources = claims.get("_claim_names") or {}, claims.get("_claim_sources") or {}
    if not isinstance(names, dict):
        raise wrong_type_error(names, "map[string]string", _claim_place("_claim_names"))
    if not isinstance(sources, dict):
        raise wrong_type_error(sources, "map[string]oidc.claimSource", _claim_place("_claim_sources"))
    for source in map(text_of, names.values()):
        if not source:
            raise BadToken("oidc: failed to obtain source from claim name")
        if source not in sources:
            raise BadToken("oidc: source does not exist")


def _audience(value: Any) -> Sequence[str]:
    if value is None or isinstance(value, str):
        return (value or "",)
    if not isinstance(value, list):
        raise wrong_type_error(value, "[]string", _claim_place("aud"))
    return tuple(text_of(audience, _claim_place("aud")) for audience in value)


def _required_time(claims: Mapping[str, Any], claim: str) -> int:
    """Return the time of a claim, or Go's zero time if the claim is missing."""
    return _time(claims, claim) if claim in claims else _GO_ZERO_TIME


def _time(claims: Mapping[str, Any], claim: str) -> int:
    """Return the time of a claim that is a number, or a number in a string, in seconds since 1970."""
    value = claims[claim]
    if value is None:
        raise UndecodableToken('strconv.ParseFloat: parsing "": invalid syntax')
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong_type_error(value, "json.Number", _claim_place(claim))
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        literal = gotext.quote(gotext.marshal(value))
        raise UndecodableToken(f"json: invalid number literal, trying to unmarshal {literal} into Number")
    if isinstance(value, str) and _INTEGER.fullmatch(value) and len(value) < _MAX_DIGITS:
        value = int(value)
    number = float(value)
    if not math.isfinite(number):
        raise UndecodableToken(f"strconv.ParseFloat: parsing {gotext.quote(str(value))}: value out of range")
    # Go converts a number that is out of range to the smallest int64.
    return int(value if isinstance(value, int) else number) if -(2.0**63) <= number < 2.0**63 else _MIN_INT64


def _time_text(seconds: int) -> str:
    if seconds == _MIN_INT64:
        return "292277026596-12-04 15:30:08 +0000 UTC"  # Go's sum of this and year 1 overflows
    cycles, rest = divmod(seconds + _BEFORE_1970, _CALENDAR_CYCLE)
    time = datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=rest)
    year = time.year + 400 * cycles
    digits = f"{year:04}" if year >= 0 else f"-{-year:04}"
    return f"{digits}-{time:%m-%d %H:%M:%S} +0000 UTC"
