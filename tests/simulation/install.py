"""Putting the simulated modules where the code looks for them."""

import asyncio
import contextlib
import gc
import importlib.util
import itertools
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from simulation.clocks import make_datetime_class, make_time
from simulation.disk import Disk
from simulation.hub import Hub, Process
from simulation.kernel import Kernel
from simulation.loop import Loop
from simulation.network import Network
from simulation.shim import Shim
from simulation.threads import SimpleQueue, make_threading

from lockkeeper.client import opening
from lockkeeper.client.blocking import loop as client_loop
from lockkeeper.client.links import dialling
from lockkeeper.server.networks import dialling as bridge_dialling
from lockkeeper.store.kahadb import apart, lock
from lockkeeper.transport.peer import Peer
from lockkeeper_api.network_uris import PeerAddress

TESTS = Path(__file__).parent.parent


class OfProcess:
    """A set that a module keeps for its process: each simulated one has its own."""

    def __init__(self, hub: Hub, name: str) -> None:
        self._hub, self._name = hub, name

    def _own(self) -> set[Any]:
        process = self._hub.process()
        assert process is not None
        own: set[Any] = process.locals.setdefault(self._name, set())
        return own

    def __contains__(self, item: object) -> bool:
        return item in self._own()

    def add(self, item: object) -> None:
        self._own().add(item)

    def discard(self, item: object) -> None:
        self._own().discard(item)


class World:
    """The simulated system: everything that lockkeeper gets from outside itself."""

    def __init__(self, seed: int, root: Path) -> None:
        self.hub = hub = Hub(seed)
        self.kernel = Kernel(hub)
        self.network = Network(hub)
        self.disk = Disk(hub, self.kernel, root)
        self._modules = self._make_modules()
        self._install()

    def start(self, name: str) -> Process:
        """Begin a process whose files and sockets its end closes."""
        process = self.hub.start(name)
        process.at_end.append(lambda: self.disk.forget_process(process))
        process.at_end.append(lambda: self.network.forget_process(process))
        return process

    def _make_modules(self) -> dict[str, ModuleType]:
        hub = self.hub
        platform = Shim(sys.modules["platform"], machine=lambda: "simulated")
        secrets = Shim(
            sys.modules["secrets"],
            randbelow=lambda limit: hub.chance.randrange(limit),
            token_bytes=lambda count=32: hub.chance.randbytes(count),
            token_hex=lambda count=32: hub.chance.randbytes(count).hex(),
        )
        # What is collected runs its clean-up, which a process that was killed never does.
        gc.disable()
        idle = {name: lambda *_: 0 for name in ("collect", "freeze", "enable", "set_threshold")}
        return {
            "gc": Shim(gc, **idle),
            "time": make_time(hub),
            "threading": make_threading(),
            "socket": self.network.make_socket(),
            "selectors": self.network.make_selectors(),
            "select": self.kernel.make_select(self.network.select),
            "os": self.disk.make_os(),
            "io": self.disk.make_io(),
            "fcntl": self.disk.make_fcntl(),
            "ctypes": self.kernel.make_ctypes(),
            "platform": platform,
            "secrets": secrets,
        }

    def _install(self) -> None:
        random.seed(self.hub.chance.random())
        for name, module in list(sys.modules.items()):
            if name.startswith("lockkeeper."):
                self._patch(module)
        for name in [name for name in sys.modules if name.split(".")[0] == "pathlib"]:
            self._patch(sys.modules[name], only=("os", "io"))
        self._patch(tempfile, only=("_os",), names={"_os": self._modules["os"]})
        opening._PROCESS = "1-1"
        client_loop.make_loop = self._make_client_loop
        dialling.open_socket = self._open_socket
        bridge_dialling._opened = self._open_to_broker
        # Files are read by a thread of the simulated process instead.
        apart.begin = lambda task: None
        lock._HELD = OfProcess(self.hub, "held locks")  # type: ignore[assignment]
        numbers = itertools.count(1)

        def number(peer: Peer) -> int:
            """Stand in for an address in memory: what the engine does with all is in order."""
            return int(peer.__dict__.setdefault("simulated number", next(numbers)))

        Peer.__hash__ = number  # type: ignore[method-assign, assignment]

    def _make_client_loop(self) -> Any:
        process = self.hub.process()
        assert process is not None
        return Loop(self.hub, self.kernel, self.network, process)  # type: ignore[abstract]

    async def _open_to_broker(self, address: PeerAddress) -> Any:
        return await self._open_socket(address.host, address.port)

    async def _open_socket(self, host: str, port: int) -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        return await loop.open_socket(port)

    def _patch(
        self,
        module: ModuleType,
        only: tuple[str, ...] = (),
        names: dict[str, ModuleType] | None = None,
    ) -> None:
        import datetime
        import queue

        for name, replacement in (names or self._modules).items():
            if only and name not in only:
                continue
            if isinstance(vars(module).get(name), ModuleType):
                setattr(module, name, replacement)
        if vars(module).get("SimpleQueue") is queue.SimpleQueue:
            module.SimpleQueue = SimpleQueue  # type: ignore[attr-defined]
        if vars(module).get("datetime") is datetime.datetime:
            module.datetime = make_datetime_class(self.hub)  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Have modules that are imported meanwhile find the simulated ones."""
        names = ("time", "threading", "socket", "select")
        before = {name: sys.modules[name] for name in names}
        sys.modules.update({name: self._modules[name] for name in names})
        try:
            yield
        finally:
            sys.modules.update(before)

    def load(self, name: str, path: Path) -> Any:
        """Return a helper of other tests as a module whose time and sockets are simulated.

        Its parts may be replaced, as those of a `ModuleType` may not.
        """
        found = importlib.util.spec_from_file_location(name, path)
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        with self.importing():
            found.loader.exec_module(module)
        return module
