"""Count a manager's writes by the controller that made them, as a server's audit log would."""

from collections import Counter
from dataclasses import dataclass

from tests.support.controllers.running_manager import CountingTransport

_VERBS = {"POST": "create", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


@dataclass(frozen=True)
class Write:
    account: str
    verb: str
    namespace: str
    resource: str
    """The resource with its subresource, as pods/status."""


class WriteRecorder(CountingTransport):
    """Also records the user of each write that the server carried out."""

    def __init__(self, transport):
        super().__init__(transport)
        self.done = []

    async def send(self, request, headers):
        answer = await super().send(request, headers)
        if not request.is_read and answer.status < 300:
            self.done.append(_write(request, headers["User-Agent"]))
        return answer


def _write(request, agent):
    path = request.target.partition("?")[0].strip("/").split("/")
    rest = path[2:] if path[0] == "api" else path[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        _, namespace, *rest = rest
    resource, _, *subresource = (*rest, "")
    return Write(
        agent.rpartition("/")[2].rpartition(":")[2],
        _VERBS[request.method],
        namespace,
        "/".join(part for part in (resource, *subresource) if part),
    )


def count_writes(writes, namespace, called):
    """Count the writes of each kind in a namespace, by the accounts' short names; events are not counted."""
    return Counter(
        f"{called[write.account]} {write.verb} {write.resource}"
        for write in writes
        if write.namespace == namespace and write.account in called and write.resource != "events"
    )
