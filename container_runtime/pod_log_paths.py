"""Where the kubelet of a node has the logs of containers. Pure."""

import re
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.tree import ReadOnlyTree

LOGS: Final = "/var/log/pods"
_PATH: Final = re.compile(rf"{LOGS}/([^/_]+)_([^/_]+)_([^/]+)/([^/]+)/([0-9]{{1,9}})\.log")


class LogPlace(NamedTuple):
    """The run whose log is at a path."""

    namespace: str
    pod: str
    uid: str
    container: str
    restarts: int


def pod_folder(pod: ReadOnlyTree) -> str:
    return f"{meta.namespace(pod)}_{meta.name(pod)}_{kubelet_uid(pod)}"


def log_path(pod: ReadOnlyTree, container: str, restarts: int) -> str:
    return f"{LOGS}/{pod_folder(pod)}/{container}/{restarts}.log"


def place_of_log(path: str) -> LogPlace | None:
    match = _PATH.fullmatch(path)
    return None if match is None else LogPlace(match[1], match[2], match[3], match[4], int(match[5]))
