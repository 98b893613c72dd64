import pytest

from mockube.operators.announced_retries import announced_seconds


@pytest.mark.parametrize(
    ("log", "seconds"),
    [
        pytest.param("[ERROR] Handler 'create' failed with an exception and will try again in 60 seconds: x\n", 60, id="kopf"),
        pytest.param("Retrying in 2.5s\nretrying in 30s\nretry after 10 sec\n", 30, id="longest"),
        pytest.param("try again in 5 minutes\nretry in 7 steps\nretry in 90ms\n", 0, id="no seconds"),
        pytest.param("", 0, id="nothing"),
    ],
)  # fmt: skip
def test_time_until_the_next_try_is_read_from_a_log(log, seconds):
    assert announced_seconds(log) == seconds
