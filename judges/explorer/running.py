"""A controller of mockube as the operator of an exploration, in this process, whose modules may be mutated."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.component_base.clock import RealClock
from mockube.controller_manager import __main__ as manager
from mockube.exploration.exploration import Options
from mockube.exploration.explorer import Explorer
from mockube.exploration.findings import OperatorFinding
from mockube.exploration.fork_runner import fork_runner
from mockube.exploration.scenario import Scenario, read_scenario
from mockube.exploration.starters import FunctionStarter
from mockube.failure import Failure

from .mutants import HERE

WITHOUT = ("delete a node", "edit an owned object")
"""Disturbances after which an end takes longer than a run: the pods of a deleted node stay until the pod garbage collector removes them,
after a minute; and what no controller of Kubernetes repairs, such as the image of its pod."""
FLAGS = ("--leader-elect=false", "--use-service-account-credentials=false", "--secure-port=0")


class Report(Struct, kw_only=True):
    """What was found, and how long it took."""

    found: str = ""
    """The first problem of the finding; "" if nothing was found."""
    when: str = ""
    history: list[str] = field(default_factory=list)
    problem: str = ""
    """Why the exploration says nothing."""
    plans: int = 0
    not_judged: dict[str, int] = field(default_factory=dict)
    not_seen_again: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    """The processor time of all processes."""


class Found(Failure):
    """Something was found, which is enough."""


def explore(tree: Mapping[str, Any], options: Options) -> Report:
    """Explore a scenario until something is found."""
    fields = dict(tree)
    controller = fields.pop("controller")
    fields["without"] = [*WITHOUT, *fields.get("without", ())]
    scenario = read_scenario(fields, HERE)
    cluster = {**scenario.cluster, "manager_flags": [f"--controllers=*,-{controller}"]}
    report, began = Report(), time.monotonic()

    def run_controller(kubeconfig: str) -> None:
        sys.exit(manager.main([f"--kubeconfig={kubeconfig}", f"--controllers={controller}", *FLAGS]))

    try:
        with closing(FunctionStarter(run_controller)) as starter:
            asyncio.run(_explore(replace(scenario, cluster=cluster), starter, options, report))
    except Found:
        pass
    except Failure as failure:
        report.problem = str(failure)
    report.seconds = round(time.monotonic() - began, 1)
    report.processor = round(sum(os.times()[:4]), 1)
    return report


async def _explore(scenario: Scenario, starter: FunctionStarter, options: Options, report: Report) -> None:
    def show_finding(finding: OperatorFinding) -> None:
        report.found, report.when = finding.problems[0].text, str(finding.plan)
        report.history = [*finding.history]
        raise Found(report.found)

    async with fork_runner(scenario, starter, RealClock()) as runner:
        explorer = Explorer(runner, options, show_finding=show_finding)
        try:
            await explorer.explore()
        finally:
            result = explorer.result
            report.plans, report.not_seen_again = result.runs, result.not_seen_again
            report.not_judged = dict(result.not_judged)
