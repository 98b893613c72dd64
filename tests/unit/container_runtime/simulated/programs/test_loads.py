"""What commands use of a node: memory over time, and cores."""

from math import inf

import pytest

from mockube.container_runtime.load import MemoryStep, RunLoad
from mockube.container_runtime.simulated.programs.program import program_of
from tests.support.images import IMAGES

MEBIBYTE = 1 << 20


def load_of(*argv):
    return program_of(IMAGES, {"name": "c", "image": "example.org/tools", "command": list(argv)}).load


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "cores"),
    [
        ("while true; do true; done", 1.0),
        ("while :; do :; done", 1.0),
        ("i=0; while true; do i=$((i+1)); done", 1.0),
        ("yes > /dev/null", 1.0),
        ("dd if=/dev/zero of=/dev/null", 1.0),
        ("cat /dev/zero > /dev/null", 1.0),
        ("sha256sum /dev/zero", 1.0),
        ("md5sum /dev/urandom", 1.0),
        ("stress --cpu 2", 2.0),
        ("stress-ng -c 3", 3.0),
        ("stress -cpus 2", 2.0),
        ("sleep 1000", 0.0),
        ("while true; do sleep 5; done", 0.0),
        ("tail -f /dev/null", 0.0),
        ("stress --vm 1 --vm-bytes 150M --vm-hang 1", 0.0),
    ],
)
def test_loops_keep_cores_busy_and_waits_do_not(script, cores):
    assert load_of("sh", "-c", script).cores_at(1000) == pytest.approx(cores, abs=0.01)


def test_loop_that_begins_later_is_busy_from_then_on():
    load = load_of("sh", "-c", "sleep 60; while true; do :; done")
    assert load.cores_at(30) == pytest.approx(0, abs=0.01)
    assert load.cores_at(90) == 1.0


@pytest.mark.parametrize(
    ("script", "at", "mebibytes"),
    [
        ("stress --vm 2 --vm-bytes 100M --vm-keep", 10, 200),
        ("stress --vm 1 --vm-bytes 100M -t 10; sleep 100", 5, 100),
        ("stress --vm 1 --vm-bytes 100M -t 10; sleep 100", 20, 0),
        ("tail /dev/zero", 2, 2048),
        ("sleep 100", 50, 0),
    ],
)
def test_memory_is_in_use_while_its_program_runs(script, at, mebibytes):
    assert load_of("sh", "-c", script).memory_at(at) == pytest.approx(mebibytes * MEBIBYTE)


def test_stress_ends_after_its_timeout():
    program = program_of(
        IMAGES, {"name": "c", "image": "polinux/stress", "command": ["stress", "-c", "1", "-t", "30s"]}
    )
    assert (program.seconds, program.exit_code) == (30.0, 0)


@pytest.mark.parametrize(
    ("steps", "limit", "expected"),
    [
        ([], 100, None),
        ([(0, 50), (3, 200)], 100, 3.0),
        ([(0.5, 200)], 100, 0.0),
        ([(2, 100)], 100, None),
        ([(2, inf)], 2 << 30, 4.0),
        ([(1, 50), (2, 10)], 100, None),
    ],
)
def test_time_at_which_memory_exceeds_a_limit(steps, limit, expected):
    load = RunLoad(memory=tuple(MemoryStep(*step) for step in steps))
    assert load.exceeds_at(limit) == expected


@pytest.mark.parametrize(
    ("image", "arguments"),
    [
        ("vish/stress", ["-cpus", "2"]),
        ("alexeiled/stress-ng", ["-c", "2"]),
        ("progrium/stress", ["--cpu", "2"]),
    ],
)
def test_image_of_stress_runs_it_with_the_arguments_of_a_pod(image, arguments):
    assert program_of(IMAGES, {"name": "c", "image": image, "args": arguments}).load.cores_at(10) == 2.0


def test_memory_eater_grows_by_a_step_each_second():
    arguments = ["80Mi", "0", "100Mi", "10", "1"]
    image = "us-central1-docker.pkg.dev/genuine-flight-317411/devel/memory-eater:1.0"
    load = program_of(IMAGES, {"name": "c", "image": image, "args": arguments}).load
    assert load.exceeds_at(200 << 20) is None
    assert [int(load.exceeds_at(limit << 20)) for limit in (80, 90, 100)] == [0, 1, 2]


@pytest.mark.parametrize("arguments", [[], ["80Mi", "0", "100Mi"], ["a", "0", "100Mi", "10", "1"]])
def test_memory_eater_without_its_arguments_ends(arguments):
    program = program_of(IMAGES, {"name": "c", "image": "x", "command": ["memory-eater", *arguments]})
    assert (program.seconds, program.exit_code) == (0.0, 2)
