"""All programs of nodes by their names."""

from collections.abc import Mapping
from typing import Final

from mockube.container_runtime.simulated.shell.process import Program

from . import etcd, kubeadm
from .crictl import crictl
from .journalctl import journalctl
from .machine_network import ip, netstat, ss
from .machine_processes import ps
from .openssl import openssl
from .systemctl import systemctl

NODE_PROGRAMS: Final[Mapping[str, Program]] = {
    "crictl": crictl,
    "ip": ip,
    "journalctl": journalctl,
    "netstat": netstat,
    "openssl": openssl,
    "ps": ps,
    "ss": ss,
    "systemctl": systemctl,
    **etcd.PROGRAMS,
    **kubeadm.PROGRAMS,
}
