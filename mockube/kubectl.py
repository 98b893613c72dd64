"""kubectl on this machine: its commands, and how a package manager installs it."""

import shutil
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from mockube.failure import Failure

KUBECTL: Final = "kubectl"
_COMMANDS: Final = (
    "annotate api-resources api-versions apply attach auth autoscale certificate cluster-info completion config cordon"
    " cp create debug delete describe diff drain edit events exec explain expose get kuberc kustomize label logs options"
    " patch plugin port-forward proxy replace rollout run scale set taint top uncordon version wait"
)
_RESOURCES: Final = "cm configmap configmaps deploy deployment deployments ns namespace namespaces pod pods po rs secret secrets service services svc"
COMMANDS: Final = frozenset(_COMMANDS.split())
RESOURCES: Final = frozenset(_RESOURCES.split())
"""Names of resources that people type where `get` belongs."""

_HELP_FLAGS: Final = frozenset({"-h", "--help"})
_LOCAL_COMMANDS: Final = frozenset({"", "completion", "help", "kustomize", "options", "plugin"})

INSTALL_COMMANDS: Final[Mapping[str, str]] = {
    "brew": "brew install kubectl",
    "snap": "sudo snap install kubectl --classic",
    "winget": "winget install -e --id Kubernetes.kubectl",
    "conda": "conda install -c conda-forge kubernetes-client",
}
"""The commands that install kubectl, by package manager."""
PAGE: Final = "https://kubernetes.io/docs/tasks/tools"


def find_kubectl() -> str:
    """Return the path of kubectl; raise Failure if it is not on the PATH."""
    path = shutil.which(KUBECTL)
    if path is None:
        raise Failure(f"kubectl is not installed: {how_to_install()}")
    return path


def sends_requests(arguments: Sequence[str]) -> bool:
    """Return whether kubectl needs a server: it does not for its help, its own version, completion and kustomizations."""
    own_arguments = [*takewhile(lambda argument: argument != "--", arguments)]
    command = next((argument for argument in own_arguments if not argument.startswith("-")), "")
    prints_own_version = command == "version" and not {"--client", "--client=true"}.isdisjoint(own_arguments)
    return not (command in _LOCAL_COMMANDS or prints_own_version) and _HELP_FLAGS.isdisjoint(own_arguments)


def how_to_install() -> str:
    """Return a sentence with the command of this machine's package managers, or of all that are known."""
    commands = [command for program, command in INSTALL_COMMANDS.items() if shutil.which(program)]
    *others, last = [f"`{command}`" for command in commands or INSTALL_COMMANDS.values()]
    choice = f"{', '.join(others)} or {last}" if others else last
    return f"{choice} installs it, and {PAGE} lists other ways"
