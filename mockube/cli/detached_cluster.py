"""A named cluster in a process of its own: that of `mockube up --detach`, and forks."""

import asyncio

from mockube.clusters.forks import StartedFork
from mockube.clusters.logs import SUPERVISOR_LOG
from mockube.clusters.named_cluster import ClusterFolder
from mockube.clusters.spec import ClusterSpec
from mockube.clusters.supervisor import Supervisor
from mockube.component_base.clock import RealClock
from mockube.failure import Failure

from .detach import Reports, detach_from_loop
from .output import code_of


def run_detached(folder: ClusterFolder, spec: ClusterSpec, reports: Reports) -> int:
    supervisor = Supervisor(
        folder, spec, clock=RealClock(), report=reports.report, step=reports.step, start_fork=start_fork
    )
    try:
        return asyncio.run(supervisor.run(on_ready=lambda _: reports.ready()))
    except Failure as failure:
        reports.report(str(failure))
        return code_of(failure)


async def start_fork(folder: ClusterFolder, spec: ClusterSpec) -> StartedFork:
    log = folder.log(SUPERVISOR_LOG)
    pid, reports = await detach_from_loop(lambda reports: run_detached(folder, spec, reports), log)
    return StartedFork(pid=pid) if pid else StartedFork(problem=f'"{folder.name}": {"; ".join(reports)}')
