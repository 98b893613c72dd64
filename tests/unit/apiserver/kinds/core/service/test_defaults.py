import pytest

INSIDE = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
OUTSIDE = INSIDE | {"externalTrafficPolicy": "Cluster"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, INSIDE, id="empty"),
        pytest.param(
            {"externalIPs": ["192.0.2.1"]}, OUTSIDE | {"externalIPs": ["192.0.2.1"]}, id="external IPs"
        ),
        pytest.param({"type": "NodePort"}, OUTSIDE | {"type": "NodePort"}, id="NodePort"),
        pytest.param(
            {"type": "LoadBalancer"},
            OUTSIDE | {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": True},
            id="LoadBalancer",
        ),
        pytest.param(
            {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": False,
                "externalTrafficPolicy": "Local",
            },
            OUTSIDE
            | {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": False,
                "externalTrafficPolicy": "Local",
            },
            id="LoadBalancer without node ports",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "x"},
            {"type": "ExternalName", "externalName": "x", "sessionAffinity": "None"},
            id="ExternalName",
        ),
        pytest.param(
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}},
            INSIDE,
            id="a config of no affinity",
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP"},
            INSIDE
            | {
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            id="affinity",
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            INSIDE
            | {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            id="affinity for no time",
        ),
    ],
)
def test_service_defaults(with_defaults, given, expected):
    assert with_defaults("v1", "Service", {"spec": given})["spec"] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"port": 80}, {"protocol": "TCP", "port": 80, "targetPort": 80}, id="a number"),
        pytest.param(
            {"port": 80, "targetPort": ""}, {"protocol": "TCP", "port": 80, "targetPort": 80}, id="no name"
        ),
        pytest.param(
            {"port": 80, "targetPort": "http"},
            {"protocol": "TCP", "port": 80, "targetPort": "http"},
            id="a name",
        ),
        pytest.param(
            {"port": 53, "protocol": "UDP", "targetPort": 5353},
            {"protocol": "UDP", "port": 53, "targetPort": 5353},
            id="all",
        ),
    ],
)
def test_service_port_defaults(with_defaults, given, expected):
    assert with_defaults("v1", "Service", {"spec": {"ports": [given]}})["spec"]["ports"] == [expected]


@pytest.mark.parametrize(
    ("of_type", "ingress", "expected"),
    [
        pytest.param("LoadBalancer", {"ip": "192.0.2.1"}, "VIP", id="an address"),
        pytest.param("LoadBalancer", {"ip": "192.0.2.1", "ipMode": "Proxy"}, "Proxy", id="of a proxy"),
        pytest.param("LoadBalancer", {"hostname": "x"}, None, id="a name"),
        pytest.param("NodePort", {"ip": "192.0.2.1"}, None, id="another type"),
    ],
)
def test_load_balancer_ip_mode_default(with_defaults, of_type, ingress, expected):
    status = {"loadBalancer": {"ingress": [ingress]}}
    defaulted = with_defaults("v1", "Service", {"spec": {"type": of_type}, "status": status})
    assert defaulted["status"]["loadBalancer"]["ingress"][0].get("ipMode") == expected


def test_endpoint_port_defaults(with_defaults):
    defaulted = with_defaults(
        "v1", "Endpoints", {"subsets": [{"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}]}
    )
    assert defaulted["subsets"][0]["ports"] == [
        {"port": 80, "protocol": "TCP"},
        {"port": 53, "protocol": "UDP"},
    ]
