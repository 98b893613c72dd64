import pytest

from mockube.apimachinery.schema import builtin


@pytest.fixture(scope="session")
def schemas():
    return builtin.load()
