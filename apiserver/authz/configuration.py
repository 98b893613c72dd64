"""An AuthorizationConfiguration: the authorizers in their order, read from a file and validated."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Final

from msgspec import field

from mockube.apimachinery import errors, names
from mockube.apimachinery.durations import DurationError, format_duration, parse_duration
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.component_base.configuration_files import ConfigurationError, Record, decode

from .conditions import Conditions, compile_conditions

MODES: Final = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
WEBHOOK: Final = "Webhook"
DENY, ABSTAIN = "Deny", "NoOpinion"
SECOND: Final = 1_000_000_000
_FILES: Final = frozenset(
    (f"apiserver.config.k8s.io/{version}", "AuthorizationConfiguration")
    for version in ("v1", "v1beta1", "v1alpha1")
)


class WebhookConnectionInfo(Record, frozen=True, kw_only=True):
    type: str = ""
    kube_config_file: str | None = None


class WebhookMatchCondition(Record, frozen=True, kw_only=True):
    expression: str = ""


class WebhookConfiguration(Record, frozen=True, kw_only=True):
    authorized_ttl: str = field(default="", name="authorizedTTL")
    cache_authorized_requests: bool = True
    unauthorized_ttl: str = field(default="", name="unauthorizedTTL")
    cache_unauthorized_requests: bool = True
    timeout: str = ""
    subject_access_review_version: str = ""
    match_condition_subject_access_review_version: str = ""
    failure_policy: str = ""
    connection_info: WebhookConnectionInfo = WebhookConnectionInfo()
    match_conditions: tuple[WebhookMatchCondition, ...] = ()

    @property
    def allow_nanoseconds(self) -> int:
        """Return the nanoseconds for which an allowed request is cached, with upstream's default."""
        return _nanoseconds(self.authorized_ttl) or 300 * SECOND

    @property
    def seconds(self) -> float:
        """Return the timeout of a call."""
        return _nanoseconds(self.timeout) / SECOND

    @property
    def deny_nanoseconds(self) -> int:
        return _nanoseconds(self.unauthorized_ttl) or 30 * SECOND


class AuthorizerConfiguration(Record, frozen=True, kw_only=True):
    type: str = ""
    name: str = ""
    webhook: WebhookConfiguration | None = None


class AuthorizationConfiguration(Record, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    authorizers: tuple[AuthorizerConfiguration, ...] = ()


def _nanoseconds(text: str) -> int:
    try:
        return parse_duration(text) if text else 0
    except DurationError as error:
        raise ConfigurationError(str(error)) from error


def from_modes(modes: Sequence[str], webhook: Mapping[str, Any]) -> AuthorizationConfiguration:
    """Return the configuration that `--authorization-mode` and its related flags describe."""
    authorizers = [
        {"type": mode, "name": "default" if mode == WEBHOOK else mode.lower()}
        | ({"webhook": webhook} if mode == WEBHOOK else {})
        for mode in modes
    ]
    configuration: AuthorizationConfiguration = decode(
        {"authorizers": authorizers}, AuthorizationConfiguration
    )
    return configuration


def read_configuration(data: bytes, required: Collection[str] = ()) -> AuthorizationConfiguration:
    """Return the configuration in a file, or raise ConfigurationError; a reloaded file must have the `required` types."""
    try:
        configuration = _decode_configuration(data)
    except (YamlError, ConfigurationError) as error:
        raise ConfigurationError(f"failed to load AuthorizationConfiguration from file: {error}") from error
    if problems := [*validate(configuration)]:
        raise ConfigurationError(errors.aggregate(problems))
    wrong = [
        f"expected name {authorizer.type.lower()} for authorizer {authorizer.type} instead of {authorizer.name}"
        for authorizer in configuration.authorizers
        if authorizer.type != WEBHOOK and authorizer.name != authorizer.type.lower()
    ]
    if missing := sorted(set(required) - {authorizer.type for authorizer in configuration.authorizers}):
        wrong.append(f"missing required types: [{' '.join(missing)}]")
    if wrong:
        raise ConfigurationError(errors.aggregate(wrong))
    return configuration


def _decode_configuration(data: bytes) -> AuthorizationConfiguration:
    tree = load(data).tree if data else {}
    if data and not (isinstance(tree, dict) and (tree.get("apiVersion"), tree.get("kind")) in _FILES):
        raise ConfigurationError("expected AuthorizationConfiguration of apiserver.config.k8s.io/v1")
    configuration: AuthorizationConfiguration = decode(tree, AuthorizationConfiguration)
    for authorizer in configuration.authorizers:
        if authorizer.webhook is not None:
            _ = (
                authorizer.webhook.allow_nanoseconds,
                authorizer.webhook.deny_nanoseconds,
                authorizer.webhook.seconds,
            )
    return configuration


def validate(configuration: AuthorizationConfiguration) -> Iterator[FieldError]:
    root = Path().child("authorizers")
    if not configuration.authorizers:
        yield errors.required(root, "at least one authorization mode must be defined")
    types, seen = set[str](), set[str]()
    for index, authorizer in enumerate(configuration.authorizers):
        path = root.index(index)
        if not authorizer.type:
            yield errors.required(path.child("type"))
        elif authorizer.type not in MODES:
            yield errors.not_supported(path.child("type"), authorizer.type, MODES)
        elif authorizer.type in types and authorizer.type != WEBHOOK:
            yield errors.duplicate(path.child("type"), authorizer.type)
        else:
            types.add(authorizer.type)
            yield from _name(authorizer.name, seen, path.child("name"))
            seen.add(authorizer.name)
            if authorizer.type != WEBHOOK:
                if authorizer.webhook is not None:
                    detail = "may only be specified when type=Webhook"
                    yield errors.invalid(path.child("webhook"), "non-null", detail)
            elif authorizer.webhook is None:
                yield errors.required(path.child("webhook"), "required when type=Webhook")
            else:
                yield from _webhook(authorizer.webhook, path)


def _name(name: str, seen: Collection[str], path: Path) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path)
    elif name in seen:
        yield errors.duplicate(path, name)
    elif problems := names.check_dns1123_subdomain(name):
        yield errors.invalid(path, name, f"authorizer name is invalid: {', '.join(problems)}")


def _webhook(webhook: WebhookConfiguration, path: Path) -> Iterator[FieldError]:
    timeout = _nanoseconds(webhook.timeout)
    if not timeout:
        yield errors.required(path.child("timeout"))
    elif not 0 < timeout <= 30 * SECOND:
        yield errors.invalid(path.child("timeout"), format_duration(timeout), "must be > 0s and <= 30s")
    for name, span in (
        ("authorizedTTL", webhook.allow_nanoseconds),
        ("unauthorizedTTL", webhook.deny_nanoseconds),
    ):
        if span < 0:
            yield errors.invalid(path.child(name), format_duration(span), "must be > 0s")
    yield from _versions(webhook, path)
    field_path = path.child("failurePolicy")
    if not webhook.failure_policy:
        yield errors.required(field_path)
    elif webhook.failure_policy not in (ABSTAIN, DENY):
        yield errors.not_supported(field_path, webhook.failure_policy, (ABSTAIN, DENY))
    yield from _connection(webhook.connection_info, path.child("connectionInfo"))
    _, problems = compile_conditions([condition.expression for condition in webhook.match_conditions], path)
    yield from problems


def _versions(webhook: WebhookConfiguration, path: Path) -> Iterator[FieldError]:
    version, field_path = webhook.subject_access_review_version, path.child("subjectAccessReviewVersion")
    if not version:
        yield errors.required(field_path)
    elif version not in ("v1", "v1beta1"):
        yield errors.not_supported(field_path, version, ("v1", "v1beta1"))
    version = webhook.match_condition_subject_access_review_version
    field_path = path.child("matchConditionSubjectAccessReviewVersion")
    if not version and webhook.match_conditions:
        yield errors.required(field_path, "required if match conditions are specified")
    elif version not in ("", "v1"):
        yield errors.not_supported(field_path, version, ("v1",))


def _connection(info: WebhookConnectionInfo, path: Path) -> Iterator[FieldError]:
    file, field_path = info.kube_config_file, path.child("kubeConfigFile")
    match info.type:
        case "":
            yield errors.required(path.child("type"))
        case "InClusterConfig":
            if file is not None:
                yield errors.invalid(field_path, file, "can only be set when type=KubeConfigFile")
            yield errors.invalid(
                path.child("type"), info.type, "connections from within a cluster are not built"
            )
        case "KubeConfigFile":
            yield from _file(file or "", field_path)
        case _:
            supported = ("InClusterConfig", "KubeConfigFile")
            value = {"Type": info.type, "KubeConfigFile": file}
            yield errors.not_supported(path.child("type"), value, supported)


def _file(name: str, path: Path) -> Iterator[FieldError]:
    file = FilePath(name)
    if not name:
        yield errors.required(path)
    elif not file.is_absolute():
        yield errors.invalid(path, name, "must be an absolute path")
    elif not file.exists():
        yield errors.invalid(path, name, f"error loading file: stat {name}: no such file or directory")
    elif not file.is_file():
        yield errors.invalid(path, name, "must be a regular file")


def conditions_of(webhook: WebhookConfiguration) -> Conditions | None:
    """Return the compiled match conditions of a webhook that was validated."""
    return compile_conditions([condition.expression for condition in webhook.match_conditions], Path())[0]
