"""The flags of authorization: modes, their webhook and policies, or a file with an AuthorizationConfiguration."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from mockube.apiserver.authz.rights import DEFAULT_MODES
from mockube.component_base.configuration_files import ConfigurationError
from mockube.component_base.flags import Flag, comma_separated, seconds

from .files import FileProblem, from_flag
from .upstream import AUTHORIZATION_MODES

if TYPE_CHECKING:
    from mockube.apiserver.authz.abac import ABAC
    from mockube.apiserver.authz.configuration import AuthorizationConfiguration
    from mockube.apiserver.authz.configured_authorizers import AuthorizationSettings


class AuthorizationFile(Struct, frozen=True, kw_only=True):
    """The content of `--authorization-config`; `path` is None if the flag is not set."""

    path: Path | None = None
    data: bytes = b""
    configuration: "AuthorizationConfiguration | None" = None


NO_FILE: Final = AuthorizationFile()


def authorization_configuration(text: str) -> AuthorizationFile:
    return from_flag(_read, text)


def _read(path: Path) -> AuthorizationFile:
    from mockube.apiserver.authz.configuration import read_configuration  # noqa: PLC0415 - few need it

    data = path.read_bytes()
    try:
        return AuthorizationFile(path=path, data=data, configuration=read_configuration(data))
    except ConfigurationError as error:
        raise FileProblem(str(error)) from error


def policy_file(text: str) -> "ABAC":
    """Read the file that a flag names."""
    from mockube.apiserver.authz.abac import read_policies  # noqa: PLC0415 - few need it

    def read(path: Path) -> "ABAC":
        try:
            return read_policies(path)
        except ConfigurationError as error:
            raise FileProblem(str(error)) from error

    return from_flag(read, text)


class AuthorizationOptions(Struct, frozen=True, kw_only=True):
    """Authorization"""

    authorization_mode: Annotated[
        tuple[str, ...],
        Flag(
            "authorizers, in order: Node, RBAC, ABAC, Webhook, AlwaysDeny; AlwaysAllow only for a "
            "server on a loopback address (Node,RBAC)",
            comma_separated,
            repeats=True,
        ),
    ] = DEFAULT_MODES
    authorization_config: Annotated[
        AuthorizationFile,
        Flag(
            "file with an AuthorizationConfiguration: authorizers and their webhooks (none)",
            authorization_configuration,
            metavar="FILE",
        ),
    ] = NO_FILE
    authorization_policy_file: Annotated[
        Any,
        Flag(
            "file with the policies of mode ABAC, a line of JSON for each (none)", policy_file, metavar="FILE"
        ),
    ] = None
    authorization_webhook_config_file: Annotated[
        Path | None, Flag("kubeconfig of the webhook of mode Webhook (none)", Path)
    ] = None
    authorization_webhook_version: Annotated[str, Flag("version of its SubjectAccessReviews (v1beta1)")] = (
        "v1beta1"
    )
    authorization_webhook_cache_authorized_ttl: Annotated[
        float, Flag("how long allowed requests are cached (5m0s)", seconds)
    ] = 300.0
    authorization_webhook_cache_unauthorized_ttl: Annotated[
        float, Flag("how long denied requests are cached (30s)", seconds)
    ] = 30.0

    @property
    def types(self) -> tuple[str, ...]:
        """Return the types of the authorizers, in their order."""
        configuration = self.authorization_config.configuration
        return (
            self.authorization_mode
            if configuration is None
            else tuple(authorizer.type for authorizer in configuration.authorizers)
        )

    def has_flags(self) -> bool:
        """Return whether a flag is set that the file replaces."""
        default = AuthorizationOptions()
        names = [name for name in self.__struct_fields__ if name.startswith("authorization_webhook")]
        return any(getattr(self, name) != getattr(default, name) for name in ("authorization_mode", *names))


def problem(settings: AuthorizationOptions) -> str:
    """Return upstream's message for invalid flags; "" if they are valid."""
    if settings.authorization_config.path is not None:
        if settings.has_flags():
            return (
                "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-*"
                " flags are defined"
            )
        return ""
    return _mode_problem(settings) or _webhook_problem(settings)


def _mode_problem(settings: AuthorizationOptions) -> str:
    modes, policies = settings.authorization_mode, settings.authorization_policy_file
    for mode in modes:
        if mode not in AUTHORIZATION_MODES:
            return f'authorization-mode "{mode}" is not a valid mode'
    if "ABAC" in modes and policies is None:
        return "authorization-mode ABAC's authorization policy file not passed"
    if policies is not None and "ABAC" not in modes:
        return "cannot specify --authorization-policy-file without mode ABAC"
    return ""


def _webhook_problem(settings: AuthorizationOptions) -> str:
    modes, version = settings.authorization_mode, settings.authorization_webhook_version
    if "Webhook" in modes and settings.authorization_webhook_config_file is None:
        return "authorization-mode Webhook's authorization config file not passed"
    if settings.authorization_webhook_config_file is not None and "Webhook" not in modes:
        return "cannot specify --authorization-webhook-config-file without mode Webhook"
    if version not in ("v1", "v1beta1"):
        return f'unsupported webhook authorizer version "{version}", supported versions are "v1", "v1beta1"'
    return ""


def authorization_settings(settings: AuthorizationOptions) -> "AuthorizationSettings | None":
    """Return the settings of authorizers from a file, a webhook or policies; None if the modes are sufficient."""
    file = settings.authorization_config
    is_plain = not {"ABAC", "Webhook"} & set(settings.authorization_mode)
    if file.configuration is None and is_plain:
        return None
    from mockube.apiserver.authz.configuration import from_modes  # noqa: PLC0415 - few need it
    from mockube.apiserver.authz.configured_authorizers import AuthorizationSettings  # noqa: PLC0415 - few need it

    policies = settings.authorization_policy_file
    if file.configuration is not None:
        return AuthorizationSettings(
            configuration=file.configuration, data=file.data, path=file.path, policies=policies
        )
    configuration = from_modes(settings.authorization_mode, _webhook(settings))
    return AuthorizationSettings(configuration=configuration, policies=policies)


def _webhook(settings: AuthorizationOptions) -> Mapping[str, Any]:
    allowed = settings.authorization_webhook_cache_authorized_ttl
    refused = settings.authorization_webhook_cache_unauthorized_ttl
    file = settings.authorization_webhook_config_file
    return {
        "authorizedTTL": f"{allowed}s",
        "cacheAuthorizedRequests": bool(allowed),
        "unauthorizedTTL": f"{refused}s",
        "cacheUnauthorizedRequests": bool(refused),
        "timeout": "30s",
        "failurePolicy": "NoOpinion",
        "subjectAccessReviewVersion": settings.authorization_webhook_version,
        "connectionInfo": {
            "type": "KubeConfigFile",
            "kubeConfigFile": "" if file is None else str(file.absolute()),
        },
    }
