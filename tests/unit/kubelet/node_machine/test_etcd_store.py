"""etcdctl's requests to the store of the cluster, as its administrator."""

from ssl import SSLError
from types import SimpleNamespace

import pytest

from mockube.client.wire import NoResponse
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.kubelet.node_machine.etcd_store import EtcdStore


class Client:
    """Answers each request with a response, or with an error."""

    def __init__(self, answer=None):
        self.answer = answer
        self.sent = []

    async def exchange(self, request, *_):
        self.sent.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def store(client, administrator=("certificate", "key")):
    informers = SimpleNamespace(of=lambda _: None)
    context = SimpleNamespace(client=client, informers=informers, recorder=informers, shared={})
    return EtcdStore(context, None, lambda: administrator, list)


@pytest.mark.parametrize(
    "error",
    [NoResponse("refused"), SSLError("key values mismatch"), ValueError("no PEM")],
    ids=["response", "key", "form"],
)
async def test_request_that_cannot_be_sent_is_a_failure_of_the_service(error):
    with pytest.raises(ServiceFailed, match=str(error.args[0])):
        await store(Client(error)).check(7)


async def test_answer_that_is_an_error_is_its_message():
    with pytest.raises(ServiceFailed, match="gone"):
        await store(Client(SimpleNamespace(status=410, body=b'{"message": "gone"}'))).check(7)


async def test_without_credentials_nothing_is_sent():
    client = Client()
    with pytest.raises(ServiceFailed, match="not known here"):
        await store(client, administrator=None).check(7)
    assert client.sent == []
