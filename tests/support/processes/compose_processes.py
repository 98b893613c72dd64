"""The services of compose.yaml as plain processes: the same commands, each replica at its own loopback address.

The harness does what Docker would do: service names become addresses, volumes become folders, and a killed process is
restarted.
"""

import contextlib
import os
import re
import signal
import sys

from tests.support.processes.acknowledged_writes import RequestSender
from tests.support.processes.compose_file import services
from tests.support.processes.process import Process
from tests.support.stores.etcd_server import etcd_binary

REPLICAS = {"etcd": 1, "apiserver": 2, "controller-manager": 2}
PROGRAMS = {
    "etcd": lambda: [etcd_binary()],
    "apiserver": lambda: [sys.executable, "-m", "mockube.apiserver"],
    "controller-manager": lambda: [sys.executable, "-m", "mockube.controller_manager"],
}
READY = {
    "etcd": re.compile("serving client traffic insecurely|serving insecure client requests"),
    "apiserver": re.compile("Ready on"),
    "controller-manager": re.compile("Health and metrics:"),
}
LEADS = "Controllers: "
"""What a manager logs when it holds the lease."""


class Program(Process):
    def __init__(self, service, arguments):
        super().__init__(*arguments)
        self.READY = READY[service]
        self._service = service

    def _program(self):
        return PROGRAMS[self._service]()


class Replica:
    def __init__(self, service, arguments):
        self.service = service
        self._arguments = arguments
        self._process = None

    def start(self):
        self._process = Program(self.service, self._arguments).start()

    def kill(self):
        """Kill it as a crash would; then it is restarted."""
        self._process.signal(signal.SIGKILL)
        self._process.wait()
        self.start()

    def stop(self):
        return self._process.stop()

    @property
    def is_leader(self):
        return any(LEADS in line for line in self._process.log)


class Project:
    """Run the services for a block."""

    def __init__(self, folder):
        self._folder = folder
        network = f"127.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}"
        """Concurrent test processes use different addresses."""
        hosts = iter(range(1, 255))
        self._addresses = {
            service: [f"{network}.{next(hosts)}" for _ in range(number)]
            for service, number in REPLICAS.items()
        }
        self.replicas = {service: self._replicas(service) for service in REPLICAS}
        self.kubeconfig = folder / "pki" / "admin.conf"
        self.urls = [f"https://{address}:6443" for address in self._addresses["apiserver"]]

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for replicas in self.replicas.values():
                for replica in replicas:
                    replica.start()
                    stack.callback(replica.stop)
            self.request_sender = RequestSender(self.kubeconfig, self.urls)
            stack.callback(self.request_sender.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        self._stack.close()

    def _replicas(self, service):
        words = services()[service]["command"][1:]
        return [
            Replica(service, [self._replace_names(word, service, index) for word in words])
            for index in range(REPLICAS[service])
        ]

    def _replace_names(self, word, service, index):
        """Return a word of the command, with Docker's names replaced for this replica."""
        word = re.sub(r"\b(0\.0\.0\.0|127\.0\.0\.1)\b", self._addresses[service][index], word)
        for peer, addresses in self._addresses.items():
            word = word.replace(f"//{peer}:", f"//{addresses[index % len(addresses)]}:")
        for volume in services()[service]["volumes"]:
            name, target, *_ = volume.split(":")
            word = re.sub(rf"(?<==){target}(?=/|$)", str(self._folder / name), word)
        return word
