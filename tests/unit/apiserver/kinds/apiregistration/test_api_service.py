"""The status of a new APIService."""

from mockube.apiserver.kinds.apiregistration import api_service
from tests.support.server.requests import NOW_TEXT, request


def test_local_api_service_is_available_at_once():
    local, remote = {"spec": {}, "status": {}}, {"spec": {"service": {"name": "s"}}, "status": {}}
    api_service.KIND.strategy.prepare_create(local, request())
    api_service.KIND.strategy.prepare_create(remote, request())
    (condition,) = local["status"]["conditions"]
    assert (condition["reason"], condition["lastTransitionTime"]) == ("Local", NOW_TEXT)
    assert remote["status"] == {}
