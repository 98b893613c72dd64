"""A store remembers its profile."""

import pytest

from mockube.apiserver.stored_release import record_minor
from mockube.clusters.profiles import FILE, Profile, record_profile, stored_profile


@pytest.mark.parametrize("profile", [Profile("minimal"), Profile("kubeadm", 3)])
def test_recorded_profile_is_read_again(tmp_path, profile):
    record_profile(tmp_path, profile)
    assert stored_profile(tmp_path) == profile


def test_store_of_an_earlier_release_is_minimal(tmp_path):
    assert stored_profile(tmp_path) is None
    record_minor(tmp_path, "1.36")
    assert stored_profile(tmp_path) == Profile("minimal")


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("kubeadm 999", Profile("kubeadm", 15)),
        ("kubeadm x", Profile("kubeadm", 1)),
        ("\x00", Profile("minimal")),
    ],
)
def test_broken_record_is_read_as_far_as_possible(tmp_path, text, profile):
    (tmp_path / FILE).write_text(text)
    assert stored_profile(tmp_path) == profile
