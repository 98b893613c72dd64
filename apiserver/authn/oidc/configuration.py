"""The records of an AuthenticationConfiguration."""

from collections.abc import Sequence

from msgspec import field

from mockube.component_base.configuration_files import Record


class Issuer(Record, frozen=True, kw_only=True):
    url: str = ""
    discovery_url: str = field(default="", name="discoveryURL")
    certificate_authority: str = ""
    audiences: tuple[str, ...] = ()
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class ClaimValidationRule(Record, frozen=True, kw_only=True):
    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class PrefixedClaimOrExpression(Record, frozen=True, kw_only=True):
    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class ClaimOrExpression(Record, frozen=True, kw_only=True):
    claim: str = ""
    expression: str = ""


class ExtraMapping(Record, frozen=True, kw_only=True):
    key: str = ""
    value_expression: str = ""


class ClaimMappings(Record, frozen=True, kw_only=True):
    username: PrefixedClaimOrExpression = PrefixedClaimOrExpression()
    groups: PrefixedClaimOrExpression = PrefixedClaimOrExpression()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: tuple[ExtraMapping, ...] = ()


class UserValidationRule(Record, frozen=True, kw_only=True):
    expression: str = ""
    message: str = ""


class JWTAuthenticator(Record, frozen=True, kw_only=True):
    issuer: Issuer = Issuer()
    claim_validation_rules: tuple[ClaimValidationRule, ...] = ()
    claim_mappings: ClaimMappings = ClaimMappings()
    user_validation_rules: tuple[UserValidationRule, ...] = ()


class AnonymousCondition(Record, frozen=True, kw_only=True):
    path: str = ""


class AnonymousAuthConfig(Record, frozen=True, kw_only=True):
    enabled: bool = False
    conditions: tuple[AnonymousCondition, ...] = ()


class AuthenticationConfiguration(Record, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    jwt: tuple[JWTAuthenticator, ...] = ()
    anonymous: AnonymousAuthConfig | None = None


def required_claims(rules: Sequence[ClaimValidationRule]) -> dict[str, str]:
    return {rule.claim: rule.required_value for rule in rules if rule.claim}
