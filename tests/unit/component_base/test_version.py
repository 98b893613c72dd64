"""The release of a process, and the output of --version."""

import pytest

from mockube.component_base.version import architecture, version_problem, version_text


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("false", ""),
        ("raw", ""),
        ("v1.37.2", ""),
        ("v1.37.2-custom", ""),
        ("v1.37.2-0a.1+build.007", ""),
        ("v1.2.3", 'version "v1.2.3" must match major/minor/patch of default version "v1.37.2"'),
        ("v1.37.02", 'illegal zero-prefixed version component "02" in "v1.37.02"'),
        ("v1.37.2-a.00", 'illegal zero-prefixed version component "00" in "v1.37.2-a.00"'),
        ("v1.37", 'illegal version string "v1.37"'),
        ("vv", 'could not parse "vv" as version'),
        ("v1.37.2_", 'could not parse pre-release/metadata (_) in version "v1.37.2_"'),
        ("v1.37.2-", 'could not parse pre-release/metadata (-) in version "v1.37.2-"'),
    ],
)
def test_reported_version_must_be_of_same_release(flag, problem):
    assert version_problem(flag) == problem


def test_older_minor_has_its_own_release():
    assert version_problem("v1.31.14-custom", "1.31") == ""
    assert version_problem("v1.37.2-custom", "1.31").endswith('of default version "v1.31.14"')


@pytest.mark.parametrize(
    ("flag", "text"), [("false", ""), ("v1.37.2-custom", ""), ("true", "Kubernetes v1.37.2")]
)
def test_version_flag_accepts_true_and_raw_only(flag, text):
    assert version_text(flag) == text


def test_raw_version_is_gos_struct():
    assert version_text("raw").startswith(
        'version.Info{Major:"1", Minor:"37", EmulationMajor:"", EmulationMinor:"", MinCompatibilityMajor:"",'
        ' MinCompatibilityMinor:"", GitVersion:"v1.37.2", GitCommit:"'
    )


@pytest.mark.parametrize(
    ("machine", "named"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("other", "other")]
)
def test_platform_has_gos_name(machine, named):
    assert architecture(machine) == named
