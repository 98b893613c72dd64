"""Hashes in discovery documents equal those of a real kube-apiserver 1.37.2."""

import pytest

from mockube.apiserver.discovery import aggregated, legacy
from mockube.apiserver.kinds.built_in_kinds import GROUPS

BY_NAME = {group.name: group for group in GROUPS}
CORE = (
    "4D7E1BED90B364BC86049DD9E636494980AEF65B7F8CFAA267616FA062B514A8"
    "A3CC2C2851CC9337B8D28B4C80960E2353DE5E0B152E87CC223E02EA3C5C37AC"
)


def test_etag_is_hash_of_list_without_kind():
    assert aggregated.etag(aggregated.discovery_items([BY_NAME[""]])) == f'"{CORE}"'


@pytest.mark.parametrize(
    ("group", "version", "name", "digest"),
    [
        ("apps", "v1", "deployments", "8aSe+NMegvE="),
        ("events.k8s.io", "v1", "events", "r2yiGXH7wu8="),
        ("autoscaling", "v1", "horizontalpodautoscalers", "qwQve8ut294="),
        ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "mHCkTKpUTrE="),
        ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "ZKgZT1uTmZ0="),
        ("certificates.k8s.io", "v1", "clustertrustbundles", "v5yhuVertL4="),
        ("certificates.k8s.io", "v1", "podcertificaterequests", "wYA9yXQH8fg="),
        ("resource.k8s.io", "v1", "devicetaintrules", "i+85+TcIKpA="),
        ("storagemigration.k8s.io", "v1", "storageversionmigrations", "pCjmmKOkLy4="),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "jfWCUB31mvA="),
    ],
)
def test_storage_version_hash_is_upstreams(group, version, name, digest):
    listed = legacy.resource_list(BY_NAME[group], version)["resources"]
    assert next(entry for entry in listed if entry["name"] == name)["storageVersionHash"] == digest
