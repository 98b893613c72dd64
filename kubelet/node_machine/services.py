"""Answers the programs of the machines of nodes: crictl, journalctl, systemctl, kubeadm and those of the network."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mockube.apimachinery import meta
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.kinds import (
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.container_runtime.image_service import ImageService, PullFailed
from mockube.container_runtime.images.resolution import full_name
from mockube.container_runtime.logs import LogLine, LogSource
from mockube.container_runtime.node_journal import JournalEntry
from mockube.container_runtime.node_machine import NodeCredentials, NodeMachines, ServiceFailed
from mockube.container_runtime.pod_log_paths import log_path
from mockube.container_runtime.runs import ContainerNotFound, ContainerRun, NoLogs, run_of
from mockube.container_runtime.runtime import ContainerRuntime, ExecRequest, RuntimeProblem
from mockube.kubelet.node_objects import internal_ip
from mockube.kubelet.pod_objects import ROOT_CA
from mockube.kubelet.settings import KubeletContext

from . import cri_objects, journal, machine_network
from .etcd_store import EtcdStore
from .exec_sessions import ExecSessions
from .log_readers import LogReader, LogReaders
from .node_certificates import NodeCertificates
from .tokens import BootstrapTokens, authority_hash
from .units import NodeUnits

CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_SYSTEM: Final = "kube-system"
_KUBEADM_CONFIGURATION: Final = Key(_SYSTEM, "kubeadm-config")
MAX_EVENTS: Final = 5_000
"""The Events that are read for a journal."""
MAX_LOG_BYTES: Final = 256 << 10
"""The last bytes of the log of a container that a file of a node has."""
_MAX_LINES: Final = 10_000
"""The last lines of the log of a container that a file of a node has."""
_AUTHORITY_SECONDS: Final = 10.0
Answer = Callable[[ReadOnlyTree, Mapping[str, Any]], Awaitable[Any]]


class MachineServices:
    """The `NodeServices` of simulated nodes."""

    def __init__(self, context: KubeletContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._settings = context.settings
        self._context = context
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS)
        self._authority = b""
        self._certificates = NodeCertificates(context.settings.installation)
        self._administrator: tuple[str, str] | None = None
        self._authority_due = 0.0
        """When the CA certificates are requested again, if they were not there."""
        self._sessions = ExecSessions()
        self._readers = LogReaders()
        self._tokens = BootstrapTokens(context.client, context.clock, context.random)
        self._units: NodeUnits | None = None
        self._etcd: EtcdStore | None = None
        self._answers: Mapping[str, Answer] = {
            "units": self._unit_states,
            "unit.change": self._change_unit,
            "journal": self._journal,
            "logs": self._log_files,
            "machine": self._machine,
            "cri.containers": self._containers,
            "cri.inspect": self._inspect,
            "cri.images": self._list_images,
            "cri.logs": self._logs,
            "cri.exec": self._exec,
            "cri.exec.next": self._exec_next,
            "cri.exec.input": self._exec_input,
            "cri.stop": self._stop,
            "cri.rm": self._remove,
            "cri.stopp": self._stop_pod,
            "cri.rmp": self._remove_pod,
            "cri.pull": self._pull,
            "cri.rmi": self._remove_image,
            "cri.stats": self._stats,
            "cri.version": self._version,
            "cri.info": self._info,
            "tokens": self._list_tokens,
            "token.create": self._create_token,
            "token.delete": self._delete_token,
            "token.generate": self._generate_token,
            "kubeadm.configuration": self._cluster_configuration,
            "etcd": self._etcd_status,
            "etcd.check": self._check_revision,
        }

    def connect(self, runtime: ContainerRuntime, images: ImageService, machines: NodeMachines) -> None:
        """Name the run-time of the containers, and what has the machines."""
        self._runtime = runtime
        self._images = images
        self._machines = machines
        self._units = NodeUnits(self._context, machines, self._api_servers)
        self._etcd = EtcdStore(self._context, machines, self._find_administrator, self.pods)

    @property
    def units(self) -> NodeUnits:
        assert self._units is not None
        return self._units

    # --- what the files of machines are made from

    def node(self, name: str) -> ReadOnlyTree | None:
        return self._nodes.lister.get("", name)

    def pods(self, name: str) -> Sequence[ReadOnlyTree]:
        return [pod.object for pod in self._pods.lister.by_index(BY_NODE, name)]

    def cluster_dns(self) -> str:
        return self._settings.cluster_dns

    def credentials(self, node: ReadOnlyTree) -> NodeCredentials:
        endpoint = urlsplit(self.api_server()).hostname or ""
        certificates = self._certificates.of_node(meta.name(node), (internal_ip(node), endpoint))
        return NodeCredentials(certificates, self._find_administrator())

    def _find_administrator(self) -> tuple[str, str] | None:
        paths = self._settings.installation.administrator
        if self._administrator is None and paths is not None:
            with suppress(OSError, UnicodeDecodeError):
                certificate, key = (Path(path).read_text(encoding="ascii") for path in paths)
                self._administrator = certificate, key
        return self._administrator

    def api_server(self) -> str:
        return self._api_servers()[0]

    def _api_servers(self) -> Sequence[str]:
        """Return the URLs of the API servers of all control-plane nodes, that of the first one first."""
        port = self._settings.installation.port
        nodes = [node for node in self._nodes.lister.all() if CONTROL_PLANE in meta.labels(node)]
        nodes.sort(key=lambda node: (len(meta.name(node)), meta.name(node)))
        servers = [f"https://{address}:{port}" for node in nodes if (address := internal_ip(node))]
        return servers or [self._settings.server or f"https://127.0.0.1:{port}"]

    def authority(self) -> bytes:
        return self._authority

    async def wait_ready(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        now = self._clock.monotonic()
        if not self._authority and now >= self._authority_due:
            self._authority_due = now + _AUTHORITY_SECONDS
            with suppress(ApiError, NoResponse):
                config_map = await self._client.get(CONFIG_MAPS, Key(_SYSTEM, ROOT_CA))
                self._authority = str((config_map.get("data") or {}).get("ca.crt") or "").encode()

    async def answer(self, node: str, service: str, arguments: Mapping[str, Any]) -> Any:
        tree, answer = self.node(node), self._answers.get(service)
        if tree is None or answer is None:
            raise ServiceFailed(f"the machine of node {node} has no service {service}")
        try:
            return await answer(tree, arguments)
        except (ApiError, NoResponse) as error:
            raise ServiceFailed(str(error)) from error

    # --- systemd

    async def _unit_states(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        return self.units.states(node)

    async def _change_unit(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        await self.units.change(node, arguments["unit"], arguments["action"])

    async def _journal(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        return [
            {
                "at": entry.at.isoformat(), "unit": entry.unit, "identifier": entry.identifier, "pid": entry.pid, "text": entry.text,
                "priority": entry.priority,
            }
            for entry in await self.journal(node)
        ]  # fmt: skip

    async def journal(self, node: ReadOnlyTree) -> list[JournalEntry]:
        """Return the journal of a node in the order of time."""
        pods = self.pods(meta.name(node))
        listed = await self._client.list(EVENTS, field_selector="source=kubelet", limit=MAX_EVENTS)
        by_uid = {kubelet_uid(pod): pod for pod in pods}
        entries = [
            *journal.node_start_entries(node),
            *journal.pod_entries(pods),
            *journal.event_entries(listed.items, meta.name(node), by_uid),
            *self.units.entries(node),
        ]
        return sorted(entries, key=lambda entry: entry.at)

    # --- the container runtime

    async def _containers(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        pods = self.pods(meta.name(node))
        return {"containers": cri_objects.containers(pods), "sandboxes": cri_objects.sandboxes(pods)}

    def _find(self, node: ReadOnlyTree, identifier: str) -> tuple[ReadOnlyTree, Mapping[str, Any]]:
        """Return the pod and the description of a container."""
        for pod in self.pods(meta.name(node)):
            for item in cri_objects.containers([pod]):
                if item["id"] == identifier:
                    return pod, item
        raise ServiceFailed(
            f'rpc error: code = NotFound desc = an error occurred when try to find container "{identifier}": not found'
        )

    def _find_pod(self, node: ReadOnlyTree, identifier: str) -> ReadOnlyTree:
        for pod in self.pods(meta.name(node)):
            if cri_objects.sandbox_id(pod) == identifier:
                return pod
        raise ServiceFailed(
            f'rpc error: code = NotFound desc = an error occurred when try to find sandbox "{identifier}": not found'
        )

    async def _inspect(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        for pod in self.pods(meta.name(node)):
            for sandbox in cri_objects.sandboxes([pod]):
                if sandbox["id"] == arguments["id"]:
                    return cri_objects.status_of_sandbox(sandbox, pod)
        pod, item = self._find(node, arguments["id"])
        name, attempt = item["metadata"]["name"], item["metadata"]["attempt"]
        log = log_path(pod, name, attempt)
        return cri_objects.status_of_container(item, pod, log, await self._bound_volumes(pod))

    async def _bound_volumes(self, pod: ReadOnlyTree) -> dict[str, ReadOnlyTree]:
        """Return the PersistentVolumes of a pod's claims by the names of its volumes."""
        bound = dict[str, ReadOnlyTree]()
        for volume in pod["spec"].get("volumes") or ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if volume.get("ephemeral"):
                claim = f"{meta.name(pod)}-{volume['name']}"
            with suppress(NotFound):
                if claim:
                    found = await self._client.get(PERSISTENT_VOLUME_CLAIMS, Key(meta.namespace(pod), claim))
                    key = Key("", found["spec"].get("volumeName") or "")
                    if key.name:
                        bound[volume["name"]] = await self._client.get(PERSISTENT_VOLUMES, key)
        return bound

    async def _list_images(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        name = meta.name(node)
        used = [full_name(each["userSpecifiedImage"]) for each in self._specified_images(name)]
        return cri_objects.images(self._images.list_images(name), used)

    def _specified_images(self, node: str) -> list[Mapping[str, Any]]:
        return [item["image"] for item in cri_objects.containers(self.pods(node))]

    def _run(self, pod: ReadOnlyTree, item: Mapping[str, Any]) -> ContainerRun:
        name, attempt = item["metadata"]["name"], item["metadata"]["attempt"]
        try:
            run = run_of(pod, name)
            return run if run.restarts == attempt else run_of(pod, name, previous=True)
        except NoLogs as error:
            raise ServiceFailed(str(error)) from error

    async def _open_log(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        try:
            return await self._runtime.logs(pod, name, run)
        except RuntimeProblem as error:
            raise ServiceFailed(str(error)) from error

    async def _logs(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        """Return the next part of a log: that of an open reader, or of a new one."""
        number = arguments.get("reader") or await self._add_reader(node, arguments)
        reader = self._readers.find(number)
        latest = self._pods.lister.get(*Key.of(reader.pod))
        lines = await reader.read(self._clock.now(), None if latest is None else latest.object)
        has_more = reader.has_more or (arguments["follow"] and not reader.has_ended)
        if not has_more:
            self._readers.close(number)
        texts = [_text(line, with_time=arguments["timestamps"]) for line in lines]
        return {"lines": texts, "reader": number if has_more else 0, "waits": not reader.has_more}

    async def _add_reader(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> int:
        pod, item = self._find(node, arguments["id"])
        name = item["metadata"]["name"]
        run = self._run(pod, item)
        if arguments.get("previous"):
            try:
                run = run_of(pod, name, previous=True)
            except NoLogs as error:
                raise ServiceFailed(str(error)) from error
        since = _time(arguments.get("since") or "")
        source = await self._open_log(pod, name, run)
        return self._readers.add(LogReader(source, pod, name, run, since=since, tail=arguments["tail"]))

    async def _log_files(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        """Return the contents of the files with logs of containers."""
        texts: dict[str, str] = {}
        paths = set(arguments["paths"])
        for pod in self.pods(meta.name(node)):
            for item in cri_objects.containers([pod]):
                name, attempt = item["metadata"]["name"], item["metadata"]["attempt"]
                path = log_path(pod, name, attempt)
                if path in paths:
                    run = self._run(pod, item)
                    reader = LogReader(await self._open_log(pod, name, run), pod, name, run, tail=_MAX_LINES)
                    with closing(reader.source):
                        lines = await reader.read(self._clock.now(), pod)
                    texts[path] = "".join(map(_cri_line, lines))[-MAX_LOG_BYTES:]
        return texts

    async def _exec(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        pod, item = self._find(node, arguments["id"])
        request = ExecRequest(
            command=arguments["command"], has_input=arguments["stdin"], has_terminal=arguments["tty"]
        )
        try:
            command = await self._runtime.exec(pod, item["metadata"]["name"], request)
        except (ContainerNotFound, RuntimeProblem) as error:
            message = "rpc error: code = Unknown desc = container is in CONTAINER_EXITED state"
            raise ServiceFailed(
                f"execing command in container: {message if isinstance(error, ContainerNotFound) else error}"
            ) from error
        return await self._sessions.begin(command, has_input=arguments["stdin"])

    async def _exec_next(self, _: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        return await self._sessions.next(arguments["session"])

    async def _exec_input(self, _: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        await self._sessions.write(arguments["session"], arguments["data"])

    def _kill(self, pod: ReadOnlyTree, name: str) -> None:
        self._runtime.stop_container(pod, name, 0.0)
        self._machines.kill(pod, name)

    async def _stop(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        pod, item = self._find(node, arguments["id"])
        if item["state"] == cri_objects.RUNNING:
            self._kill(pod, item["metadata"]["name"])

    async def _remove(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        pod, item = self._find(node, arguments["id"])
        if item["state"] != cri_objects.RUNNING:
            raise ServiceFailed(
                "the kubelet of a simulated node keeps the containers that have ended, for their logs: it removes them with the pod"
            )
        if not arguments["force"]:
            raise ServiceFailed(f'container "{item["id"]}" is running, please stop it first')
        self._kill(pod, item["metadata"]["name"])

    async def _stop_pod(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        pod = self._find_pod(node, arguments["id"])
        for item in cri_objects.containers([pod]):
            if item["state"] == cri_objects.RUNNING:
                self._kill(pod, item["metadata"]["name"])

    async def _remove_pod(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        pod = self._find_pod(node, arguments["id"])
        runs = any(item["state"] == cri_objects.RUNNING for item in cri_objects.containers([pod]))
        if runs and not arguments["force"]:
            raise ServiceFailed(f'pod sandbox "{arguments["id"]}" is running, please stop it first')
        await self._stop_pod(node, arguments)

    async def _pull(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        try:
            image = self._images.pull_image(arguments["image"], has_credentials=arguments["has_credentials"])
        except PullFailed as error:
            raise ServiceFailed(f"pulling image: {error}") from error
        self._images.add_image(meta.name(node), image)
        return next((name.rpartition("@")[2] for name in image.names if "@" in name), arguments["image"])

    async def _remove_image(self, node: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        name = meta.name(node)
        for used in self._specified_images(name):
            if full_name(used["userSpecifiedImage"]) in arguments["names"]:
                raise ServiceFailed(
                    f'the image "{used["userSpecifiedImage"]}" is in use by a container of a simulated node'
                )
        self._images.remove_image(name, arguments["names"])

    async def _stats(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        found, now = [], self._clock.now()
        for pod in self.pods(meta.name(node)):
            for item in cri_objects.containers([pod]):
                if item["state"] != cri_objects.RUNNING:
                    continue
                name = item["metadata"]["name"]
                usage = self._runtime.container_stats(pod, name)
                disk = self._runtime.disk_usage(pod)
                cores, memory = (0.0, 0.0) if usage is None else (usage.cores, usage.memory)
                written = 0 if disk is None else disk.containers.get(name, 0)
                found.append(cri_objects.stats(item, cores=cores, memory=memory, disk=written, at=now))
        return found

    async def _version(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        info = (node.get("status") or {}).get("nodeInfo") or {}
        name, __, version = (info.get("containerRuntimeVersion") or "containerd://").partition("://")
        return {"version": "0.1.0", "runtimeName": name, "runtimeVersion": version, "runtimeApiVersion": "v1"}

    async def _info(self, _: ReadOnlyTree, __: Mapping[str, Any]) -> Any:
        conditions = [
            {"type": name, "status": True, "reason": "", "message": ""}
            for name in ("RuntimeReady", "NetworkReady")
        ]
        config = {
            "containerdEndpoint": "/run/containerd/containerd.sock",
            "rootDir": "/var/lib/containerd/io.containerd.grpc.v1.cri",
        }
        return {
            "status": {"conditions": conditions},
            "config": config,
            "cniconfig": {"PluginConfDir": "/etc/cni/net.d"},
        }

    # --- the machine and kubeadm

    async def _machine(self, node: ReadOnlyTree, _: Mapping[str, Any]) -> Any:
        stopped = self.units.stopped(node)
        return {
            "version": ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") or "",
            "created": meta.metadata(node).get("creationTimestamp") or "",
            "sockets": machine_network.sockets(self.pods(meta.name(node)), stopped),
            "interfaces": machine_network.interfaces(node),
            "routes": machine_network.routes(node),
        }

    async def _cluster_configuration(self, _: ReadOnlyTree, __: Mapping[str, Any]) -> Any:
        """Return the text of the configuration that kubeadm keeps in the cluster; "" if there is none."""
        try:
            config_map = await self._client.get(CONFIG_MAPS, _KUBEADM_CONFIGURATION)
        except NotFound:
            return ""
        return str((config_map.get("data") or {}).get("ClusterConfiguration") or "")

    async def _list_tokens(self, _: ReadOnlyTree, __: Mapping[str, Any]) -> Any:
        return await self._tokens.list()

    async def _create_token(self, _: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        token = await self._tokens.create(
            arguments["token"], arguments["ttl"], arguments["description"], usages=arguments["usages"], groups=arguments["groups"]
        )  # fmt: skip
        await self.wait_ready()
        digest = authority_hash(self._authority) if self._authority else ""
        return {"token": token, "server": self.api_server().rpartition("//")[2], "hash": digest}

    async def _delete_token(self, _: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        await self._tokens.delete(arguments["token"])

    @property
    def etcd(self) -> EtcdStore:
        assert self._etcd is not None
        return self._etcd

    async def _etcd_status(self, _: ReadOnlyTree, __: Mapping[str, Any]) -> Any:
        return await self.etcd.status()

    async def _check_revision(self, _: ReadOnlyTree, arguments: Mapping[str, Any]) -> Any:
        await self.etcd.check(arguments["revision"])

    async def _generate_token(self, _: ReadOnlyTree, __: Mapping[str, Any]) -> Any:
        return self._tokens.generate()


def _text(line: LogLine, *, with_time: bool) -> tuple[int, str]:
    text = line.text.decode("utf-8", "surrogateescape")
    return line.stream, f"{_stamp(line.at)} {text}" if with_time else text


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"


def _cri_line(line: LogLine) -> str:
    """Return a line as the log files of containers have it; `P` marks a part of a line."""
    text = line.text.decode("utf-8", "surrogateescape")
    tag = "F" if text.endswith("\n") else "P"
    stream = "stdout" if line.stream == 1 else "stderr"
    return f"{_stamp(line.at)} {stream} {tag} {text.removesuffix(chr(10))}\n"


def _time(text: str) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise ServiceFailed(f'failed to parse the time "{text}"') from error
