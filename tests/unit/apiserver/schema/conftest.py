import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.schema.decode import Decoder


@pytest.fixture(scope="session")
def schemas():
    return builtin.load()


@pytest.fixture(scope="session")
def decoder():
    return Decoder()
