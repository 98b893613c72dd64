"""The controller manager with the rights of its roles only: no request of it is forbidden."""

import pytest

from tests.support.controllers.forbidden_requests import CLAIMS, SPEC, forbidden_requests

WORKLOADS = {
    "/apis/apps/v1/namespaces/a/deployments": SPEC,
    "/apis/apps/v1/namespaces/b/statefulsets": SPEC | {"serviceName": "web", "volumeClaimTemplates": CLAIMS},
}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_no_request_of_manager_is_forbidden(tmp_path):
    assert await forbidden_requests(tmp_path, WORKLOADS) == []
