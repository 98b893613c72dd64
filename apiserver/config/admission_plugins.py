"""The admission plugins of kube-apiserver, and the validation of the flags that enable and disable them."""

import re
from argparse import ArgumentTypeError
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.schema import minors
from mockube.apiserver.admission.configurations import SIMULATED_CHOICES, Configurations
from mockube.component_base.flags import Flag, choice

_NAMES: Final = """
    AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists LimitPodHardAntiAffinityTopology LimitRanger
    ServiceAccount NodeRestriction TaintNodesByCondition AlwaysPullImages ImagePolicyWebhook PodSecurity PodNodeSelector
    Priority DefaultTolerationSeconds PodTolerationRestriction EventRateLimit ExtendedResourceToleration
    DefaultStorageClass StorageObjectInUseProtection PodGroupProtection OwnerReferencesPermissionEnforcement
    PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest
    CertificateSubjectRestriction DefaultIngressClass DenyServiceExternalIPs PodTopologyLabels PodGroupWorkloadExists
    NodeDeclaredFeatureValidator JobValidation PodResizeValidator MutatingAdmissionPolicy MutatingAdmissionWebhook
    ValidatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota AlwaysDeny
"""
UPSTREAM: Final = tuple(_NAMES.split())
"""In the order in which they run."""
ADDED_IN: Final[Mapping[str, str]] = {
    "MutatingAdmissionPolicy": "1.32",
    "JobValidation": "1.36",
    "NodeDeclaredFeatureValidator": "1.35",
    "PodGroupProtection": "1.36",
    "PodGroupWorkloadExists": "1.36",
    "PodResizeValidator": "1.36",
    "PodTopologyLabels": "1.33",
}
"""The first minor whose flags accept a plugin."""
REMOVED_IN: Final[Mapping[str, str]] = {"JobValidation": "1.37", "PodGroupWorkloadExists": "1.37"}
"""The first minor whose flags no longer accept a plugin."""


def problem(enabled: Sequence[str], disabled: Collection[str], minor: str = minors.NEWEST) -> str:
    """Return what is wrong with these enabled and disabled plugins; "" if nothing is."""
    for flag, names in (("enable", enabled), ("disable", disabled)):
        for name in names:
            if name not in UPSTREAM or not _is_known(name, minor):
                return f"{flag}-admission-plugins plugin {quote(name)} is unknown"
    both = sorted(set(enabled) & set(disabled))
    if both:
        plugin_names = " ".join(both)
        return f"[{plugin_names}] in enable-admission-plugins and disable-admission-plugins overlapped"
    return ""


def _is_known(name: str, minor: str) -> bool:
    if minors.is_before(minor, ADDED_IN.get(name, minor)):
        return False
    return name not in REMOVED_IN or minors.is_before(minor, REMOVED_IN[name])


def configuration_problem(enabled: Collection[str], configurations: Configurations) -> str:
    """Return what is wrong with the configuration of enabled plugins; "" if nothing is."""
    if "ImagePolicyWebhook" in enabled and configurations.image_policy is None:
        return 'failed to initialize admission: couldn\'t init admission plugin "ImagePolicyWebhook": no config specified'
    return ""


def service_addresses(text: str) -> tuple[tuple[str, tuple[str, int]], ...]:
    """Parse the addresses of Services, such as `default/hooks=127.0.0.1:9443,other/hooks=[::1]:9444`."""
    return tuple(_service_address(part) for part in text.split(",") if part)


def _service_address(text: str) -> tuple[str, tuple[str, int]]:
    match = _SERVICE.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        raise ArgumentTypeError(f"{quote(text)} is invalid, expected NAMESPACE/NAME=HOST:PORT")
    return match["service"], (match["host"].strip("[]"), int(match["port"]))


_SERVICE: Final = re.compile(
    r"(?P<service>[a-z0-9.-]+/[a-z0-9.-]+)=(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]/]+):(?P<port>[0-9]{1,5})"
)


SIMULATED_WEBHOOKS: Final = Flag(
    "for a webhook whose Service leads to simulated pods only: allow the write with a warning, or refuse it as "
    "its failurePolicy says (allow)",
    choice(*SIMULATED_CHOICES),
)
