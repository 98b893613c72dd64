"""What a step of a scenario does, and for what it waits: objects are applied, deleted or patched, or kubectl runs."""

import asyncio
import shlex
import subprocess
from pathlib import Path
from typing import Final

from mockube.kubectl import find_kubectl
from mockube.objects.requests import ObjectRequests

from .scenario import GONE, Expectation, StepOperation

_KUBECTL_SECONDS: Final = 60.0


async def do_operation(requests: ObjectRequests, kubeconfig: Path, operation: StepOperation) -> None:
    """Do what a step does."""
    if operation.type == "apply":
        await requests.apply([*operation.objects], operation.namespace)
    elif operation.target is not None:
        target = operation.target
        if operation.type == "delete":
            await requests.delete(target.target, None, target.namespace, ignore_not_found=False)
        else:
            await requests.patch((target.target, None, operation.patch), target.namespace, None, "")
    else:
        await asyncio.to_thread(run_kubectl, kubeconfig, operation)


async def wait_for(requests: ObjectRequests, expectation: Expectation, seconds: float) -> None:
    """Wait until an object is as expected; raise WaitFailed if it is not within some seconds."""
    ref = expectation.object
    if expectation.condition == GONE:
        await requests.wait_gone(ref.target, None, seconds, ref.namespace)
    else:
        await requests.wait((ref.target, None, expectation.condition), seconds, ref.namespace)


class StepFailed(Exception):
    """A command of a step failed; the message has its output."""


def run_kubectl(kubeconfig: Path, operation: StepOperation, seconds: float = _KUBECTL_SECONDS) -> None:
    """Run kubectl in the folder of the scenario, and in the namespace of the step unless its line has another."""
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={operation.namespace}"]
    line = shlex.join(["kubectl", *operation.arguments])
    try:
        done = subprocess.run(  # noqa: S603 - it is the user's line
            [find_kubectl(), *flags, *operation.arguments],
            cwd=operation.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{line}: it did not end within {seconds:g} s") from error
    except (OSError, ValueError) as error:  # such as a line that is too long
        raise StepFailed(f"{line}: {error}") from error
    if done.returncode:
        raise StepFailed(f"{line}: {done.stderr.strip() or f'it ended with code {done.returncode}'}")
