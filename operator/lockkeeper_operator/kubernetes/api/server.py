"""Requests to the API server."""

import asyncio
import json
import os
import random
import ssl
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, TOO_MANY, ApiError, error_of
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, EVENT, Kind
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import FIELD_MANAGER

LEVELS_MAX = 11_000
"""The API server reads objects of 10,000 levels. Python refuses 1000: one such object, in whoever's
namespace, would keep us from reading any of its kind."""
PAGE_OBJECTS = 100
REQUEST_SECONDS = 15.0
BUSY_MAX = 5
BUSY_SECONDS, BUSY_SECONDS_MAX = 1.0, 5.0
TABLELESS = "application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
REVISE = "application/json-patch+json"
FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, ssl.SSLError, OSError)

Query = dict[str, str]


async def connect(kubeconfig: str | None = None) -> "ApiServer":
    """Return the API server that the pod's account or a kubeconfig leads to.

    *kubeconfig* names the file; None: the pod's account, where there is none $KUBECONFIG or the
    usual file. Raises kubernetes.aio.config.ConfigException where there is neither.
    """
    sys.setrecursionlimit(max(LEVELS_MAX, sys.getrecursionlimit()))
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            raise config.ConfigException
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        found = kubeconfig or os.environ.get("KUBECONFIG")
        await config.load_kube_config(found, client_configuration=configuration)
    return ApiServer(ApiClient(configuration), configuration)


class ApiServer:
    """One API server. Every method raises ApiError when it does not do what it was asked."""

    def __init__(self, client: ApiClient, configuration: Configuration) -> None:
        self._client = client
        self._configuration = configuration
        self.requests: dict[tuple[str, str], int] = {}
        """Answers so far, by verb and status."""
        self.read_only = ""
        """Why nothing is written any more; empty while it is."""
        self.unwritable: dict[tuple[str, str], str] = {}
        """What was not let be written when it was tried last, by verb and kind: the answers."""

    @property
    def url(self) -> str:
        """Where the server is."""
        return str(self._configuration.host)

    @property
    def tls(self) -> ssl.SSLContext:
        """By what the server is known, and knows the operator."""
        context: ssl.SSLContext = self._client.rest_client.ssl_context
        return context

    async def credentials(self) -> str:
        """Return what the header Authorization is to be at present, empty for none."""
        found = await self._configuration.auth_settings()
        return str(found["BearerToken"]["value"] or "") if "BearerToken" in found else ""

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def read(self, kind: Kind, namespace: str | None, name: str) -> Manifest:
        """Return one object."""
        return await self.request("GET", kind.path(namespace, name))

    async def read_if_there(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        """Return one object, or None where there is none."""
        try:
            return await self.read(kind, namespace, name)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def pages(
        self,
        kind: Kind,
        namespace: str | None = None,
        selector: str = "",
        metadata_only: bool = False,
        fields: str = "",
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """Yield all objects by the page, and the version that the whole list is of.

        *selector* is of labels, *fields* of fields, where the server knows them for the kind.
        """
        query = {"limit": str(PAGE_OBJECTS)}
        if selector:
            query["labelSelector"] = selector
        if fields:
            query["fieldSelector"] = fields
        accept = METADATA_LIST if metadata_only else TABLELESS
        while True:
            page = await self.request("GET", kind.path(namespace), query, accept=accept)
            yield page.get("items") or [], page["metadata"]["resourceVersion"]
            following = page["metadata"].get("continue")
            if not following:
                return
            query["continue"] = following

    async def apply(
        self, manifest: Manifest, *, force: bool = False, subresource: str = ""
    ) -> Manifest:
        """Apply *manifest* on the server's side; returns the object as it is then.

        Without *force*, fields that others own and have otherwise are a conflict.
        """
        metadata = manifest["metadata"]
        path = BY_NAME[manifest["kind"]].path(metadata["namespace"], metadata["name"], subresource)
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        return await self.request("PATCH", path, query, manifest, APPLY)

    async def merge(self, kind: Kind, namespace: str, name: str, change: Manifest) -> Manifest:
        """Lay *change* over an object; null takes away (RFC 7386)."""
        query = {"fieldManager": FIELD_MANAGER}
        return await self.request("PATCH", kind.path(namespace, name), query, change, MERGE)

    async def revise(
        self, kind: Kind, namespace: str, name: str, operations: list[Manifest]
    ) -> Manifest:
        """Change an object step by step (RFC 6902)."""
        query = {"fieldManager": FIELD_MANAGER}
        return await self.request("PATCH", kind.path(namespace, name), query, operations, REVISE)

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Write an object whole, if it still is of the version that *manifest* says."""
        metadata = manifest["metadata"]
        path = kind.path(metadata["namespace"], metadata["name"])
        return await self.request("PUT", path, {}, manifest)

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Make an object that is not there."""
        query = {"fieldManager": FIELD_MANAGER}
        path = kind.path(manifest["metadata"].get("namespace"))
        return await self.request("POST", path, query, manifest)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Delete an object if it is the one with *uid*; it may be gone already."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self.request("DELETE", kind.path(namespace, name), {}, body)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def tell(self, event: Manifest) -> None:
        """Write a Kubernetes event."""
        await self.create(EVENT, event)

    async def kinds_of(self, api_version: str) -> frozenset[str]:
        """Return the kinds of an API, none where the server does not know it."""
        try:
            said = await self.request("GET", f"/apis/{api_version}")
        except ApiError as error:
            if error.status == NOT_FOUND:
                return frozenset()
            raise
        return frozenset(each["kind"] for each in said.get("resources", ()))

    async def request(
        self,
        verb: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = TABLELESS,
    ) -> Manifest:
        """Return what the server answers to any request.

        While it says that it is too busy, and has done nothing, it is asked again a few times.
        """
        if self.read_only and verb != "GET":
            raise ApiError(0, f"{verb} {path}: {self.read_only}")
        attempts = 0
        while True:
            try:
                answer = await self._ask(verb, path, query or {}, body, content_type, accept)
                self._note_write(verb, path, None)
                return answer
            except ApiError as error:
                self._note_write(verb, path, error)
                attempts += 1
                if error.status != TOO_MANY or attempts == BUSY_MAX:
                    raise
                wait = min(error.retry_after or BUSY_SECONDS, BUSY_SECONDS_MAX)
                await asyncio.sleep(wait * random.uniform(1.0, 1.5))

    def _note_write(self, verb: str, path: str, error: ApiError | None) -> None:
        """Take note whether a write was possible; one that is refused for what is in it was."""
        if verb == "GET":
            return
        key = (verb, _resource(path))
        if error is not None and (error.status == 0 or error.lacks_rights):
            self.unwritable[key] = str(error)
        else:
            self.unwritable.pop(key, None)

    async def _ask(
        self, verb: str, path: str, query: Query, body: Any, content_type: str, accept: str
    ) -> Manifest:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        response = await self._send(verb, path, query, body, content_type, accept, timeout)
        try:
            found: Manifest = json.loads(await response.read())
        except (*FAILURES, ValueError) as error:
            raise ApiError(0, f"{verb} {path}: {error or type(error).__name__}") from error
        finally:
            response.release()
        return found

    async def _send(
        self,
        verb: str,
        path: str,
        query: Query,
        body: Any,
        content_type: str,
        accept: str,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Return the answer once its head is there, if it is success."""
        headers = {"Accept": accept, "Content-Type": content_type or "application/json"}
        try:
            request = await self._client.param_serialize(
                verb,
                path,
                query_params=list(query.items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(*request, _request_timeout=timeout)
            response: aiohttp.ClientResponse = answer.response
            self.count(verb, str(response.status))
            if response.status >= 300:
                said = await response.read()
                raise error_of(response.status, said, response.headers.get("Retry-After"))
        except FAILURES as error:
            self.count(verb, "none")
            raise ApiError(0, f"{verb} {path}: {error or type(error).__name__}") from error
        return response

    def count(self, verb: str, status: str) -> None:
        """Count an answer, or (`none`) that there was none."""
        key = (verb, status)
        self.requests[key] = self.requests.get(key, 0) + 1


def _resource(path: str) -> str:
    """Return what a path leads to, without names: `brokers/status`."""
    _, root, *parts = path.split("/")
    parts = parts[1:] if root == "api" else parts[2:]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    return "/".join((parts[0], *parts[2:]))
