"""The controllers of OpenKruise with the roles of the pack only: no request of them is forbidden."""

import pytest

from tests.support.controllers.forbidden_requests import CLAIMS, LABELS, SPEC, forbidden_requests

ORDERED = {
    "metadata": {"labels": LABELS, "annotations": {"apps.kruise.io/container-launch-priority": "Ordered"}},
    "spec": {"containers": [{"name": "first", "image": "x"}, {"name": "second", "image": "x"}]},
}
WORKLOADS = {
    "/apis/apps/v1/namespaces/a/deployments": SPEC,
    "/apis/apps/v1/namespaces/b/statefulsets": SPEC | {"serviceName": "web"},
    "/apis/apps.kruise.io/v1alpha1/namespaces/c/clonesets": SPEC | {"volumeClaimTemplates": CLAIMS},
    "/apis/apps.kruise.io/v1beta1/namespaces/d/statefulsets": SPEC | {"serviceName": "web"},
    "/apis/apps/v1/namespaces/e/deployments": SPEC | {"template": ORDERED},
}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_no_request_of_manager_is_forbidden(tmp_path):
    assert await forbidden_requests(tmp_path, WORKLOADS, "--packs=kruise") == []
