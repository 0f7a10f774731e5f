"""Certificates of listeners against a real API server; a test plays cert-manager."""

import json
from base64 import b64decode, b64encode
from typing import Any

from control_plane import ControlPlane
from cryptography import x509
from published import published
from simulated import World, eventually, in_loop, world

from lockkeeper_operator.kubernetes.api.kinds import BY_NAME

SECRET = "demo-openwire-tls"
ISSUER = {"issuerRef": {"name": "company"}}
SECONDS = 40.0


def listeners(tls: dict[str, Any], *urls: str) -> list[dict[str, Any]]:
    return [{"name": "openwire", "tls": tls, "advertisedUrls": list(urls)}]


async def data(found: World) -> dict[str, bytes]:
    secret = await found.get("Secret", SECRET)
    return {key: b64decode(value) for key, value in secret["data"].items()}


def names(certificate: x509.Certificate) -> list[str]:
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return extension.value.get_values_for_type(x509.DNSName)


@in_loop
async def test_the_operator_issues_what_nobody_else_does_and_renews_it_for_other_names(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(listeners=listeners({}))
        await found.ready("Broker", "demo")
        first = await data(found)
        certificate = x509.load_pem_x509_certificate(first["tls.crt"])
        authority = x509.load_pem_x509_certificate(first["ca.crt"])
        certificate.verify_directly_issued_by(authority)
        assert f"demo-openwire.{namespace}.svc" in names(certificate)
        client = await found.get("Secret", "demo-client")
        assert b64decode(client["data"]["ca.crt"]) == first["ca.crt"]
        await found.broker(listeners=listeners({}, "ssl://mq.example.org:443"))

        async def is_renewed() -> bool:
            renewed = x509.load_pem_x509_certificate((await data(found))["tls.crt"])
            return "mq.example.org" in names(renewed)

        await eventually(is_renewed)
        assert (await data(found))["ca.crt"] == first["ca.crt"]
        # Somebody else's change of it does not stay.
        garbage = b64encode(b"garbage").decode()
        await found.api.merge(BY_NAME["Secret"], namespace, SECRET, {"data": {"tls.crt": garbage}})

        async def is_repaired() -> bool:
            return (await data(found))["tls.crt"] != b"garbage"

        await eventually(is_repaired)


@in_loop
async def test_cert_manager_takes_over_when_it_comes_and_leaves_its_certificate_when_it_goes(
    control_plane: ControlPlane, namespace: str
) -> None:
    certificates = str(published("certificates"))
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        await found.broker(listeners=listeners(ISSUER))

        async def says(reason: str) -> bool:
            return (await found.condition("Broker", "demo", "Exposed"))[1] == reason

        await eventually(lambda: says("SelfSigned"))
        await found.ready("Broker", "demo")
        assert set(await data(found)) == {"tls.crt", "tls.key", "ca.crt"}
        control_plane.kubectl("create", "-f", certificates)
        try:
            await eventually(lambda: says("Exposed"), SECONDS)

            async def is_handed_over() -> bool:
                asked = not await found.is_gone("Certificate", "demo-openwire")
                return asked and await found.is_gone("Secret", SECRET)

            await eventually(is_handed_over, SECONDS)
            asked = await found.get("Certificate", "demo-openwire")
            assert asked["spec"]["secretName"] == SECRET
            assert asked["spec"]["issuerRef"]["name"] == "company"
            theirs = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": SECRET},
                "type": "kubernetes.io/tls",
                "stringData": {"tls.crt": "theirs", "tls.key": "theirs", "ca.crt": "company"},
            }
            control_plane.kubectl("apply", "-n", namespace, "-f", "-", text=json.dumps(theirs))

            async def is_vouched_for() -> bool:
                told = (await found.get("Secret", "demo-client"))["data"]
                return b64decode(told.get("ca.crt", "")) == b"company"

            await eventually(is_vouched_for, SECONDS)
        finally:
            control_plane.kubectl("delete", "-f", certificates)
        # The Broker goes on with what cert-manager left.
        await found.broker(replicas=2, listeners=listeners(ISSUER))

        async def is_seen() -> bool:
            broker = await found.get("Broker", "demo")
            seen: int = broker["status"]["observedGeneration"]
            return bool(seen == broker["metadata"]["generation"])

        await eventually(is_seen, SECONDS)
        await found.ready("Broker", "demo", SECONDS)
        assert (await data(found))["tls.crt"] == b"theirs"
