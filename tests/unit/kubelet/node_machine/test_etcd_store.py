"""etcdctl's requests to the store of the cluster, as its administrator."""

from ssl import SSLError
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from mockube.client.wire import NoResponse
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.kubelet.node_machine.etcd_store import EtcdStore


def store(exchange, administrator=("certificate", "key")):
    client = SimpleNamespace(exchange=exchange)
    context = SimpleNamespace(client=client, informers=Mock(), recorder=Mock(), shared={})
    return EtcdStore(context, Mock(), lambda: administrator, list)


@pytest.mark.parametrize(
    "error",
    [NoResponse("refused"), SSLError("key values mismatch"), ValueError("no PEM")],
    ids=["response", "key", "form"],
)
async def test_request_that_cannot_be_sent_is_a_failure_of_the_service(error):
    with pytest.raises(ServiceFailed, match=str(error.args[0])):
        await store(AsyncMock(side_effect=error)).check(7)


async def test_answer_that_is_an_error_is_its_message():
    answer = SimpleNamespace(status=410, body=b'{"message": "gone"}')
    with pytest.raises(ServiceFailed, match="gone"):
        await store(AsyncMock(return_value=answer)).check(7)


async def test_without_credentials_nothing_is_sent():
    exchange = AsyncMock()
    with pytest.raises(ServiceFailed, match="not known here"):
        await store(exchange, administrator=None).check(7)
    exchange.assert_not_called()
