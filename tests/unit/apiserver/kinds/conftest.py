import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.apiserver.schema.decode import Decoder
from mockube.component_base.clock import SteppedClock


@pytest.fixture(scope="session")
def schemas():
    return builtin.load()


@pytest.fixture(scope="session")
def decode(schemas):
    """Return a function that decodes an object to normal form, without defaults."""
    decoder = Decoder()

    def decode(api_version, kind, tree):
        given = {"apiVersion": api_version, "kind": kind} | tree
        return decoder.decode(schemas.kind(api_version, kind), given).tree

    return decode


@pytest.fixture(scope="session")
def defaulter(schemas):
    return Defaulter(schemas, clock=SteppedClock())


@pytest.fixture(scope="session")
def with_defaults(decode, defaulter):
    """Return a function that decodes an object to normal form and applies its defaults."""

    def with_defaults(api_version, kind, tree):
        decoded = decode(api_version, kind, tree)
        defaulter.default_object(api_version, kind, decoded)
        return decoded

    return with_defaults
