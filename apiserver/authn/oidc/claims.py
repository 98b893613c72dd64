"""Map verified claims to a user by the mappings and rules of an authenticator, with upstream's messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mockube.apiserver.authn.authenticators import CREDENTIAL_ID, BadToken
from mockube.apiserver.user import User

from . import expressions
from .configuration import JWTAuthenticator, PrefixedClaimOrExpression, required_claims
from .expressions import CLAIMS, USER, Mapper, text_list
from .id_token import UndecodableToken, text_of, wrong_type_error

Claims = Mapping[str, Any]
_RULE: Final = "oidc: error evaluating claim validation expression"
_USER_RULE: Final = "oidc: error evaluating user info validation rule"


def user_of(claims: Claims, authenticator: JWTAuthenticator, mapper: Mapper) -> User:
    """Return the user of the claims, or raise BadToken."""
    mappings = authenticator.claim_mappings
    has_expressions = mapper.username or mapper.groups or mapper.uid or mapper.extra or mapper.claim_rules
    values = expressions.values_of(claims) if has_expressions else {}
    user = User(
        name=_username(claims, values, mappings.username, mapper),
        groups=_groups(claims, values, mappings.groups, mapper),
        uid=_uid(claims, values, mappings.uid.claim, mapper),
        extra=_extra(claims, values, mapper),
    )
    _check_required(claims, required_claims(authenticator.claim_validation_rules))
    _check(mapper.claim_rules, CLAIMS, values, _RULE)
    if mapper.user_rules:
        _check(mapper.user_rules, USER, expressions.user_values(user), _USER_RULE)
    return user


def _claim(claims: Claims, name: str, description: str) -> str:
    if name not in claims:
        raise BadToken(f"oidc: parse {description}: claim not present")
    try:
        return text_of(claims[name])
    except UndecodableToken as error:
        raise BadToken(f"oidc: parse {description}: {error}") from error


def _username(claims: Claims, values: Any, mapping: PrefixedClaimOrExpression, mapper: Mapper) -> str:
    if mapper.username is not None:
        username = _evaluate(mapper.username, values, "username claim")
        if not isinstance(username, str):
            problem = "username claim expression must return a string"
            raise BadToken(f"oidc: error evaluating username claim expression: {problem}")
        if not username:
            raise BadToken("oidc: empty username via CEL expression is not allowed")
        return username
    name = _claim(claims, mapping.claim, f'username claims "{mapping.claim}"')
    if mapping.claim == "email" and "email_verified" in claims:
        verified = claims["email_verified"]
        if verified is not None and not isinstance(verified, bool):
            raise BadToken(f"oidc: parse 'email_verified' claim: {wrong_type_error(verified, 'bool')}")
        if not verified:
            raise BadToken("oidc: email not verified")
    return f"{mapping.prefix or ''}{name}"


def _groups(claims: Claims, values: Any, mapping: PrefixedClaimOrExpression, mapper: Mapper) -> Sequence[str]:
    if mapping.claim and mapping.claim in claims:
        claim_value = claims[mapping.claim]
        try:
            return tuple(f"{mapping.prefix or ''}{group}" for group in _text_or_list(claim_value))
        except UndecodableToken as error:
            raise BadToken(f'oidc: parse groups claim "{mapping.claim}": {error}') from error
    if mapper.groups is None:
        return ()
    value = _evaluate(mapper.groups, values, "group claim")
    try:
        return text_list(value)
    except BadToken as error:
        raise BadToken(f"oidc: error evaluating group claim expression: {error}") from error


def _text_or_list(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if isinstance(value, list) and all(item is None or isinstance(item, str) for item in value):
        return [item or "" for item in value]
    return (text_of(value),)


def _uid(claims: Claims, values: Any, claim: str, mapper: Mapper) -> str:
    if claim:
        return _claim(claims, claim, f'uid claim "{claim}"')
    if mapper.uid is None:
        return ""
    uid = _evaluate(mapper.uid, values, "uid claim")
    if not isinstance(uid, str):
        problem = "uid claim expression must return a string"
        raise BadToken(f"oidc: error evaluating uid claim expression: {problem}")
    return uid


def _extra(claims: Claims, values: Any, mapper: Mapper) -> Mapping[str, Sequence[str]]:
    token_id, extra = claims.get("jti"), dict[str, Sequence[str]]()
    if isinstance(token_id, str) and token_id:
        extra[CREDENTIAL_ID] = (f"JTI={token_id}",)
    results = [(rule, expressions.evaluate(rule, CLAIMS, values)) for rule in mapper.extra]
    for rule, value in results:
        try:
            texts = text_list(value)
        except BadToken as error:
            raise BadToken(f"oidc: error evaluating extra claim expression: {rule.text}: {error}") from error
        if texts:
            extra[rule.name] = texts
    return extra


def _check_required(claims: Claims, required: Mapping[str, str]) -> None:
    for name, required_value in required.items():
        if name not in claims:
            raise BadToken(f"oidc: required claim {name} not present in ID token")
        value = _claim(claims, name, f"claim {name}")
        if value != required_value:
            detail = f"Got = {value}, want = {required_value}"
            raise BadToken(f"oidc: required claim {name} value does not match. {detail}")


def _check(rules: Sequence[expressions.MapperExpression], variable: str, values: Any, prefix: str) -> None:
    try:
        expressions.check(rules, variable, values)
    except BadToken as error:
        raise BadToken(f"{prefix}: {error}") from error


def _evaluate(rule: expressions.MapperExpression, values: Any, description: str) -> Any:
    try:
        return expressions.evaluate(rule, CLAIMS, values)
    except BadToken as error:
        raise BadToken(f"oidc: error evaluating {description} expression: {error}") from error
