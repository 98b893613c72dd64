"""Validation of Ingresses and IngressClasses."""

import pytest

from tests.support.field_rules import changed, create_errors, update_errors

BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
PATH = {"path": "/a", "pathType": "Prefix", "backend": BACKEND}
INGRESS = {"metadata": {"name": "i", "namespace": "ns"}, "spec": {"defaultBackend": BACKEND}}
CLASS = {"metadata": {"name": "c"}, "spec": {"controller": "example.com/a"}}


def ingress(fields):
    return changed(INGRESS, {f"spec.{path}": value for path, value in fields.items()})


def ingress_errors(change):
    return create_errors("networking.k8s.io/v1", "Ingress", ingress(change))


def path_errors(fields):
    """Return the errors of an Ingress with one path, without the path of its rule."""
    texts = ingress_errors({"rules": [{"http": {"paths": [{**PATH, **fields}]}}]})
    return [text.removeprefix("spec.rules[0].http.paths[0].") for text in texts]


def backend_errors(backend):
    return [text.removeprefix("spec.defaultBackend") for text in ingress_errors({"defaultBackend": backend})]


def service(**port):
    return {"service": {"name": "s", "port": port}}


def class_errors(fields):
    tree = changed(CLASS, {f"spec.{path}": value for path, value in fields.items()})
    return create_errors("networking.k8s.io/v1", "IngressClass", tree)


def parameters(**fields):
    return {"parameters": {"kind": "K", "name": "n", "scope": "Cluster", **fields}}


INGRESSES = [
    pytest.param({}, [], id="default backend"),
    pytest.param({"defaultBackend": None},
        ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        id="neither rules nor backend"),
    pytest.param({"rules": [{"http": {"paths": []}}]},
        ["spec.rules[0].http.paths: Required value"], id="rule without paths"),
    pytest.param({"rules": [{"host": "a.b"}]}, [], id="rule without HTTP"),
    pytest.param({"rules": [{"host": "*.a.b"}]}, [], id="wildcard host"),
    pytest.param({"rules": [{"host": "*.*.b"}]},
        [("spec.rules[0].host: Invalid value: \"*.*.b\": a wildcard DNS-1123 subdomain must start with '*.', "
          "followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or "
          "'.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is "
          "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="two wildcards"),
    pytest.param({"rules": [{"host": "*"}]},
        [("spec.rules[0].host: Invalid value: \"*\": a wildcard DNS-1123 subdomain must start with '*.', "
          "followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or "
          "'.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is "
          "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="wildcard alone"),
    pytest.param({"rules": [{"host": "a_b"}]},
        [('spec.rules[0].host: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid host"),
    pytest.param({"rules": [{"host": "::1"}]},
        ['spec.rules[0].host: Invalid value: "::1": must be a DNS name, not an IP address',
         ('spec.rules[0].host: Invalid value: "::1": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="address as host"),
    pytest.param({"tls": [{"hosts": ["a.b", "*.b"], "secretName": "s"}]}, [], id="certificate"),
    pytest.param({"tls": [{"hosts": ["A"], "secretName": "s"}]},
        [('spec.tls[0].hosts[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="certificate of an invalid host"),
    pytest.param({"tls": [{"secretName": "S"}]},
        [('spec.tls[0].secretName: Invalid value: "S": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="certificate in an invalid Secret"),
    pytest.param({"ingressClassName": "A"},
        [('spec.ingressClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid class"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), INGRESSES)
def test_ingresses_are_validated(change, expected):
    assert ingress_errors(change) == expected


PATHS = [
    pytest.param({}, [], id="prefix"),
    pytest.param({"pathType": "Exact"}, [], id="exact path"),
    pytest.param({"pathType": None}, ["pathType: Required value: pathType must be specified"], id="no type"),
    pytest.param({"pathType": "Regex"},
        ['pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"'],
        id="unknown type"),
    pytest.param({"path": ""}, ['path: Invalid value: "": must be an absolute path'], id="no prefix"),
    pytest.param({"path": "a"}, ['path: Invalid value: "a": must be an absolute path'], id="relative prefix"),
    pytest.param({"pathType": "ImplementationSpecific", "path": ""}, [], id="no path of the implementation's kind"),
    pytest.param({"pathType": "ImplementationSpecific", "path": "a"},
        ['path: Invalid value: "a": must be an absolute path'], id="relative path of the implementation's kind"),
    pytest.param({"pathType": "ImplementationSpecific", "path": "/a//%2f/.."},
        [], id="expression of the implementation's kind"),
    pytest.param({"path": "/a//b/./c/../d%2fe%2Ff"},
        ["path: Invalid value: \"/a//b/./c/../d%2fe%2Ff\": must not contain '//'",
         "path: Invalid value: \"/a//b/./c/../d%2fe%2Ff\": must not contain '/./'",
         "path: Invalid value: \"/a//b/./c/../d%2fe%2Ff\": must not contain '/../'",
         "path: Invalid value: \"/a//b/./c/../d%2fe%2Ff\": must not contain '%2f'",
         "path: Invalid value: \"/a//b/./c/../d%2fe%2Ff\": must not contain '%2F'"], id="path with sequences"),
    pytest.param({"path": "/a/."},
        ["path: Invalid value: \"/a/.\": cannot end with '/.'"], id="path that ends with one dot"),
    pytest.param({"pathType": "Exact", "path": "/a/.."},
        ["path: Invalid value: \"/a/..\": cannot end with '/..'"], id="path that ends with two dots"),
    pytest.param({"backend": {}},
        ['backend: Invalid value: "": resource or service backend is required'], id="no backend"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PATHS)
def test_paths_are_validated(change, expected):
    assert path_errors(change) == expected


BACKENDS = [
    pytest.param(service(number=65535), [], id="port by number"),
    pytest.param(service(name="http"), [], id="port by name"),
    pytest.param(service(number=80, name="http"),
        [': Invalid value: "": cannot set both port name & port number'], id="port by both"),
    pytest.param(service(), [": Required value: port name or number is required"], id="port by neither"),
    pytest.param(service(number=65536),
        [".service.port.number: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="port too high"),
    pytest.param(service(number=-1),
        [".service.port.number: Invalid value: -1: must be between 1 and 65535, inclusive"], id="negative port"),
    pytest.param(service(name="A"),
        [('.service.port.name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and '
          "hyphens (-)"),
         '.service.port.name: Invalid value: "A": must contain at least one letter (a-z)'], id="port by invalid name"),
    pytest.param({"service": {"port": {"number": 80}}},
        [".service.name: Required value"], id="no name of the Service"),
    pytest.param({"service": {"name": "S", "port": {"number": 80}}},
        [('.service.name: Invalid value: "S": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="invalid name of the Service"),
    pytest.param({"resource": {"apiGroup": "example.com", "kind": "K", "name": "n"}}, [], id="resource"),
    pytest.param({"resource": {}},
        [".resource.kind: Required value",
         ".resource.name: Required value"], id="resource without fields"),
    pytest.param({"resource": {"apiGroup": "A", "kind": "a/b", "name": "c%d"}},
        [('.resource.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"),
         ".resource.kind: Invalid value: \"a/b\": may not contain '/'",
         ".resource.name: Invalid value: \"c%d\": may not contain '%'"], id="invalid resource"),
    pytest.param({**BACKEND, "resource": {"kind": "K", "name": "n"}},
        [': Invalid value: "": cannot set both resource and service backends'], id="resource and Service"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), BACKENDS)
def test_backends_are_validated(change, expected):
    assert backend_errors(change) == expected


INGRESS_UPDATES = [
    pytest.param({}, {"rules": [{"host": "a.b"}]}, [], id="rules"),
    pytest.param({"rules": [{"host": "*.b", "http": {"paths": []}}]}, {"rules": [{"host": "*.c", "http": {"paths": []}}]},
        [], id="paths of a wildcard stay invalid"),
    pytest.param({}, {"rules": [{"host": "*.c", "http": {"paths": []}}]},
        ["spec.rules[0].http.paths: Required value"], id="paths of a wildcard become invalid"),
    pytest.param({"tls": [{"secretName": "S"}]}, {"tls": [{"secretName": "T"}]}, [], id="Secret stays invalid"),
    pytest.param({"tls": [{"secretName": "s"}]}, {"tls": [{"secretName": "T"}]},
        [('spec.tls[0].secretName: Invalid value: "T": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="Secret becomes invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), INGRESS_UPDATES)
def test_changes_of_ingresses_are_validated(old, new, expected):
    assert update_errors("networking.k8s.io/v1", "Ingress", ingress(old), ingress(new)) == expected


CLASSES = [
    pytest.param({}, [], id="no change"),
    pytest.param({"controller": ""}, ["spec.controller: Required value"], id="no controller"),
    pytest.param({"controller": "example.com"},
        ['spec.controller: Invalid value: "example.com": must be a domain-prefixed path (such as "acme.io/foo")'],
        id="controller without path"),
    pytest.param({"controller": "/a"},
        ['spec.controller: Invalid value: "/a": must be a domain-prefixed path (such as "acme.io/foo")'],
        id="controller without domain"),
    pytest.param({"controller": "A/a"},
        [('spec.controller: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid domain of the controller"),
    pytest.param({"controller": "a/b c"},
        [('spec.controller: Invalid value: "b c": Invalid path (regex used for validation is '
          "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')")], id="invalid path of the controller"),
    pytest.param({"controller": "a/" + "b" * 248}, [], id="controller of 250 characters"),
    pytest.param({"controller": "a/" + "b" * 249},
        ["spec.controller: Too long: may not be more than 250 bytes"], id="controller of 251 characters"),
    pytest.param(parameters(apiGroup="example.com"), [], id="parameters"),
    pytest.param(parameters(scope=None), ["spec.parameters.scope: Required value"], id="parameters without scope"),
    pytest.param(parameters(scope="Galaxy"),
        ['spec.parameters.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespace"'],
        id="parameters of unknown scope"),
    pytest.param(parameters(namespace="ns"),
        ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
        id="parameters of the cluster in a namespace"),
    pytest.param(parameters(scope="Namespace", namespace="ns"), [], id="parameters of a namespace"),
    pytest.param(parameters(scope="Namespace"),
        ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
        id="parameters of no namespace"),
    pytest.param(parameters(scope="Namespace", namespace="A"),
        [('spec.parameters.namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="parameters of an invalid namespace"),
    pytest.param(parameters(kind="", name=""),
        ["spec.parameters.kind: Required value",
         "spec.parameters.name: Required value"], id="parameters without name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLASSES)
def test_classes_are_validated(change, expected):
    assert class_errors(change) == expected


CLASS_ANNOTATION = "kubernetes.io/ingress.class"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", []),
        (
            "b",
            [
                'annotations.kubernetes.io/ingress.class: Invalid value: "a": must match `ingressClassName` when both are specified'
            ],
        ),
    ],
)
def test_class_in_annotation_and_field_must_be_the_same(name, expected):
    tree = changed(ingress({"ingressClassName": name}), {"metadata.annotations": {CLASS_ANNOTATION: "a"}})
    assert create_errors("networking.k8s.io/v1", "Ingress", tree) == expected


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ({"ip": "10.0.0.1", "hostname": "a.b"}, []),
        ({"ip": "010.0.0.1"}, ['ip: Invalid value: "010.0.0.1": must not have leading 0s']),
        (
            {"hostname": "10.0.0.1"},
            ['hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
        ),
    ],
)
def test_status_of_ingress_is_validated(point, expected):
    new = {**INGRESS, "status": {"loadBalancer": {"ingress": [point]}}}
    errors = update_errors("networking.k8s.io/v1", "Ingress", INGRESS, new, "status")
    assert [text.removeprefix("status.loadBalancer.ingress[0].") for text in errors] == expected
