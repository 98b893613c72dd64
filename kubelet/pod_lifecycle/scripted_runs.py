"""The runs of containers that the annotations of their pod script. Pure."""

from mockube.container_runtime.behavior import RunBehavior
from mockube.container_runtime.pod_script import Script


def scripted_program(script: Script, program: RunBehavior, restarts: int) -> RunBehavior:
    """Return the program of the run after `restarts` restarts: the script's, or else the container's own."""
    if script.crash_times is not None:
        fails = restarts < script.crash_times
    else:
        fails = script.fail_with_code is not None
    if fails:
        code = 1 if script.fail_with_code is None else script.fail_with_code
        return RunBehavior(seconds=script.exit_after or 0, exit_code=code)
    if script.exit_after is not None:
        return RunBehavior(
            seconds=script.exit_after,
            exit_code=0,
            stop_code=program.stop_code,
            stop_seconds=program.stop_seconds,
        )
    return program
