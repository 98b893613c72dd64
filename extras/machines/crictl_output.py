"""The lists that crictl prints, and which of their items its options select. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import contains_match
from mockube.container_runtime.simulated.shell.options import ProgramOptions

from .tables import human_duration, human_size

Item = Mapping[str, Any]
_NANO: Final = 1_000_000_000
_SHORT: Final = 13
_STATES: Final = {
    "CONTAINER_RUNNING": "Running",
    "CONTAINER_EXITED": "Exited",
    "CONTAINER_CREATED": "Created",
}
_SANDBOX_STATES: Final = {"SANDBOX_READY": "Ready", "SANDBOX_NOTREADY": "NotReady"}


def short(identifier: str, *, is_full: bool = False) -> str:
    text = identifier.removeprefix("sha256:")
    return text if is_full else text[:_SHORT]


def matches(item: Item, options: ProgramOptions) -> bool:
    """Return whether the options select a container or a pod. As upstream, an invalid pattern selects nothing."""
    labels: Mapping[str, str] = item.get("labels") or {}
    namespace = labels.get("io.kubernetes.pod.namespace", "")
    state = options.get("state").lower()
    states = {**_STATES, **_SANDBOX_STATES}
    return (
        item["id"].startswith(options.get("id"))
        and (item.get("podSandboxId") or "").startswith(options.get("pod"))
        and _matches_pattern(options.get("name"), item["metadata"]["name"])
        and _matches_pattern(options.get("namespace"), namespace)
        and (not state or states[item["state"]].lower() == state)
        and ("image" not in options or options.get("image") in f"{item.get('imageRef')} {item.get('image')}")
        and all(labels.get(each.partition("=")[0]) == each.partition("=")[2] for each in options.all("label"))
    )


def _matches_pattern(pattern: str, text: str) -> bool:
    try:
        return not pattern or contains_match(pattern, text)
    except RegexpError:
        return False


def _age(item: Item, now: datetime) -> str:
    return f"{human_duration(now.timestamp() - int(item['createdAt']) / _NANO)} ago"


def container_rows(containers: Sequence[Item], now: datetime, *, is_full: bool) -> list[Sequence[str]]:
    titles = ("CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE")
    rows: list[Sequence[str]] = [titles]
    for each in containers:
        labels = each["labels"]
        rows.append(
            (
                short(each["id"], is_full=is_full), short(each["image"]["image"], is_full=is_full), _age(each, now), _STATES[each["state"]],
                each["metadata"]["name"], str(each["metadata"]["attempt"]), short(each["podSandboxId"], is_full=is_full),
                labels["io.kubernetes.pod.name"], labels["io.kubernetes.pod.namespace"],
            )
        )  # fmt: skip
    return rows


def pod_rows(sandboxes: Sequence[Item], now: datetime, *, is_full: bool) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME")]
    for each in sandboxes:
        metadata = each["metadata"]
        state = _SANDBOX_STATES[each["state"]]
        identifier = short(each["id"], is_full=is_full)
        rows.append(
            (
                identifier,
                _age(each, now),
                state,
                metadata["name"],
                metadata["namespace"],
                str(metadata["attempt"]),
                "(default)",
            )
        )
    return rows


def image_rows(images: Sequence[Item], *, is_full: bool, shows_digests: bool) -> list[Sequence[str]]:
    digest_title = ("DIGEST",) if shows_digests else ()
    rows: list[Sequence[str]] = [("IMAGE", "TAG", *digest_title, "IMAGE ID", "SIZE")]
    for each in images:
        for tag in each["repoTags"] or ["<none>:<none>"]:
            name, _, version = tag.rpartition(":")
            digest = next(iter(each["repoDigests"]), "").rpartition("@")[2]
            digests = (short(digest, is_full=is_full),) if shows_digests else ()
            rows.append(
                (
                    name,
                    version,
                    *digests,
                    short(each["id"], is_full=is_full),
                    human_size(int(each["size"]), 3),
                )
            )
    return rows


def stats_rows(stats: Sequence[Item]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("CONTAINER", "NAME", "CPU %", "MEM", "DISK", "INODES")]
    for each in stats:
        attributes = each["attributes"]
        cores = int(each["cpu"]["usageNanoCores"]["value"]) / _NANO
        memory = int(each["memory"]["workingSetBytes"]["value"])
        disk, inodes = (
            each["writableLayer"]["usedBytes"]["value"],
            each["writableLayer"]["inodesUsed"]["value"],
        )
        rows.append(
            (
                short(attributes["id"]), attributes["metadata"]["name"], f"{cores * 100:.2f}", human_size(memory), human_size(int(disk)), inodes,
            )
        )  # fmt: skip
    return rows


_USAGE: Final = """\
NAME:
   crictl - client for CRI

USAGE:
   crictl [global options] command [command options] [arguments...]

COMMANDS:
   exec                Run a command in a running container
   images, image, img  List images
   info                Display information of the container runtime
   inspect             Display the status of one or more containers
   inspecti            Return the status of one or more images
   inspectp            Display the status of one or more pods
   logs                Fetch the logs of a container
   pods, p             List pods
   ps                  List containers
   pull                Pull an image from a registry
   rm                  Remove one or more containers
   rmi                 Remove one or more images
   rmp                 Remove one or more pods
   stats               List container(s) resource usage statistics
   stop                Stop one or more running containers
   stopp               Stop one or more running pods
   version             Display runtime version information
"""


def usage() -> str:
    return _USAGE
