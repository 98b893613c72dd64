"""What the flags of a manager say of its simulated nodes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mockube.client.connection_options import ClientConnectionOptions
from mockube.controller_manager import catalog
from mockube.controller_manager.components import _kubelet_settings
from mockube.controller_manager.config.settings import Config, Controllers, Networks, Simulation
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support import packs

SERVER = ClientConnectionOptions(master="http://127.0.0.1:1")
IMAGES = Path("images.yaml")
IPAM, VOLUMES, ROOT_CA = catalog.NODE_IPAM.name, catalog.ATTACH_DETACH.name, catalog.ROOT_CA.name


def settings_of(*names, networks=None, controllers=None, **simulation):
    options = Config(
        server=SERVER,
        simulation=Simulation(**{"simulate_nodes": plain_nodes(1), **simulation}),
        networks=networks or Networks(),
        controllers=controllers or Controllers(),
    )
    return _kubelet_settings(SimpleNamespace(options=options, names=names))


def test_controllers_of_this_manager_work_for_the_nodes():
    found = [
        (each.waits_for_pod_cidrs, each.attaches_volumes, each.has_root_ca)
        for each in (settings_of(), settings_of(IPAM), settings_of(VOLUMES), settings_of(ROOT_CA))
    ]
    assert found == [
        (False, False, False),
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_nodes_without_an_allocator_of_pod_cidrs_do_not_wait_for_one():
    assert not settings_of(IPAM, networks=Networks(allocate_node_cidrs=False)).waits_for_pod_cidrs


@pytest.mark.parametrize(
    ("simulation", "expected"),
    [
        ({}, "assume"),
        ({"unknown_programs": "wait"}, "wait"),
        ({"simulate_unknown_programs": "fail"}, "fail"),
        ({"simulate_unknown_programs": "fail", "unknown_programs": "wait"}, "fail"),
    ],
)
def test_older_flag_of_unknown_programs_precedes(simulation, expected):
    assert settings_of(**simulation).unknown_programs == expected


@pytest.mark.parametrize(("runtime", "expected"), [("simulated", None), ("process", IMAGES)])
def test_images_are_programs_of_this_machine_with_processes_only(runtime, expected):
    found = settings_of(images=IMAGES, container_runtime=runtime)
    assert found.process_images == expected
    assert found.image_files == [IMAGES]


def test_unknown_images_fail_on_request():
    assert settings_of(unknown_images="fail").fails_unknown_images
    assert not settings_of().fails_unknown_images


def test_images_of_packs_are_added(pack_folder):
    images = {"web": {"names": ["web"]}}
    packs.install(pack_folder, "imaged_pack", packs.pack_of(f"images={images!r}"))
    packs.install(pack_folder, "plain_pack", packs.pack_of(""))
    chosen = Controllers(packs=("imaged_pack", "plain_pack"))
    assert settings_of(controllers=chosen).pack_images == [images]
