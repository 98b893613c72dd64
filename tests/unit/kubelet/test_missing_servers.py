"""Without the distribution that reads a server's configuration, a container runs as its image does alone, and an Event names the distribution."""

import pytest

from mockube.container_runtime import extras
from mockube.container_runtime.simulated.shell.programs import installed_servers
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

NGINX, HTTPD = "nginx:1.29.601", "httpd:2.4.601"
"""Images of no other test: what is known of a command is kept."""
MAP = {"name": "v", "configMap": {"name": "m", "optional": True}}


@pytest.fixture
def warnings(monkeypatch):
    """Return what is not simulated of a container without the distribution."""
    monkeypatch.setattr(installed_servers, "server_kinds", lambda: ())
    monkeypatch.setattr(extras, "_is_installed", lambda _: False)

    def warnings_of(subject):
        simulated = SimulatedPod(pod(subject, volumes=[MAP]), context=node_context(details=True))
        return [event.message for event in simulated.events if event.reason == "NotSimulated"]

    return warnings_of


@pytest.mark.parametrize(
    ("image", "mounted", "command", "subject"),
    [
        (NGINX, "/etc/nginx/conf.d", [], "the configuration in /etc/nginx/conf.d"),
        (HTTPD, "/usr/local/apache2/conf/httpd.conf", [], "the configuration in /usr/local/apache2/conf/httpd.conf"),
        (NGINX, "", ["nginx", "-c", "/own.conf"], "the argument -c"),
        (NGINX, "", ["nginx", "-t"], "nginx"),
        (NGINX, "", ["nginx-debug", "-T"], "nginx-debug"),
        (NGINX, "", ["sh", "-c", "nginx -s reload"], "nginx"),
        (NGINX, "", ["sh", "-c", "echo > /etc/nginx/nginx.conf; nginx -g 'daemon off;'"], "nginx"),
        (HTTPD, "", ["sh", "-c", "httpd -t"], "httpd"),
        (HTTPD, "", ["apachectl", "configtest"], "apachectl"),
        (HTTPD, "", ["httpd-foreground", "-f", "/own.conf"], "the argument -f"),
    ],
)  # fmt: skip
def test_configuration_and_options_name_the_missing_distribution(warnings, image, mounted, command, subject):
    mounts = [{"name": "v", "mountPath": mounted}] if mounted else []
    end = "is not simulated without mockube-servers, which pip installs: the container runs without it until it is stopped"
    assert warnings(container(image=image, command=command, volumeMounts=mounts)) == [
        f"{subject} of the image {image} {end}"
    ]


@pytest.mark.parametrize(
    ("image", "command"),
    [
        (NGINX, []),
        (NGINX, ["nginx", "-g", "daemon off;"]),
        (NGINX, ["nginx-debug", "-g", "daemon off;"]),
        (HTTPD, []),
        (HTTPD, ["httpd-foreground"]),
        (HTTPD, ["httpd", "-D", "FOREGROUND"]),
    ],
)
def test_server_as_its_image_starts_it_needs_no_distribution(warnings, image, command):
    assert warnings(container(image=image, command=command)) == []
