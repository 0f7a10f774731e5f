"""Listeners that clients reach from outside of the pods' network, and what stands before them."""

from base64 import b64decode
from typing import Any

import pytest
from brokers import Brokers, broker
from foreign_kinds import TLS_ROUTES, need_tls_routes
from kube import Manifest, Namespace, wait_until

from lockkeeper.client import Connection, MessagingError, connect

QUEUE = "FROM.OUTSIDE"
RANGES = ["192.0.2.0/24", "198.51.100.7/32"]
BALANCER_CLASS = "example.com/nobody"
"""A class that no controller looks after: what is asked of one is to be seen."""
HOST = "mq.example.org"
REACH_SECONDS = 3.0
RECONNECTING = "?initialReconnectDelay=100&maxReconnectDelay=500&nested.connectionTimeout=1000"


def listener(**service: Any) -> dict[str, Any]:
    return {"name": "openwire", "service": service}


def test_a_client_from_outside_follows_the_master_by_the_addresses_of_pods(
    brokers: Brokers,
) -> None:
    namespace = brokers.namespace
    service = {"type": "NodePort", "perPod": True}
    namespace.apply(broker(brokers.name, listeners=[listener(**service)]))
    brokers.wait_settled()
    # Node ports are Kubernetes' choice: addresses can be said only when it has chosen.
    urls = [
        f"tcp://{_address(brokers, f'orders-{number}')}:{_port(namespace, name)}"
        for number, name in enumerate(("orders-openwire-0", "orders-openwire-1"))
    ]
    told = {**listener(**service), "advertisedUrls": urls}
    namespace.patch("broker", brokers.name, {"spec": {"listeners": [told]}})
    brokers.wait_settled()
    master = brokers.master()["metadata"]["name"]
    own = urls[int(master[-1])]
    (other,) = (url for url in urls if url != own)
    _assert_unreached(namespace, other)
    with _connected(namespace, f"failover:({','.join(urls)}){RECONNECTING}") as connection:
        assert connection.address == own
        producer = connection.session().producer(QUEUE)
        producer.send("before")
        namespace.delete("pod", master, "--wait=false")
        wait_until("the client has followed the master", lambda: connection.address == other)
        producer.send("after")
    brokers.wait_settled()
    # The Service of the listener leads to the master wherever that is.
    port = _port(namespace, "orders-openwire")
    everywhere = f"tcp://{_address(brokers, master)}:{port}"
    with _connected(namespace, everywhere) as connection:
        consumer = connection.session().consumer(QUEUE)
        assert [_body(consumer.receive(10)) for _ in range(2)] == ["before", "after"]


def test_what_narrows_the_way_in_arrives_at_the_service_and_restarts_nothing(
    brokers: Brokers,
) -> None:
    namespace = brokers.namespace
    namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    lives = brokers.lives()
    settings = listener(type="NodePort", externalTrafficPolicy="Local")
    namespace.patch("broker", brokers.name, {"spec": {"listeners": [settings]}})
    wait_until("the Service is a NodePort", lambda: _spec(namespace).get("type") == "NodePort")
    assert _spec(namespace)["externalTrafficPolicy"] == "Local"
    master = brokers.master()
    port = _port(namespace, "orders-openwire")
    own = f"tcp://{master['status']['hostIP']}:{port}"
    # kube-proxy hears of the port a second later than whoever reads the Service.
    with _connected(namespace, f"failover:({own}){RECONNECTING}") as connection:
        connection.session().producer(QUEUE).send("from the master's own node")
    for standby in brokers.with_role("standby"):
        # Of the other nodes none answers.
        if standby["status"]["hostIP"] != master["status"]["hostIP"]:
            _assert_unreached(namespace, f"tcp://{standby['status']['hostIP']}:{port}")
    settings = listener(
        type="LoadBalancer",
        loadBalancerClass=BALANCER_CLASS,
        sourceRanges=RANGES,
        externalTrafficPolicy="Cluster",
        annotations={"example.com/scheme": "internet-facing"},
    )
    namespace.patch("broker", brokers.name, {"spec": {"listeners": [settings]}})
    wait_until(
        "the Service is a LoadBalancer", lambda: _spec(namespace).get("type") == "LoadBalancer"
    )
    spec = _spec(namespace)
    assert spec["loadBalancerSourceRanges"] == RANGES
    assert spec["loadBalancerClass"] == BALANCER_CLASS
    assert spec["externalTrafficPolicy"] == "Cluster"
    found = namespace.get("service", "orders-openwire") or {}
    assert found["metadata"]["annotations"]["example.com/scheme"] == "internet-facing"
    namespace.patch("broker", brokers.name, {"spec": {"listeners": [{"name": "openwire"}]}})
    wait_until("the Service is a ClusterIP", lambda: _spec(namespace).get("type") == "ClusterIP")
    assert "loadBalancerSourceRanges" not in _spec(namespace)
    assert brokers.lives() == lives
    brokers.wait_settled()


def test_an_ingress_leads_to_a_listener_and_goes_with_its_route(brokers: Brokers) -> None:
    namespace = brokers.namespace
    route = {"host": HOST, "ingressClassName": "nobody"}
    routed = {"name": "openwire", "tls": {}, "route": route}
    namespace.apply(broker(brokers.name, replicas=1, listeners=[routed]))
    brokers.wait_ready()
    spec = (namespace.get("ingress", "orders-openwire") or {})["spec"]
    backend = {"service": {"name": "orders-openwire", "port": {"number": 61616}}}
    path = {"path": "/", "pathType": "ImplementationSpecific", "backend": backend}
    assert spec == {
        "ingressClassName": "nobody",
        "rules": [{"host": HOST, "http": {"paths": [path]}}],
        "tls": [{"hosts": [HOST]}],
    }
    assert brokers.condition("Exposed") == "True"
    namespace.patch(
        "broker", brokers.name, {"spec": {"listeners": [{"name": "openwire", "tls": {}}]}}
    )
    wait_until("the Ingress has gone", lambda: namespace.get("ingress", "orders-openwire") is None)


def test_a_tls_route_leads_to_a_listener(brokers: Brokers) -> None:
    namespace = brokers.namespace
    need_tls_routes(namespace)
    route = {"host": HOST, "gateway": {"name": "outside"}}
    routed = {"name": "openwire", "tls": {}, "route": route}
    namespace.apply(broker(brokers.name, replicas=1, listeners=[routed]))
    brokers.wait_ready()
    wait_until("the TLSRoute is there", lambda: namespace.get(TLS_ROUTES, "orders-openwire"))
    found = (namespace.get(TLS_ROUTES, "orders-openwire") or {})["spec"]
    assert (found["hostnames"], found["parentRefs"][0]["name"]) == ([HOST], "outside")


def _connected(namespace: Namespace, url: str) -> Connection:
    """Return a connection from here, with the credentials of the client Secret."""
    data = (namespace.get("secret", "orders-client") or {})["data"]
    user, password = (b64decode(data[key]).decode() for key in ("username", "password"))
    return connect(url, user=user, password=password)


def _assert_unreached(namespace: Namespace, url: str) -> None:
    with pytest.raises(MessagingError, match="no broker could be reached"):
        _connected(namespace, f"{url}?connectionTimeout={REACH_SECONDS * 1000:.0f}").close()


def _address(brokers: Brokers, pod: str) -> str:
    """Return the address of the node that a pod runs on."""
    (found,) = (each for each in brokers.pods() if each["metadata"]["name"] == pod)
    return str(found["status"]["hostIP"])


def _port(namespace: Namespace, service: str) -> int:
    """Return the port of every node that leads to a Service."""
    found = namespace.get("service", service) or {}
    return int(found["spec"]["ports"][0]["nodePort"])


def _spec(namespace: Namespace) -> Manifest:
    spec: Manifest = (namespace.get("service", "orders-openwire") or {})["spec"]
    return spec


def _body(message: Any) -> str:
    return "" if message is None else str(message.body)
