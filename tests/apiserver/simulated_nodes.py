"""Plays the controllers and kubelets that a control plane alone does not have."""

import asyncio
import itertools
import logging
from base64 import b64decode
from typing import Any

from simulated_brokers import SimulatedBroker, SimulatedBrokers, SimulatedPod, context_of

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, CLAIM, POD, SECRET, STATEFUL_SET
from lockkeeper_operator.kubernetes.api.server import MERGE, ApiServer
from lockkeeper_operator.names import ADMIN_TLS_ANNOTATION, INSTANCE_LABEL

PERIOD_SECONDS = 0.1
CONFIG_MAP = BY_NAME["ConfigMap"]
_addresses = itertools.count(0x7F010001)
log = logging.getLogger(__name__)


def next_address() -> str:
    """Return an address of this machine that no pod has yet."""
    return ".".join(map(str, next(_addresses).to_bytes(4, "big")))


class SimulatedNodes:
    """Makes the pods of StatefulSets, binds claims, and lets the brokers in them elect a master.

    Pods are not scheduled, or have no time to end, so that the API server itself removes them when
    they are deleted.
    """

    def __init__(self, api: ApiServer, namespace: str, simulated: SimulatedBrokers) -> None:
        self._api, self._namespace, self._simulated = api, namespace, simulated
        self.brokers: dict[str, SimulatedBroker] = {}
        self.paused = False
        """Whether the controllers stand still."""
        self.has_tls = True
        """Whether pods are of a release whose admin endpoints have TLS."""
        self.unlabelled: set[str] = set()
        """Pods of these names do not say of themselves that they are the master."""
        self.places: dict[str, str] = {}
        """On which nodes pods of these names run; others are nowhere."""

    async def run(self) -> None:
        """Play, for ever."""
        while True:
            if not self.paused:
                try:
                    await self.step()
                except ApiError as error:
                    log.debug("%s", error)
            await asyncio.sleep(PERIOD_SECONDS)

    async def step(self) -> None:
        """Do once what is to be done."""
        for claim in await self._all(CLAIM.name):
            if claim.get("status", {}).get("phase") != "Bound":
                capacity = claim["spec"]["resources"]["requests"]
                await self._status(claim, {"phase": "Bound", "capacity": capacity})
        pods = {pod["metadata"]["name"]: pod for pod in await self._all(POD.name)}
        wanted: set[str] = set()
        for stateful_set in await self._all(STATEFUL_SET.name):
            wanted |= await self._play(stateful_set, pods)
        for name, pod in pods.items():
            if name not in wanted:
                metadata = pod["metadata"]
                await self._api.delete(POD, self._namespace, name, metadata["uid"])

    async def _play(self, stateful_set: dict[str, Any], pods: dict[str, Any]) -> set[str]:
        """Return the names of the pods of a StatefulSet, which are there then."""
        metadata, spec = stateful_set["metadata"], stateful_set["spec"]
        if stateful_set["status"].get("observedGeneration") != metadata["generation"]:
            status = {"observedGeneration": metadata["generation"], "replicas": spec["replicas"]}
            await self._status(stateful_set, status)
        names = [f"{metadata['name']}-{number}" for number in range(spec["replicas"])]
        broker = self.brokers.setdefault(metadata["name"], SimulatedBroker())
        if not broker.token:
            await self.mount(metadata["name"])
        for name in names:
            if name not in pods:
                await self._make(name, stateful_set, broker)
        if broker.master not in pods or broker.master not in names:
            able = (name for name in names if name in pods and not self.pod(name).fenced)
            broker.master = next(able, "")
            broker.epoch += bool(broker.master)
        for name in names:
            leads = name == broker.master and name not in self.unlabelled
            role = "master" if leads else "standby"
            labels = pods[name]["metadata"]["labels"] if name in pods else {}
            if labels and labels.get(ROLE_LABEL) != role:
                change = {"metadata": {"labels": {ROLE_LABEL: role}}}
                await self._api.merge(POD, self._namespace, name, change)
        return set(names)

    async def mount(self, name: str) -> None:
        """Bring a Broker's pods what is in their Secret, as kubelets do a minute after a change."""
        secret = await self._api.read(SECRET, self._namespace, f"{name}-admin")
        data = {key: b64decode(value).decode() for key, value in secret["data"].items()}
        broker = self.brokers[name]
        broker.token = data["admin-token"]
        if self.has_tls:
            broker.context = context_of(data["tls.crt"], data["tls.key"])
            full = f"{name}-replicas.{self._namespace}.svc.cluster.local"
            self._simulated.names[full] = broker

    async def _make(self, name: str, owner: dict[str, Any], broker: SimulatedBroker) -> None:
        template, address = owner["spec"]["template"], next_address()
        config_map = await self._api.read(CONFIG_MAP, self._namespace, owner["metadata"]["name"])
        self._simulated.pods[address] = SimulatedPod(
            name, broker, config_map["data"]["broker.yaml"]
        )
        metadata = {**template["metadata"], "name": name, "namespace": self._namespace}
        if not self.has_tls:
            notes = metadata["annotations"]
            metadata["annotations"] = {
                key: notes[key] for key in notes if key != ADMIN_TLS_ANNOTATION
            }
        spec: dict[str, Any] = {"containers": [{"name": "broker", "image": "example/none:1"}]}
        if name in self.places:
            volumes = template["spec"]["volumes"]
            claims = [each for each in volumes if "persistentVolumeClaim" in each]
            spec |= {"nodeName": self.places[name], "terminationGracePeriodSeconds": 0}
            spec["volumes"] = claims
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = await self._api.create(POD, pod)
        ready = [{"type": kind, "status": "True"} for kind in ("Ready", "PodScheduled")]
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        await self._status(made, {**status, "conditions": ready})

    def pod(self, name: str) -> SimulatedPod:
        """Return the process in the newest pod of that name."""
        brokers = self.brokers.values()
        found = [each for each in self._simulated.pods.values() if each.name == name]
        return [each for each in found if each.broker in brokers][-1]

    async def _all(self, kind: str) -> list[dict[str, Any]]:
        pages = self._api.pages(BY_NAME[kind], self._namespace, INSTANCE_LABEL)
        own = {"apiVersion": BY_NAME[kind].api_version, "kind": kind}
        return [{**item, **own} async for items, _ in pages for item in items]

    async def _status(self, manifest: dict[str, Any], status: dict[str, Any]) -> None:
        metadata = manifest["metadata"]
        path = BY_NAME[manifest["kind"]].path(metadata["namespace"], metadata["name"], "status")
        await self._api.request("PATCH", path, {}, {"status": status}, MERGE)
