"""kubectl: its command line."""

from collections.abc import Callable, Sequence
from typing import Final

from mockube.apimachinery.schema import minors
from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    simulated_options,
)
from mockube.container_runtime.simulated.shell.process import Output, Process, Run, UnknownProgram, write_text

from . import commands, waiting
from .client import ApiClient, KubectlError

_OPTIONS: Final = {
    "-n": "namespace=",
    "--namespace": "namespace=",
    "-A": "all-namespaces",
    "--all-namespaces": "all-namespaces",
    "-o": "output=",
    "--output": "output=",
    "-l": "selector=",
    "--selector": "selector=",
    "--field-selector": "field-selector=",
    "-f": "filename=",
    "--filename": "filename=",
    "--ignore-not-found": "ignore-not-found",
    "--no-headers": "no-headers",
    "--all": "all",
    "--wait": "wait",
    "--now": "force",
    "--force": "force",
    "--grace-period": "grace-period=",
    "--cascade": "cascade=",
    "--server-side": "server-side",
    "--force-conflicts": "force-conflicts",
    "--field-manager": "field-manager=",
    "--dry-run": "dry-run=",
    "--from-literal": "from-literal=",
    "--from-file": "from-file=",
    "--from-env-file": "from-env-file=",
    "--from": "from=",
    "--cert": "cert=",
    "--key": "key=",
    "--type": "type=",
    "-p": "patch=",
    "--patch": "patch=",
    "--patch-file": "patch-file=",
    "--subresource": "subresource=",
    "--overwrite": "overwrite",
    "--for": "for=",
    "--timeout": "timeout=",
    "--replicas": "replicas=",
    "--request-timeout": "ignored=",
    "--validate": "ignored",
    "--show-managed-fields": "ignored",
    "--save-config": "ignored",
    "--client": "client",
    "-v": "ignored=",
    "--v": "ignored=",
    "--warnings-as-errors": "ignored",
}
Command = Callable[[Process, ApiClient, ProgramOptions, Sequence[str]], Run]
_COMMANDS: Final[dict[str, Command]] = {
    "get": commands.get,
    "create": commands.create,
    "apply": commands.apply,
    "delete": commands.delete,
    "patch": commands.patch,
    "label": commands.label,
    "annotate": commands.annotate,
    "wait": waiting.wait,
    "rollout": waiting.rollout,
    "scale": waiting.scale,
}
_HELP: Final = "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/\n"


def kubectl(process: Process) -> Run:
    options = simulated_options(process, _OPTIONS, strips_equals=True)
    if not options.arguments:
        yield write_text(_HELP)
        return 0
    name, *words = options.arguments
    if name == "version" and "client" in options:
        yield write_text(f"Client Version: v{minors.RELEASES[minors.NEWEST]}\nKustomize Version: v5.8.0\n")
        return 0
    command = _COMMANDS.get(name)
    if command is None:
        raise UnknownProgram(f"kubectl {name}")
    try:
        return (yield from command(process, ApiClient(process, options.get("namespace")), options, words))
    except KubectlError as error:
        yield Output(2, f"{error}\n".encode())
        return error.code
