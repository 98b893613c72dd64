"""Record the spans of a real kube-apiserver, as `tests/conformance/test_traces.py` compares them.

    python -m judges.recorder.traces

The server is started from the folder that MOCKUBE_REAL_KUBERNETES names.
"""

import asyncio
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import orjson

from judges.recorder.control_plane import wait_served
from tests.support.processes.real_kubernetes import RealApiServer, require_folder
from tests.support.recorded.recordings import FOLDER
from tests.support.server.apiserver import Client
from tests.support.server.webhook_server import webhook_server
from tests.support.stores.etcd_server import QUICK, EtcdServer
from tests.support.tracing import scenario
from tests.support.tracing.collector import Collector, write_configuration


def main() -> None:
    require_folder()
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "100"
    with tempfile.TemporaryDirectory(prefix="mockube-recorder-") as name, ExitStack() as stack:
        folder = Path(name)
        collector = stack.enter_context(Collector())
        etcd = stack.enter_context(EtcdServer(options=QUICK))
        tokens = FOLDER / "tokens.csv"
        flags = ("--allow-privileged", f"--tracing-config-file={write_configuration(folder, collector)}")
        server = stack.enter_context(RealApiServer(folder, etcd, tokens=tokens, flags=flags))
        wait_served(server, tokens.read_text().partition(",")[0])
        recorded = asyncio.run(_run(server.url, folder, collector))
        lines = [orjson.dumps({"name": step, "spans": spans}) for step, spans in recorded.items()]
        scenario.RECORDED.write_bytes(b"".join(line + b"\n" for line in lines))


async def _run(url: str, folder: Path, collector: Collector) -> dict[str, object]:
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(connector=connector) as session, webhook_server(folder) as hooks:

        def client_of(user: str) -> Client:
            return Client(session, url, authorization=f"Bearer {user}token")

        async def settle() -> None:
            """Create objects until the webhooks that were registered are called."""
            probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "probe-"}}
            while len(hooks.requests) < 2:
                await client_of("admin").send("POST", scenario.FOLDER, probe)

        return await scenario.run(client_of, hooks, collector, settle=settle)


if __name__ == "__main__":
    main()
