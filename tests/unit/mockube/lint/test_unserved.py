"""Why a minor does not serve a version of a kind."""

import pytest

from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.lint.findings import Outcome
from mockube.lint.minor_ranges import ALL
from mockube.lint.unserved import removals, unserved


@pytest.mark.parametrize(
    ("api_version", "kind", "minor", "outcome", "reason"),
    [
        ("batch/v1beta1", "CronJob", "1.37", Outcome.REMOVED, "removed in 1.25, use batch/v1"),
        ("events.k8s.io/v1beta1", "Event", "1.37", Outcome.REMOVED, "removed in 1.25, use events.k8s.io/v1"),
        (
            "extensions/v1beta1",
            "Ingress",
            "1.29",
            Outcome.REMOVED,
            "removed in 1.22, use networking.k8s.io/v1",
        ),
        (
            "policy/v1beta1",
            "PodSecurityPolicy",
            "1.30",
            Outcome.REMOVED,
            "removed in 1.25, use Pod Security admission, which labels of namespaces configure",
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1beta3",
            "FlowSchema",
            "1.32",
            Outcome.REMOVED,
            "removed in 1.32, use flowcontrol.apiserver.k8s.io/v1",
        ),
        ("resource.k8s.io/v1", "DeviceClass", "1.33", Outcome.NOT_YET, "new in 1.34"),
        (
            "networking.k8s.io/v1beta1",
            "ServiceCIDR",
            "1.33",
            Outcome.DISABLED,
            "served only with --runtime-config=networking.k8s.io/v1beta1=true, use networking.k8s.io/v1",
        ),
        (
            "networking.k8s.io/v1beta1",
            "ServiceCIDR",
            "1.37",
            Outcome.REMOVED,
            "removed in 1.37, use networking.k8s.io/v1",
        ),
        (
            "apps/v1",
            "Deploymnet",
            "1.37",
            Outcome.UNKNOWN,
            "Kubernetes has no such kind: did you mean Deployment?",
        ),
        ("v1", "Deployment", "1.37", Outcome.UNKNOWN, "Kubernetes has no such kind: did you mean apps/v1?"),
        ("v1", "Whatever", "1.37", Outcome.UNKNOWN, "Kubernetes has no such kind"),
        (
            "example.com/v1",
            "Website",
            "1.37",
            Outcome.UNKNOWN,
            "no CustomResourceDefinition of it is in the files",
        ),
    ],
)
def test_reason_names_removal_addition_or_replacement(api_version, kind, minor, outcome, reason):
    finding = unserved(api_version, kind, minor)
    assert finding.outcome is outcome
    assert finding.message == f'no matches for kind "{kind}" in version "{api_version}": {reason}'


def test_replacement_of_removed_api_is_served():
    replacement = unserved("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.29").replacement
    assert str(replacement) == "autoscaling/v2 HorizontalPodAutoscaler"


def test_apis_of_table_are_served_by_no_minor():
    rows = {
        (row.api_version, row.kind)
        for minor in ALL
        for kind in kinds_of(minor).all
        for row in [kind.resource]
    }
    assert rows.isdisjoint(removals())
