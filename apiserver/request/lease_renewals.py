"""Serve `/mockube/lease-renewals`: POST renews the Leases of many nodes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
import orjson

from mockube.apimachinery.lease_renewals import MAX_NAMES, PATH, Renewals
from mockube.apimachinery.status import BadRequest, MethodNotSupported, NotFound
from mockube.apimachinery.timestamps import TimestampError, parse_micro_time
from mockube.apiserver.registry.lease_renewals import renew_leases
from mockube.apiserver.registry.registry import Registry

from .hooks import HookPoints
from .page import Page
from .request import Request
from .response import Response

OBSERVED: Final = "this server observes each request: renew each Lease by a request of its own"
"""The error while the server has hooks, which would get one request instead of those of the kubelets."""
_MAX_BODY: Final = 512 * 1024

_decode = msgspec.json.Decoder(Renewals).decode


def pages(registry: Registry, hooks: HookPoints) -> Mapping[str, Page]:
    async def renew(request: Request) -> Response:
        if not hooks.is_empty:
            raise NotFound(OBSERVED)
        if request.method != "POST":
            raise MethodNotSupported(f"{PATH} supports POST, not {request.method}")
        names, renew_time = _parse(await request.client.read(_MAX_BODY))
        others = await renew_leases(
            registry,
            names,
            renew_time,
            user=request.user,
            user_agent=request.user_agent,
            audit_id=request.audit_id,
        )
        await registry.watch_cache.deliver()
        return Response(200, [orjson.dumps({"notRenewed": others})])

    return {PATH: renew}


def _parse(body: bytes) -> tuple[list[str], datetime]:
    try:
        renewals = _decode(body)
        renew_time = parse_micro_time(renewals.renew_time)
    except (msgspec.DecodeError, TimestampError, RecursionError) as error:
        raise BadRequest(f"the body is not a list of renewals: {error}") from error
    if len(renewals.names) > MAX_NAMES:
        raise BadRequest(f"a request renews at most {MAX_NAMES} Leases, not {len(renewals.names)}")
    return renewals.names, renew_time
