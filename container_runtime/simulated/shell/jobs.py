"""Builtins for background jobs: wait, jobs, fg, bg, disown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .builtin_errors import BuiltinError
from .process import Child, Run, WaitUntil
from .signals import SIGNAL_CODE, SIGNALS, report_killed, run_pending_traps
from .state import Shell

_NOT_A_CHILD: Final = 127


def _wait(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = list(argv[1:])
    if arguments[:1] == ["-n"]:
        return (yield from _wait_for_next(shell))
    if not arguments:
        code = yield from _wait_for(shell, shell.jobs)
        shell.jobs = [job for job in shell.jobs if job.code is None]
        return code if code > SIGNAL_CODE else 0
    code = 0
    for argument in arguments:
        job = find_job(shell, argument)
        if job is None:
            if argument.startswith("%") and not shell.is_bash:
                raise missing_job(argument)
            if shell.is_bash:
                is_job = argument.startswith("%")
                words = (
                    f"{argument}: no such job" if is_job else f"pid {argument} is not a child of this shell"
                )
                yield from shell.report(f"wait: {words}")
            code = _NOT_A_CHILD
            continue
        interrupted_code = yield from _wait_for(shell, [job])
        if interrupted_code:
            return interrupted_code
        code = job.code or 0
    return code


def _wait_for(shell: Shell, jobs: Sequence[Child]) -> Run:
    """Wait for the end of jobs; return 0, or more than 128 if a signal with a trap arrives before."""
    processes = shell.process.processes
    begin = processes.time
    while any(job.code is None for job in jobs):
        yield WaitUntil(lambda: all(job.code is not None for job in jobs))
        if processes.has_signals():
            code = SIGNAL_CODE + processes.first_signal()
            yield from run_pending_traps(shell)
            return code
    for job in jobs:
        # A shell has noticed an earlier end while it waited for something else, and says nothing of it.
        if job.killed_by and job.ended >= begin and not (shell.is_bash and job.killed_by == SIGNALS["TERM"]):
            yield from report_killed(shell, job.killed_by, job.pid, job.name)
    return 0


def _wait_for_next(shell: Shell) -> Run:
    if not shell.jobs:
        return _NOT_A_CHILD
    yield WaitUntil(lambda: any(job.code is not None for job in shell.jobs))
    ended_job = next((job for job in shell.jobs if job.code is not None), shell.jobs[0])
    shell.jobs.remove(ended_job)
    return ended_job.code or 0


def find_job(shell: Shell, text: str) -> Child | None:
    """Return a job by its process id, or by its number behind `%`."""
    if text.startswith("%"):
        number = text[1:]
        if number in ("", "%", "+"):
            return shell.last_job
        return (
            shell.jobs[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(shell.jobs) else None
        )
    if not text.isdecimal():
        raise BuiltinError(
            f"Illegal number: {text}", bash=f"`{text}': not a pid or valid job spec", bash_code=1
        )
    return next((job for job in shell.jobs if job.pid == int(text)), None)


def missing_job(argument: str) -> BuiltinError:
    return BuiltinError(f"No such job: {argument}", bash=f"{argument}: no such job", bash_code=1)


def _jobs(shell: Shell, argv: Sequence[str]) -> Run:
    for argument in argv[1:]:
        if not argument.startswith("-") and find_job(shell, argument) is None:
            raise missing_job(argument)
    for number, job in enumerate(shell.jobs, start=1):
        if "-p" in argv:
            yield from shell.write(1, f"{job.pid}\n")
        elif job.code is None:
            yield from shell.write(1, f"[{number}]+ Running                 {' '.join(job.name)}\n")
    return 0


def _foreground(shell: Shell, argv: Sequence[str]) -> Run:
    if shell.is_bash and "monitor" not in shell.options:
        raise BuiltinError("no job control", 1)
    job = find_job(shell, argv[1] if len(argv) > 1 else "%%")
    if job is None:
        raise BuiltinError("No current job", 2, bash="current: no such job", bash_code=1)
    if argv[0] == "fg":
        yield WaitUntil(lambda: job.code is not None)
        return job.code or 0
    return 0


def _kill(shell: Shell, argv: Sequence[str]) -> Run:
    """Send a signal to processes, or to jobs by their numbers."""
    arguments = [argv[0]]
    for argument in argv[1:]:
        job = find_job(shell, argument) if argument.startswith("%") else None
        if argument.startswith("%") and job is None:
            raise missing_job(argument)
        arguments.append(argument if job is None else str(job.pid))
    return (yield from shell.run_program(arguments))


def _disown(shell: Shell, _: Sequence[str]) -> Run:
    shell.jobs.clear()
    return 0
    yield


BUILTINS: Final[Mapping[str, Callable[[Shell, Sequence[str]], Run]]] = {
    "wait": _wait,
    "jobs": _jobs,
    "fg": _foreground,
    "bg": _foreground,
    "kill": _kill,
    "disown": _disown,
}
