"""Measure the latency of `/livez`, from another process, during one client's expensive requests.

    python benchmarks/hostile.py [--objects N] [--size BYTES] [--only REGEX]

A real server process is sent each request of `hostile_requests.table`, one after another, over many objects. Fails if
`/livez` takes more than 100 ms in the 99th percentile of a request, or more than 300 ms once. The times are
wall time: the machine should have two CPUs and no other load. The last columns are the CPU time of all threads of
the server during the longest sample, in its own code and in the kernel: if the first is much less than the sample,
the machine caused the delay, for example by providing memory slowly.
"""

import argparse
import asyncio
import contextlib
import http.client
import math
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import uvloop

from benchmarks.api_load import HOST, TOKEN, _free_port, _process
from benchmarks.hostile_requests import Request, objects_before, table

P99, MAX = 0.100, 0.300
SIZE, OBJECTS = (3 << 20) - 4096, 100_000
PAUSE, QUIET, MIN_SAMPLES = 0.005, 1.0, 20
PATIENCE = 120.0
TICKS = os.sysconf("SC_CLK_TCK")
HEADERS = {"Authorization": f"Bearer {TOKEN}"}

vars(http.client)["_MAXHEADERS"] = 100_000  # a response may have many Warning headers


class Sample(NamedTuple):
    """One request for /livez, in seconds."""

    latency: float
    user: float
    """CPU time of the server in its own code during the request, in steps of 10 ms."""
    system: float
    """CPU time of the server in the kernel."""


def sample(port: int, pid: int, control: Connection) -> None:
    """Request /livez repeatedly, and send the samples on each request over `control`."""
    samples: list[Sample] = []
    stat = Path(f"/proc/{pid}/stat")
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    while True:
        (user, system), started = _cpu_seconds(stat), time.perf_counter()
        connection.request("GET", "/livez")
        assert connection.getresponse().read() == b"ok"
        latency, (user_after, system_after) = time.perf_counter() - started, _cpu_seconds(stat)
        samples.append(Sample(latency, user_after - user, system_after - system))
        if control.poll(PAUSE):
            if not control.recv():
                return
            control.send(samples)
            samples = []


def _cpu_seconds(stat: Path) -> tuple[float, float]:
    """Return the user and system time of a process."""
    user, system = map(int, stat.read_text().rpartition(")")[2].split()[11:13])
    return user / TICKS, system / TICKS


def send(port: int, request: Request) -> int:
    """Send a request and read its response; a watch is read until no data arrives for QUIET seconds."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    with contextlib.closing(connection):
        headers = HEADERS | {
            "Content-Type": request.content_type,
            "Accept": request.accept,
            **request.headers,
        }
        connection.request(request.method, request.path, request.body or None, headers)
        assert connection.sock is not None
        if request.watch:
            connection.sock.settimeout(QUIET)
        answer = connection.getresponse()
        with contextlib.suppress(TimeoutError):
            while answer.read1(1 << 18):
                pass
        return answer.status


def fill(port: int, objects: int, size: int) -> None:
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    with contextlib.closing(connection):
        for path, body in objects_before(objects, size):
            connection.request("POST", path, body, HEADERS)
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status in (201, 409), data


def percentile(latencies: Sequence[float], part: float) -> float:
    return sorted(latencies)[math.ceil(len(latencies) * part) - 1]


def attack(port: int, control: Connection, options: argparse.Namespace) -> list[str]:
    """Return the requests that delayed /livez beyond the limits."""

    def samples() -> list[Sample]:
        control.send("samples")
        received: list[Sample] = control.recv()
        return received

    failed = []
    print(
        f"{'request':<60}{'status':>7}{'s':>8}{'samples':>9}{'p99 ms':>8}{'max ms':>8}{'user ms':>9}{'kernel ms':>11}"
    )
    for name, request in table(options.size).items():
        if not re.search(options.only, name):
            continue
        samples()
        started = time.perf_counter()
        try:
            status: object = send(port, request)
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        took, measured = time.perf_counter() - started, samples()
        while len(measured) < MIN_SAMPLES:
            time.sleep(PAUSE)
            measured += samples()
        p99, longest = percentile([latency for latency, _, _ in measured], 0.99), max(measured)
        is_bad = p99 > P99 or longest.latency > MAX
        failed += [name] * is_bad
        print(
            f"{name:<60}{status!s:>7}{took:>8.2f}{len(measured):>9}{p99 * 1000:>8.1f}"
            f"{longest.latency * 1000:>8.1f}{longest.user * 1000:>9.0f}{longest.system * 1000:>11.0f}{' !' * is_bad}",
            flush=True,
        )
    return failed


async def run(options: argparse.Namespace) -> int:
    with TemporaryDirectory() as folder:
        tokens, port, secure_port = Path(folder) / "tokens.csv", _free_port(), _free_port()
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        flags = (
            f"--http-port={port}", f"--secure-port={secure_port}", f"--cert-dir={folder}", f"--token-auth-file={tokens}",
        )  # fmt: skip
        async with _process("-m", "mockube.apiserver", *flags, url=f"https://{HOST}:{secure_port}") as pid:
            await asyncio.to_thread(fill, port, options.objects, options.size)
            ours, theirs = multiprocessing.Pipe()
            sampler = multiprocessing.get_context("spawn").Process(
                target=sample, args=(port, pid, theirs), daemon=True
            )
            sampler.start()
            failed = await asyncio.to_thread(attack, port, ours, options)
            ours.send("")
            sampler.join()
    print(f"\n{len(failed)} too slow" + "".join(f"\n  {name}" for name in failed))
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--objects", type=int, default=OBJECTS, help="ConfigMaps that there are (%(default)s)"
    )
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of a body (%(default)s)")
    parser.add_argument("--only", default="", help="requests whose name matches")
    return uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
