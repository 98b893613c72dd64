"""Integers in unstructured objects are converted as in Go."""

import pytest

from mockube.apiserver.schema.numbers import convert_numbers


def container(port):
    return {"spec": {"template": {"spec": {"containers": [{"ports": [{"containerPort": port}]}]}}}}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"spec": {"replicas": 2.0}}, {"spec": {"replicas": 2}}),
        ({"spec": {"replicas": -0.0}}, {"spec": {"replicas": 0}}),
        ({"spec": {"replicas": 2.5}}, {"spec": {"replicas": 2.5}}),
        ({"spec": {"replicas": 20_000_000_000}}, {"spec": {"replicas": -1474836480}}),
        ({"spec": {"replicas": 2147483648.0}}, {"spec": {"replicas": -2147483648}}),
        ({"spec": {"replicas": 2**63}}, {"spec": {"replicas": 0}}),
        ({"spec": {"replicas": "2"}}, {"spec": {"replicas": "2"}}),
        ({"metadata": {"generation": 1e3}}, {"metadata": {"generation": 1000}}),
        ({"metadata": {"labels": {"a": 1.0}}}, {"metadata": {"labels": {"a": 1.0}}}),
        (container(8e1), container(80)),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.0}}}},
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}},
        ),
    ],
)
def test_integers_are_parsed_as_go_does(schemas, given, read):
    of = schemas.kind("apps/v1", "Deployment")
    converted = convert_numbers(of, given)
    assert repr(converted) == repr(read)
    assert (converted is given) is (repr(given) == repr(read))
