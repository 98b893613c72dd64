"""Fixtures: an API server process for real clients, and a namespace per test."""

import itertools
from pathlib import Path

import pytest

from tests.support.processes import go_programs, kubectl_binaries
from tests.support.processes.kubectl_binaries import Kubectl
from tests.support.processes.process import ApiServerProcess

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ApiServerProcess(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def go_program(tmp_path_factory):
    """Build the program in `go/`."""
    return go_programs.build(Path(__file__).parent / "go", tmp_path_factory.mktemp("go") / "clients")


@pytest.fixture
def namespace():
    return f"test-{next(_numbers)}"


@pytest.fixture(params=kubectl_binaries.binaries())
def kubectl(request, server, namespace, tmp_path):
    """Each available version of kubectl, with the namespace flag set."""
    run = Kubectl(kubectl_binaries.require_kubectl(request.param), server.kubeconfig, tmp_path)
    run("create", "namespace", namespace)

    def run_in_namespace(*arguments, **options):
        return run("--namespace", namespace, *arguments, **options)

    run_in_namespace.attempt = lambda *arguments, **options: run.attempt(
        "--namespace", namespace, *arguments, **options
    )
    return run_in_namespace
