"""Validation of an AuthenticationConfiguration with upstream's messages, and compilation of its expressions."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from cryptography.x509 import load_pem_x509_certificates

from mockube.apimachinery import errors, names
from mockube.apimachinery.admission_expressions import BadExpression
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.uri import request_uri_problem

from .configuration import (
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimOrExpression,
    ClaimValidationRule,
    ExtraMapping,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
    UserValidationRule,
)
from .expressions import CLAIMS, USER, Mapper, MapperExpression, compile_expression, selects

MAX_AUTHENTICATORS: Final = 64
"""As upstream (apiserver/pkg/apis/apiserver/validation/validation.go)."""
_BOTH: Final = "claim and expression can't both be set"
_NEITHER: Final = "claim or expression is required"
_PREFIX: Final = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
_EMAIL: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression"
    " or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
)
_RESERVED: Final = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
_INVALID_URI: Final = "invalid URI for request"
_ROOT: Final = Path().child("jwt")
_ANONYMOUS: Final = Path().child("anonymous")


def validate(
    configuration: AuthenticationConfiguration, disallowed: Collection[str]
) -> tuple[Sequence[Mapper], Sequence[FieldError]]:
    """Return the expressions of each authenticator, and all problems. `disallowed` are the server's own issuers."""
    if len(configuration.jwt) > MAX_AUTHENTICATORS:
        return (), [errors.too_many(_ROOT, len(configuration.jwt), MAX_AUTHENTICATORS)]
    mappers, problems = list[Mapper](), list[FieldError]()
    urls, discovery_urls = set[str](), set[str]()
    for index, authenticator in enumerate(configuration.jwt):
        path, issuer = _ROOT.index(index), authenticator.issuer
        mapper, field_errors = validate_authenticator(authenticator, path, disallowed)
        mappers.append(mapper)
        problems += field_errors
        if issuer.url in urls:
            problems.append(errors.duplicate(path.child("issuer", "url"), issuer.url))
        urls.add(issuer.url)
        if issuer.discovery_url and issuer.discovery_url in discovery_urls:
            problems.append(errors.duplicate(path.child("issuer", "discoveryURL"), issuer.discovery_url))
        discovery_urls.add(issuer.discovery_url)
    anonymous = configuration.anonymous
    if anonymous is not None and anonymous.conditions and not anonymous.enabled:
        conditions = [{"Path": condition.path} for condition in anonymous.conditions]
        detail = "enabled should be set to true when conditions are defined"
        problems.append(errors.invalid(_ANONYMOUS.child("conditions"), conditions, detail))
    return mappers, problems


def validate_authenticator(
    authenticator: JWTAuthenticator, path: Path, disallowed: Collection[str]
) -> tuple[Mapper, list[FieldError]]:
    problems = [*_issuer_errors(authenticator.issuer, path.child("issuer"), disallowed)]
    rules = _compile_claim_rules(
        authenticator.claim_validation_rules, path.child("claimValidationRules"), problems
    )
    mapper = _compile_mappings(authenticator.claim_mappings, path.child("claimMappings"), rules, problems)
    user_rules = _compile_user_rules(
        authenticator.user_validation_rules, path.child("userValidationRules"), problems
    )
    complete_mapper = Mapper(
        username=mapper.username,
        groups=mapper.groups,
        uid=mapper.uid,
        extra=mapper.extra,
        claim_rules=rules,
        user_rules=user_rules,
    )
    return complete_mapper, problems


def _issuer_errors(issuer: Issuer, path: Path, disallowed: Collection[str]) -> Iterator[FieldError]:
    if issuer.url:
        yield from _url_errors(issuer.url, path.child("url"), disallowed)
    else:
        yield errors.required(path.child("url"))
    if issuer.discovery_url:
        field_path = path.child("discoveryURL")
        if issuer.url and issuer.url.rstrip("/") == issuer.discovery_url.rstrip("/"):
            yield errors.invalid(field_path, issuer.discovery_url, "discoveryURL must be different from URL")
        yield from _url_errors(issuer.discovery_url, field_path, ())
    yield from _audience_errors(issuer, path)
    if issuer.certificate_authority and (problem := _authority_problem(issuer.certificate_authority)):
        yield errors.invalid(path.child("certificateAuthority"), "<omitted>", problem)
    if issuer.egress_selector_type:
        field_path = path.child("egressSelectorType")
        if issuer.egress_selector_type not in ("controlplane", "cluster"):
            detail = "egress selector must be either controlplane or cluster"
            yield errors.invalid(field_path, issuer.egress_selector_type, detail)
        else:
            yield errors.invalid(field_path, issuer.egress_selector_type, "egress selectors are not built")


def _url_errors(url: str, path: Path, disallowed: Collection[str]) -> Iterator[FieldError]:
    if url in disallowed:
        issuers = f"[{' '.join(sorted(disallowed))}]"
        yield errors.invalid(path, url, f"URL must not overlap with disallowed issuers: {issuers}")
    if (problem := request_uri_problem(url.partition("#")[0])) and not problem.endswith(_INVALID_URI):
        yield errors.invalid(path, url, problem)
        return
    parts = urlsplit(url)
    if parts.scheme != "https":
        yield errors.invalid(path, url, "URL scheme must be https")
    if "@" in parts.netloc:
        yield errors.invalid(path, url, "URL must not contain a username or password")
    if parts.query:
        yield errors.invalid(path, url, "URL must not contain a query")
    if parts.fragment:
        yield errors.invalid(path, url, "URL must not contain a fragment")


def _audience_errors(issuer: Issuer, path: Path) -> Iterator[FieldError]:
    field_path, policy = path.child("audiences"), issuer.audience_match_policy
    if not issuer.audiences:
        yield errors.required(field_path, f"at least one {field_path} is required")
        return
    for index, audience in enumerate(issuer.audiences):
        if not audience:
            yield errors.required(field_path.index(index))
        if audience in issuer.audiences[:index]:
            yield errors.duplicate(field_path.index(index), audience)
    field_path = path.child("audienceMatchPolicy")
    if len(issuer.audiences) > 1 and policy != "MatchAny":
        yield errors.invalid(
            field_path, policy, "audienceMatchPolicy must be MatchAny for multiple audiences"
        )
    if len(issuer.audiences) == 1 and policy not in ("", "MatchAny"):
        detail = "audienceMatchPolicy must be empty or MatchAny for single audience"
        yield errors.invalid(field_path, policy, detail)


def _authority_problem(text: str) -> str:
    if "-----BEGIN CERTIFICATE-----" not in text:
        return "data does not contain any valid RSA or ECDSA certificates"
    try:
        load_pem_x509_certificates(text.encode())
    except ValueError:
        return "data does not contain any valid RSA or ECDSA certificates"
    return ""


def _compile_claim_rules(
    rules: Sequence[ClaimValidationRule], path: Path, problems: list[FieldError]
) -> Sequence[MapperExpression]:
    all_rules, claims, expressions = list[MapperExpression](), set[str](), set[str]()
    for index, rule in enumerate(rules):
        rule_path = path.index(index)
        if rule.claim and rule.expression:
            problems.append(errors.invalid(rule_path, rule.claim, _BOTH))
        elif not rule.claim and not rule.expression:
            problems.append(errors.required(rule_path, _NEITHER))
        elif rule.claim:
            if rule.message:
                detail = "may not be specified when claim is set"
                problems.append(errors.invalid(rule_path.child("message"), rule.message, detail))
            if rule.claim in claims:
                problems.append(errors.duplicate(rule_path.child("claim"), rule.claim))
            claims.add(rule.claim)
        else:
            if rule.required_value:
                detail = "may not be specified when expression is set"
                problems.append(errors.invalid(rule_path.child("requiredValue"), rule.required_value, detail))
            if rule.expression in expressions:
                problems.append(errors.duplicate(rule_path.child("expression"), rule.expression))
                continue
            expressions.add(rule.expression)
            compiled_rules = _compile_rule(
                rule.expression, CLAIMS, rule_path.child("expression"), problems, message=rule.message
            )
            all_rules += compiled_rules
    return all_rules


def _compile_rule(
    text: str,
    variable: str,
    path: Path,
    problems: list[FieldError],
    *,
    message: str | None = None,
    name: str = "",
) -> Sequence[MapperExpression]:
    """Return the compiled expression, or nothing if it is invalid; an expression with a message is a condition."""
    try:
        compiled = compile_expression(text, variable, is_condition=message is not None)
    except BadExpression as error:
        problems.append(error.field_error(path, text))
        return ()
    return (MapperExpression(text, compiled, name=name, message=message or ""),)


def _compile_mappings(
    mappings: ClaimMappings, path: Path, rules: Sequence[MapperExpression], problems: list[FieldError]
) -> Mapper:
    username = _prefixed_rules(mappings.username, path.child("username"), problems, is_required=True)
    groups = _prefixed_rules(mappings.groups, path.child("groups"), problems, is_required=False)
    uid = _compile_uid(mappings.uid, path.child("uid"), problems)
    extra = _compile_extra(mappings.extra, path.child("extra"), problems)
    if selects(username, "email") and not selects((*username, *extra, *rules), "email_verified"):
        field_path = path.child("username", "expression")
        problems.append(errors.invalid(field_path, mappings.username.expression, _EMAIL))
    return Mapper(
        username=next(iter(username), None),
        groups=next(iter(groups), None),
        uid=next(iter(uid), None),
        extra=extra,
    )


def _prefixed_rules(
    mapping: PrefixedClaimOrExpression, path: Path, problems: list[FieldError], *, is_required: bool
) -> Sequence[MapperExpression]:
    if mapping.expression and mapping.claim:
        problems.append(errors.invalid(path, "", _BOTH))
    elif mapping.expression:
        if mapping.prefix is not None:
            detail = "may not be specified when expression is set"
            problems.append(errors.invalid(path.child("prefix"), mapping.prefix, detail))
        rule = _compile_rule(mapping.expression, CLAIMS, path.child("expression"), problems)
        return rule if mapping.prefix is None else ()
    elif mapping.claim:
        if mapping.prefix is None:
            problems.append(errors.required(path.child("prefix"), _PREFIX))
    elif is_required:
        problems.append(errors.required(path, _NEITHER))
    return ()


def _compile_uid(
    mapping: ClaimOrExpression, path: Path, problems: list[FieldError]
) -> Sequence[MapperExpression]:
    if mapping.claim and mapping.expression:
        problems.append(errors.invalid(path, "", _BOTH))
    elif mapping.expression:
        return _compile_rule(mapping.expression, CLAIMS, path.child("expression"), problems)
    return ()


def _compile_extra(
    mappings: Sequence[ExtraMapping], path: Path, problems: list[FieldError]
) -> Sequence[MapperExpression]:
    extra_rules, keys = list[MapperExpression](), set[str]()
    for index, mapping in enumerate(mappings):
        mapping_path, key = path.index(index), mapping.key
        problems += _key_problems(key, mapping_path.child("key"))
        if key in keys:
            problems.append(errors.duplicate(mapping_path.child("key"), key))
            continue
        keys.add(key)
        if not mapping.value_expression:
            problems.append(errors.required(mapping_path.child("valueExpression")))
            continue
        extra_rules += _compile_rule(
            mapping.value_expression, CLAIMS, mapping_path.child("valueExpression"), problems, name=key
        )
    return extra_rules


def _key_problems(key: str, path: Path) -> Iterator[FieldError]:
    domain, slash, rest = key.partition("/")
    if not key:
        yield errors.required(path)
    elif not (domain and rest):
        yield errors.invalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        for problem in names.check_dns1123_subdomain(domain):
            yield errors.invalid(path, domain, problem)
        for problem in names.check_http_path(rest):
            yield errors.invalid(path, rest, problem)
    if key != key.lower():
        yield errors.invalid(path, key, "must be lowercase")
    if slash and f".{domain}".endswith((".kubernetes.io", ".k8s.io")):
        yield errors.invalid(path, key, _RESERVED)


def _compile_user_rules(
    rules: Sequence[UserValidationRule], path: Path, problems: list[FieldError]
) -> Sequence[MapperExpression]:
    user_rules, expressions = list[MapperExpression](), set[str]()
    for index, rule in enumerate(rules):
        field_path = path.index(index).child("expression")
        if not rule.expression:
            problems.append(errors.required(field_path))
        elif rule.expression in expressions:
            problems.append(errors.duplicate(field_path, rule.expression))
        else:
            expressions.add(rule.expression)
            user_rules += _compile_rule(rule.expression, USER, field_path, problems, message=rule.message)
    return user_rules
