"""A health check that raises an error or does not return fails by its name, is logged once, and affects no other check."""

import asyncio
from types import SimpleNamespace

import pytest

from mockube.apiserver.request.health import CHECK_SECONDS, HealthChecks, ping, store_check, watch_cache_check
from mockube.component_base.clock import SteppedClock
from mockube.etcd.errors import Unavailable
from tests.support.event_loop import until
from tests.support.server.handler_requests import request_of


class Checks:
    """The check `broken` has a fault, as in a bug of the program, until it is `mended`; the others have none."""

    def __init__(self, fault):
        self.clock = SteppedClock()
        self.is_mended = False
        self._fault = fault
        self.health = HealthChecks({"ping": ping, "broken": self._broken, "log": ping}, self.clock)

    async def _broken(self):
        return "" if self.is_mended else await self._fault()

    async def page(self, path):
        """Return the page; time passes only when everything waits for it."""
        answering = asyncio.create_task(self.health.pages[path](request_of("GET", path)))
        await until(lambda: answering.done() or self.clock.next_due() is not None)
        if not answering.done():
            self.clock.advance(CHECK_SECONDS)
        answer = await answering
        return answer.status, answer.body.decode()


async def raise_key_error():
    raise KeyError("a fault in the program")


async def wait_forever():
    await asyncio.get_running_loop().create_future()


FAULTS = pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param(raise_key_error, "KeyError: 'a fault in the program'", id="raises"),
        pytest.param(wait_forever, "no result within 2 s", id="does not return"),
    ],
)


@FAULTS
@pytest.mark.parametrize("endpoint", ["livez", "readyz"])
async def test_check_with_fault_fails_by_name_and_others_pass(fault, reason, endpoint):
    checks = Checks(fault)
    lines = ["[+]ping ok", "[-]broken failed: reason withheld", "[+]log ok", f"{endpoint} check failed", ""]
    assert await checks.page(f"/{endpoint}") == (500, "\n".join(lines))
    assert await checks.page(f"/{endpoint}/broken") == (500, f"internal server error: {reason}\n")
    assert await checks.page(f"/{endpoint}/log") == (200, "ok")


@FAULTS
async def test_fault_of_check_is_logged_once_until_it_passes_again(fault, reason, caplog):
    checks = Checks(fault)
    for _ in range(3):
        await checks.page("/readyz")
    (record,) = caplog.records
    assert record.getMessage() == f"The health check 'broken' failed: {reason}"
    assert "Traceback (most recent call last)" in caplog.handler.format(record)
    checks.is_mended = True
    assert await checks.page("/readyz") == (200, "ok")
    checks.is_mended = False
    await checks.page("/readyz")
    assert len(caplog.records) == 2


async def test_checks_that_do_not_return_share_one_delay():
    clock = SteppedClock()
    page = HealthChecks({"first": wait_forever, "second": wait_forever}, clock).pages["/readyz"]
    answering = asyncio.create_task(page(request_of("GET", "/readyz")))
    await until(clock.next_due)
    clock.advance(CHECK_SECONDS)
    await until(answering.done)
    assert answering.result().body.count(b"failed: reason withheld") == 2


async def test_cancelled_request_is_no_fault_of_check(caplog):
    checks = Checks(wait_forever)
    answering = asyncio.create_task(checks.health.pages["/readyz"](request_of("GET", "/readyz")))
    await until(checks.clock.next_due)
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert not caplog.records


class NoLag:
    async def seconds_behind(self):
        return 0.0


async def test_watch_cache_is_not_ready_before_its_first_list():
    backend = SimpleNamespace(watch_cache=SimpleNamespace(revision=0, lag=NoLag()))
    assert await watch_cache_check(backend)() == "not synced"
    backend.watch_cache.revision = 1
    assert await watch_cache_check(backend)() == ""


class UnavailableStore:
    """A store without a connection, and the lag of a watch cache behind it."""

    async def status(self):
        raise Unavailable("no etcd is reachable")

    seconds_behind = status


@pytest.mark.parametrize("check", [store_check, watch_cache_check])
async def test_check_of_unreachable_store_returns_its_error(check):
    store = UnavailableStore()
    backend = SimpleNamespace(kv=store, watch_cache=SimpleNamespace(revision=1, lag=store))
    assert await check(backend)() == "no etcd is reachable"
