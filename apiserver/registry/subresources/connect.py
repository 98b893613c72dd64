"""The subresources that lead to a kubelet: log, exec, attach, portforward and proxy.

What is behind them is not built. Who may not connect, and what does not exist, is refused as upstream refuses it.
"""

from typing import Final, NoReturn

from mockube.apimachinery import status
from mockube.apimachinery.status import Details, MethodNotSupported
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Call

_STREAMS: Final = frozenset({"attach", "exec", "portforward"})
"""A WebSocket begins with a GET: who opens one must be allowed to create, as with other protocols."""


async def connect(backend: Backend, call: Call) -> NoReturn:
    assert call.subresource is not None
    resource, subresource = call.resource.group_resource, call.subresource.name
    is_upgrade = subresource in _STREAMS and call.verb == "get"
    if is_upgrade and not backend.permits(
        call.user, "create", resource, call.name, namespace=call.namespace, subresource=subresource
    ):
        raise status.forbidden(resource, call.name, "")
    # A proxy's name may have a scheme before it, and a port behind it.
    parts = call.name.split(":")
    name = parts[0] if len(parts) < 3 else parts[1]
    await backend.get(call.resource, call.namespace, name)
    raise MethodNotSupported(
        f"{call.verb} of {resource.resource}/{subresource} is not built into mockube yet", Details()
    )
