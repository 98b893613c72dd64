"""The flag `--authentication-config` and the `--oidc-*` flags, which are an alternative to a part of that file.

The modules for tokens of other issuers are imported only if one of these flags is set.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from mockube.apimachinery import errors
from mockube.apimachinery.paths import Path as FieldPath
from mockube.component_base.flags import Flag, comma_separated
from mockube.component_base.operating_system import os_problem

from .files import FileProblem, from_flag

if TYPE_CHECKING:
    from mockube.apiserver.authn.oidc.authenticators import JWTSettings
    from mockube.apiserver.authn.oidc.configuration import AuthenticationConfiguration


class AuthenticationFile(Struct, frozen=True, kw_only=True):
    """The content of `--authentication-config`; `path` is None if the flag is not set."""

    path: Path | None = None
    data: bytes = b""
    configuration: "AuthenticationConfiguration | None" = None

    @property
    def anonymous(self) -> bool | None:
        """Whether anonymous requests are allowed; None if the file does not set it."""
        section = self.configuration.anonymous if self.configuration is not None else None
        return None if section is None else section.enabled

    @property
    def anonymous_paths(self) -> Collection[str]:
        """The only paths of anonymous requests; empty for all paths."""
        section = self.configuration.anonymous if self.configuration is not None else None
        return frozenset(condition.path for condition in section.conditions) if section is not None else ()


NO_FILE: Final = AuthenticationFile()


def authentication_configuration(text: str) -> AuthenticationFile:
    """Read the file that a flag names."""
    return from_flag(read, text)


def read(path: Path) -> AuthenticationFile:
    from mockube.apiserver.authn.oidc.authenticators import read_configuration  # noqa: PLC0415 - see above
    from mockube.component_base.configuration_files import ConfigurationError  # noqa: PLC0415 - see above

    data = path.read_bytes()
    try:
        return AuthenticationFile(path=path, data=data, configuration=read_configuration(data))
    except ConfigurationError as error:
        raise FileProblem(str(error)) from error


def pair(text: str) -> tuple[tuple[str, str], ...]:
    """Parse KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals:
        raise FileProblem(f"malformed pair, expect string=string: {text}")
    return ((key.strip(), value.strip()),)


class OpenIDConnect(Struct, frozen=True, kw_only=True):
    """OpenID Connect"""

    oidc_issuer_url: Annotated[str, Flag("URL of the issuer (none)", metavar="URL")] = ""
    oidc_client_id: Annotated[
        str, Flag("client ID, which must be an audience of the tokens", metavar="ID")
    ] = ""
    oidc_ca_file: Annotated[Path | None, Flag("CA of the issuer's certificate (the machine's CAs)", Path)] = (
        None
    )
    oidc_username_claim: Annotated[str, Flag("claim with the user's name (sub)")] = "sub"
    oidc_username_prefix: Annotated[
        str, Flag("prefix of user names; -: none (the issuer and #, except for email)")
    ] = ""
    oidc_groups_claim: Annotated[str, Flag("claim with the user's groups (none)")] = ""
    oidc_groups_prefix: Annotated[str, Flag("prefix of group names (none)")] = ""
    oidc_signing_algs: Annotated[
        tuple[str, ...], Flag("accepted signature algorithms (RS256)", comma_separated, repeats=True)
    ] = ("RS256",)
    oidc_required_claim: Annotated[
        tuple[tuple[str, str], ...],
        Flag("required claims, as KEY=VALUE", pair, repeats=True, metavar="CLAIM"),
    ] = ()
    oidc_jwks_file: Annotated[
        tuple[tuple[str, str], ...],
        Flag(
            "local JSON Web Key Set of an issuer, as ISSUER=FILE, instead of its discovery",
            pair,
            repeats=True,
            metavar="FILE",
        ),
    ] = ()

    @property
    def is_set(self) -> bool:
        """Whether one of upstream's flags is set."""
        default = OpenIDConnect()
        names = [name for name in self.__struct_fields__ if name != "oidc_jwks_file"]
        return any(getattr(self, name) != getattr(default, name) for name in names)


def problem(file: AuthenticationFile, flags: OpenIDConnect, disallowed: Sequence[str]) -> str:
    """Return what is wrong with a file and flags together; "" if nothing is."""
    if file.path is not None and flags.is_set:
        return "authentication-config file and oidc-* flags are mutually exclusive"
    if flags.is_set and not (flags.oidc_issuer_url and flags.oidc_client_id):
        return "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
    if file.path is None and not flags.is_set:
        return ""
    from mockube.apiserver.authn.oidc.validation import validate  # noqa: PLC0415 - see above

    try:
        settings = jwt_settings(file, flags, disallowed)
    except OSError as error:
        return os_problem(error)
    assert settings is not None
    _, problems = validate(settings.configuration, ())
    if problems:
        return f"invalid authentication configuration: {errors.aggregate(problems)}"
    return _issuer_problem(settings, disallowed) or _algorithm_problem(flags.oidc_signing_algs)


def _issuer_problem(settings: "JWTSettings", disallowed: Sequence[str]) -> str:
    """Return what is wrong with an issuer that is the server itself, which upstream checks last."""
    from mockube.apiserver.authn.oidc.validation import validate_authenticator  # noqa: PLC0415 - see above

    for authenticator in settings.configuration.jwt:
        _, problems = validate_authenticator(authenticator, FieldPath(), disallowed)
        if problems:
            return errors.aggregate(problems)
    return ""


def _algorithm_problem(algorithms: Sequence[str]) -> str:
    from mockube.apiserver.authn.oidc.id_token import ALGORITHMS  # noqa: PLC0415 - see above

    wrong = [algorithm for algorithm in algorithms if algorithm not in ALGORITHMS]
    return f'oidc: unsupported signing alg: "{wrong[0]}"' if wrong else ""


def jwt_settings(
    file: AuthenticationFile, flags: OpenIDConnect, disallowed: Sequence[str]
) -> "JWTSettings | None":
    """Return the configuration of token issuers; None if only the server's own tokens are accepted."""
    if file.configuration is None and not flags.is_set:
        return None
    from mockube.apiserver.authn.oidc.authenticators import JWTSettings  # noqa: PLC0415 - see above
    from mockube.apiserver.authn.oidc.configuration import AuthenticationConfiguration  # noqa: PLC0415
    from mockube.component_base.configuration_files import decode  # noqa: PLC0415

    files = {issuer: Path(path) for issuer, path in flags.oidc_jwks_file}
    if file.configuration is not None:
        return JWTSettings(
            configuration=file.configuration,
            data=file.data,
            path=file.path,
            key_files=files,
            disallowed=disallowed,
        )
    return JWTSettings(
        configuration=decode({"jwt": [_authenticator(flags)]}, AuthenticationConfiguration),
        algorithms=flags.oidc_signing_algs,
        key_files=files,
        disallowed=disallowed,
    )


def _authenticator(flags: OpenIDConnect) -> Mapping[str, Any]:
    prefix = flags.oidc_username_prefix
    if not prefix and flags.oidc_username_claim != "email":
        prefix = f"{flags.oidc_issuer_url}#"
    mappings: dict[str, Any] = {
        "username": {"claim": flags.oidc_username_claim, "prefix": "" if prefix == "-" else prefix}
    }
    if flags.oidc_groups_claim:
        mappings["groups"] = {"claim": flags.oidc_groups_claim, "prefix": flags.oidc_groups_prefix}
    authority = "" if flags.oidc_ca_file is None else flags.oidc_ca_file.read_text()
    return {
        "issuer": {
            "url": flags.oidc_issuer_url,
            "audiences": [flags.oidc_client_id],
            "certificateAuthority": authority,
        },
        "claimMappings": mappings,
        "claimValidationRules": [
            {"claim": claim, "requiredValue": value}
            for claim, value in dict(flags.oidc_required_claim).items()
        ],
    }
