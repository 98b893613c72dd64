"""How fluent the page of `mockube ui` is with a large cluster: `python benchmarks/page.py --nodes 5000 --pods 20000 --changes 100000`.

It fills an API server, opens the page in Chromium, and measures when the first picture is there, how long all objects and changes take,
and the frames while the cluster and the timeline are moved and zoomed. Frames depend on the machine: a virtual machine draws without a GPU.
"""

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.processes.page import one_time_token, visiting
from tests.support.server.apiserver import running

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
AT_ONCE = 16
TIMEOUT_MS = 600_000
FRAMES = """
async ([selector, seconds]) => {
  const canvas = document.querySelector(selector);
  const box = canvas.getBoundingClientRect();
  const gaps = [];
  let before = performance.now();
  const end = before + seconds * 1000;
  let step = 0;
  while (before < end) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - before);
    before = now;
    step += 1;
    const place = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new WheelEvent("wheel", { ...place, ctrlKey: true, deltaY: step % 120 < 60 ? -12 : 12 }));
  }
  gaps.sort((a, b) => a - b);
  return { frames: gaps.length / seconds, median: gaps[Math.floor(gaps.length / 2)], late: gaps[Math.floor(gaps.length * 0.99)] };
}
"""


async def send_all(send: Callable[[int], Awaitable[Any]], count: int) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            answer = await send(number)
            assert answer.status in (200, 201), answer.data

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def fill(client: Any, options: argparse.Namespace) -> None:
    def node(number: int) -> Awaitable[Any]:
        labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        status = {
            "allocatable": {"cpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        return client.post(
            NODES, {"metadata": {"name": f"node-{number}", "labels": labels}, "status": status}
        )

    def pod(number: int) -> Awaitable[Any]:
        spec = {
            "nodeName": f"node-{number % options.nodes}",
            "containers": [{"name": "main", "image": "nginx"}],
        }
        return client.post(PODS, {"metadata": {"name": f"pod-{number}"}, "spec": spec})

    def change(number: int) -> Awaitable[Any]:
        return client.patch(f"{CONFIG_MAPS}/map-{number % 500}", {"data": {"value": str(number)}})

    await send_all(node, options.nodes)
    await send_all(pod, options.pods)
    await send_all(lambda number: client.post(CONFIG_MAPS, {"metadata": {"name": f"map-{number}"}}), 500)
    await send_all(change, max(0, options.changes - options.nodes - options.pods - 500))


async def measure(client: Any, options: argparse.Namespace) -> None:
    async with visiting(client) as page:
        page.tab.set_default_timeout(TIMEOUT_MS)
        token, begin = await one_time_token(client), time.monotonic()
        await page.tab.goto(f"{page.url}/mockube/ui/#token={token}")
        await page.tab.get_by_role("application").wait_for()
        print(f"first picture: {time.monotonic() - begin:.2f} s")
        await page.loaded()
        await page.text(f"{options.nodes:,} nodes, {options.pods:,} pods")
        print(f"all objects: {time.monotonic() - begin:.1f} s")
        await page.tab.get_by_text(re.compile("[0-9] changes$")).wait_for()
        print(f"all changes: {time.monotonic() - begin:.1f} s")
        for view in ("cluster", "timeline"):
            await page.go(f"#/{view}" if view == "cluster" else "#/timeline?find=ConfigMap")
            if view == "timeline":
                await page.tab.get_by_label("all kinds").check()
            await page.tab.wait_for_timeout(2000)
            figures = await page.tab.evaluate(FRAMES, [".canvas canvas", options.seconds])
            print(
                f"{view}: {figures['frames']:.0f} frames a second, median {figures['median']:.0f} ms, "
                f"99th percentile {figures['late']:.0f} ms"
            )
        if options.picture:
            await page.tab.screenshot(path=options.picture)
        assert not page.problems, page.problems


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long frames are counted")
    parser.add_argument("--picture", help="a file for a picture at the end")
    options = parser.parse_args()
    begin = time.monotonic()
    async with running("--history=all", "--disable-admission-plugins=ServiceAccount") as client:
        await fill(client, options)
        print(f"filled in {time.monotonic() - begin:.0f} s")
        await measure(client, options)


if __name__ == "__main__":
    asyncio.run(main())
