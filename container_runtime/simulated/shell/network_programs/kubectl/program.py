"""kubectl: its command line."""

from collections.abc import Callable, Sequence
from typing import Final

from mockube.apimachinery.schema import minors
from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    simulated_options,
)
from mockube.container_runtime.simulated.shell.process import Output, Process, Run, UnknownProgram, write_text

from . import administration, commands, waiting
from .client import ApiClient
from .connection import KubectlError, connection_of

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
    "--ignore-daemonsets": "ignore-daemonsets",
    "--delete-emptydir-data": "delete-emptydir-data",
    "--kubeconfig": "kubeconfig=",
    "--context": "context=",
    "-s": "server=",
    "--server": "server=",
    "--token": "token=",
    "--insecure-skip-tls-verify": "insecure",
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
    "version": administration.version,
    "cluster-info": administration.cluster_info,
    "cordon": administration.cordon,
    "uncordon": administration.uncordon,
    "drain": administration.drain,
}
_HELP: Final = "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/\n"


def kubectl(process: Process) -> Run:
    options = simulated_options(process, _OPTIONS, strips_equals=True)
    if not options.arguments:
        yield write_text(_HELP)
        return 0
    name, *words = options.arguments
    if name == "version":
        yield write_text(f"Client Version: v{minors.RELEASES[minors.NEWEST]}\nKustomize Version: v5.8.0\n")
        if "client" in options:
            return 0
    command = _COMMANDS.get(name)
    try:
        if name == "config":
            return (yield from administration.config(process, options, words))
        if command is None:
            raise UnknownProgram(f"kubectl {name}")
        client = ApiClient(process, connection_of(process, options), options.get("namespace"))
        return (yield from command(process, client, options, words))
    except KubectlError as error:
        yield Output(2, f"{error}\n".encode())
        return error.code
