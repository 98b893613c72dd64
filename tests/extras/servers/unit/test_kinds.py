"""The servers of this distribution, and the images that have them."""

import pytest

from mockube.container_runtime.simulated.shell.programs import installed_servers
from mockube.container_runtime.simulated.shell.programs.installed_servers import ServerKind, kind_of
from tests.support.images import IMAGES


@pytest.mark.parametrize(
    ("image", "folder"),
    [("nginx", "/etc/nginx"), ("httpd", "/usr/local/apache2/conf"), ("bitnami/nginx", ""), ("redis", "")],
)
def test_image_is_known_by_the_files_of_its_configuration(image, folder):
    kind = kind_of(IMAGES.behavior_of_image(image))
    assert ("" if kind is None else kind.folder) == folder


def test_programs_of_the_server_come_first_in_its_images_alone():
    apache = kind_of(IMAGES.behavior_of_image("httpd"))
    assert isinstance(apache, ServerKind)
    assert installed_servers.PROGRAMS["httpd"] is not apache.programs["httpd"]
    assert installed_servers.PROGRAMS["apachectl"] is apache.programs["apachectl"]
    assert sorted(installed_servers.PROGRAMS) == [
        "apachectl",
        "httpd",
        "httpd-foreground",
        "nginx",
        "nginx-debug",
    ]
