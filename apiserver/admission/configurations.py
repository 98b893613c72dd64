"""What flags and `--admission-control-config-file` set of the plugins: records, without the plugins.

The command line reads them, and imports no kind and no plugin for them, which would double what `mockube up` imports.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.outgoing import KubeconfigEndpoint

from .podsecurity.policy import NO_POLICY, PodSecurityLevels

ALLOW: Final = "allow"
SIMULATED_CHOICES: Final = ("refuse", ALLOW)
"""What happens to a write whose webhook is a simulated pod."""

EVENT_CACHE_SIZE: Final = 4096
ALL_EVENTS: Final = "Server"
EVENT_LIMIT_TYPES: Final = (ALL_EVENTS, "Namespace", "User", "SourceAndObject")

Toleration = Mapping[str, Any]


class PodSecurityExemptions(Struct, frozen=True, kw_only=True):
    usernames: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    runtime_classes: Sequence[str] = ()


class PodSecurityConfiguration(Struct, frozen=True, kw_only=True):
    defaults: PodSecurityLevels = NO_POLICY
    exemptions: PodSecurityExemptions = field(default_factory=PodSecurityExemptions)


class TolerationConfiguration(Struct, frozen=True, kw_only=True):
    """The tolerations for namespaces without the annotation."""

    default: Sequence[Toleration] = ()
    whitelist: Sequence[Toleration] = ()


class EventLimit(Struct, frozen=True, kw_only=True):
    type: str
    qps: int
    burst: int
    cache_size: int = EVENT_CACHE_SIZE
    """The number of keys whose rates are stored."""


class ImagePolicySettings(Struct, frozen=True, kw_only=True):
    endpoint: KubeconfigEndpoint
    allow_seconds: float
    """0: allowed images are not cached."""
    deny_seconds: float
    retry_seconds: float
    default_allow: bool


class LimitedResource(Struct, frozen=True, kw_only=True):
    """A resource that may be used only if a quota counts it, by the configuration of the plugin."""

    resource: GroupResource
    contains: Sequence[str] = ()
    """Substrings of the quota resources that are limited."""
    scopes: Sequence[ReadOnlyTree] = ()
    """Requirements, for objects of any resource."""


class Configurations(Struct, frozen=True, kw_only=True):
    """The plugins' configurations of `--admission-control-config-file`."""

    pod_security: PodSecurityConfiguration = field(default_factory=PodSecurityConfiguration)
    tolerations: TolerationConfiguration = field(default_factory=TolerationConfiguration)
    node_selectors: Mapping[str, str] = field(default_factory=dict)
    event_limits: Sequence[EventLimit] = ()
    image_policy: ImagePolicySettings | None = None
    limited_resources: Sequence[LimitedResource] = ()


NO_CONFIGURATIONS: Final = Configurations()
