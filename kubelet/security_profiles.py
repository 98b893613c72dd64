"""The seccomp and AppArmor profiles of the type Localhost that a node has, and why a container cannot be created without one. Pure.

Upstream: kubelet passes them on; containerd reads the file of a seccomp profile, and looks whether an AppArmor profile is loaded,
when it creates a container.
"""

from collections.abc import Callable, Iterable
from posixpath import join, normpath
from typing import Final, Protocol

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.node_paths import DIRECTORY, FILE
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.predictions import Predictions

from .start_checks import StartFailure
from .volumes.host_paths import PathType

APPARMOR_PROFILES: Final = "mockube.dev/apparmor-profiles"
"""The annotation of a node that lists the AppArmor profiles that are loaded on it, such as "k8s-apparmor-example-deny-write, web"."""
CREATE_ERROR: Final = "CreateContainerError"
_SECCOMP_FOLDER: Final = "/var/lib/kubelet/seccomp"
_LOADED: Final = frozenset({"cri-containerd.apparmor.d"})
"""The profiles that every node with containerd has."""
_APPARMOR_FOLDER: Final = "/etc/apparmor.d"
"""Where a program that loads profiles has them."""
_LOCALHOST: Final = "Localhost"


class ProfilesOfNode(Protocol):
    """The profiles of a node."""

    def seccomp_problem(self, path: str) -> str:
        """Return why the file of a profile cannot be read; "" if it can."""

    def has_apparmor(self, name: str) -> bool:
        """Return whether a profile is loaded."""


class _AllProfiles:
    def seccomp_problem(self, _: str) -> str:
        return ""

    def has_apparmor(self, _: str) -> bool:
        return True


ALL_PROFILES: Final[ProfilesOfNode] = _AllProfiles()


class NodeProfiles(Struct, frozen=True, kw_only=True):
    """The profiles of a simulated node: files that it has, and loaded profiles that an annotation names.

    Those that a program may have written that is not simulated count as present, as nobody knows what it does.
    """

    node: ReadOnlyTree
    path_type: PathType
    pods: Callable[[], Iterable[ReadOnlyTree]]
    """Returns the pods of the node."""
    predictions: Predictions

    def seccomp_problem(self, path: str) -> str:
        file_type = self.path_type(path)
        if file_type == FILE or self._may_be_written(path):
            return ""
        return (
            f"read {path}: is a directory"
            if file_type == DIRECTORY
            else f"open {path}: no such file or directory"
        )

    def has_apparmor(self, name: str) -> bool:
        names = meta.annotations(self.node).get(APPARMOR_PROFILES, "").split(",")
        return (
            name in _LOADED
            or name in map(str.strip, names)
            or self._may_be_written(f"{_APPARMOR_FOLDER}/{name}")
        )

    def _may_be_written(self, path: str) -> bool:
        return any(self._may_write(pod, path) for pod in self.pods())

    def _may_write(self, pod: ReadOnlyTree, path: str) -> bool:
        """Return whether a program of a pod that is not simulated has a host path with the file."""
        volumes = {
            volume["name"]
            for volume in pod["spec"].get("volumes") or ()
            if "hostPath" in volume and _is_in(path, normpath(volume["hostPath"]["path"]))
        }
        return bool(volumes) and any(
            not self.predictions.is_simulated(pod, container, script_of(meta.annotations(pod)))
            for container in every_container(pod["spec"])
            if any(
                mount["name"] in volumes and not mount.get("readOnly")
                for mount in container.get("volumeMounts") or ()
            )
        )


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/") or path == folder


def profile_failure(
    pod: ReadOnlyTree, container: ReadOnlyTree, profiles: ProfilesOfNode
) -> StartFailure | None:
    """Return why a container cannot be created with its profiles; None if it can."""
    message = _apparmor_failure(pod, container, profiles) or _seccomp_failure(pod, container, profiles)
    if not message:
        return None
    return StartFailure(reason=CREATE_ERROR, message=message, events=(("Failed", f"Error: {message}"),))


def _apparmor_failure(pod: ReadOnlyTree, container: ReadOnlyTree, profiles: ProfilesOfNode) -> str:
    name = _profile(pod, container, "appArmorProfile")
    if not name or profiles.has_apparmor(name):
        return ""
    return (
        "failed to get container spec opts: failed to generate apparmor spec opts: "
        f"apparmor profile not found {name}"
    )


def _seccomp_failure(pod: ReadOnlyTree, container: ReadOnlyTree, profiles: ProfilesOfNode) -> str:
    name = _profile(pod, container, "seccompProfile")
    if not name or (container.get("securityContext") or {}).get("privileged"):
        return ""
    path = normpath(join(_SECCOMP_FOLDER, name))
    problem = profiles.seccomp_problem(path)
    if not problem:
        return ""
    return f'failed to create containerd container: cannot load seccomp profile "{path}": {problem}'


def _profile(pod: ReadOnlyTree, container: ReadOnlyTree, field: str) -> str:
    """Return the name of a container's profile of the type Localhost, also if the pod has it; "" if there is none."""
    for owner in (container, pod["spec"]):
        profile = (owner.get("securityContext") or {}).get(field)
        if profile:
            return profile.get("localhostProfile") or "" if profile.get("type") == _LOCALHOST else ""
    return ""
