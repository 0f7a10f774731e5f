"""A disk of its own for the world: real files, and what a power cut would leave of them.

Files are real ones in a directory in memory, so that everything that reads them does so as
always. Beside each stands what of it is durable, and every write since. A power cut keeps of those
any sectors in any combination, and of new, changed and deleted names the first so many.
"""

import errno
import fcntl as real_fcntl
import io as real_io
import os as real_os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from simulation.hub import MICROSECOND, MILLISECOND, Hub, Process
from simulation.kernel import FIRST, Kernel
from simulation.shim import Shim

SECTOR = 512


@dataclass
class Write:
    """Bytes at an offset, or the length that a file was cut or stretched to."""

    offset: int
    data: bytes
    length: int | None = None
    number: int = 0


@dataclass(eq=False)
class Inode:
    """A file: what is durable of it, what is not yet, in order."""

    durable: bytes = b""
    pending: list[Write] = field(default_factory=list)


@dataclass
class Handle:
    """An open file of a process."""

    inode: Inode
    key: tuple[int, int]
    process: Process | None
    path: str


class Disk:
    """One directory that several processes share."""

    def __init__(self, hub: Hub, kernel: Kernel, root: Path) -> None:
        self.hub = hub
        self.root = str(root)
        self.is_slow = False
        self.slow_until = 0
        self.is_full = False
        self.fails_sync: Process | None = None
        self.on_failed_sync: Callable[[Process], None] = lambda _: None
        # Who looks on: path, what was there and what is; old and new name of a file.
        self.on_write: Callable[[str, bytes, bytes], None] = lambda *_: None
        self.on_name: Callable[[str | None, str | None], None] = lambda *_: None
        self.on_power_cut: Callable[[list[str]], None] = lambda _: None
        self.writes = 0
        self._kernel = kernel
        self._inodes: dict[tuple[int, int], Inode] = {}
        self._handles: dict[int, Handle] = {}
        # Names: what a power cut would bring back, and what was done to them since.
        self._names: dict[str, tuple[int, int]] = {}
        self._changes: list[tuple[str, str, tuple[int, int] | None]] = []
        self._locks: dict[tuple[int, int], Process] = {}

    # What happens to it

    def forget_process(self, process: Process) -> None:
        """Close what a process that has ended had open."""
        for number in [n for n, each in self._handles.items() if each.process is process]:
            self._close(number)
        for key in [key for key, owner in self._locks.items() if owner is process]:
            del self._locks[key]

    def lose_locks(self) -> None:
        """Forget all locks, as the server of a network's file system may."""
        for process in self._locks.values():
            process.has_lost_locks = True
        self._locks.clear()

    def cut_power(self) -> None:
        """Leave what is durable, and of everything else some."""
        chance = self.hub.chance
        kept = chance.randint(0, len(self._changes))
        names = dict(self._names)
        for action, path, key in self._changes[:kept]:
            if action == "enter" and key is not None:
                names[path] = key
            else:
                names.pop(path, None)
        style = chance.choice(("nothing", "all", "some", "some", "first"))
        contents = {key: self._after_cut(inode, style) for key, inode in self._inodes.items()}
        for name in self._listed():
            real_os.unlink(name)
        self._inodes, self._names, self._changes = {}, {}, []
        for path, key in names.items():
            data = contents.get(key, b"")
            # Its folder may have been removed since, and be there again, too.
            real_os.makedirs(real_os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            self._adopt(path, data)
        self.on_power_cut(list(names))
        self.hub.note(f"power cut {style} {kept}")

    def _after_cut(self, inode: Inode, style: str) -> bytes:
        chance = self.hub.chance
        content = bytearray(inode.durable)
        pending = inode.pending
        if style == "first":
            pending = pending[: chance.randint(0, len(pending))]
        for write in pending:
            if style == "nothing":
                break
            if write.length is not None:
                if style != "some" or chance.random() < 0.5:
                    _stretch(content, write.length, exactly=True)
                continue
            end = write.offset + len(write.data)
            position = write.offset
            while position < end:
                upto = min(end, (position // SECTOR + 1) * SECTOR)
                if style != "some" or chance.random() < 0.5:
                    _stretch(content, upto)
                    start = position - write.offset
                    content[position:upto] = write.data[start : upto - write.offset]
                position = upto
        return bytes(content)

    def _listed(self) -> list[str]:
        return [str(path) for path in Path(self.root).rglob("*") if path.is_file()]

    def take_for_durable(self, path: Path) -> None:
        """Take a file that was changed from outside for durable as it is."""
        self._adopt(str(path), path.read_bytes())

    def _adopt(self, path: str, data: bytes) -> None:
        """Take a file that is there for durable."""
        status = real_os.stat(path)
        key = status.st_dev, status.st_ino
        self._inodes[key] = Inode(data)
        self._names[path] = key

    # The modules

    def _is_ours(self, path: Any) -> bool:
        try:
            name = real_os.fspath(path)
        except TypeError:
            return False
        return isinstance(name, str) and name.startswith(self.root)

    def _come_by(self, name: str) -> None:
        hub = self.hub
        if hub.current is not None:
            hub.system_call(name)

    def _entry(self, descriptor: int) -> Inode:
        status = real_os.fstat(descriptor)
        return self._inodes.setdefault((status.st_dev, status.st_ino), Inode())

    def _log(self, descriptor: int, write: Write) -> None:
        self.writes += 1
        write.number = self.writes
        self._entry(descriptor).pending.append(write)

    def _no_room(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, real_os.strerror(errno.ENOSPC))

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """See `os.open`."""
        if not self._is_ours(path):
            return real_os.open(path, flags, mode, dir_fd=dir_fd)
        name = real_os.fspath(path)
        self._come_by("open")
        is_new = bool(flags & real_os.O_CREAT) and not real_os.path.lexists(name)
        descriptor = real_os.open(name, flags, mode)
        status = real_os.fstat(descriptor)
        key = status.st_dev, status.st_ino
        if is_new:
            # The number of a file that is gone may have come back.
            self._inodes[key] = Inode()
            self._changes.append(("enter", name, key))
        inode = self._inodes.setdefault(key, Inode())
        if flags & real_os.O_TRUNC and not is_new:
            inode.pending.append(Write(0, b"", 0))
        self._handles[descriptor] = Handle(inode, key, self.hub.process(), name)
        return descriptor

    def close(self, descriptor: int) -> None:
        """See `os.close`: it also drops the process's lock on the file, as POSIX says."""
        if descriptor >= FIRST:
            self._kernel.close(descriptor)
        elif descriptor in self._handles:
            handle = self._handles[descriptor]
            if self._locks.get(handle.key) is handle.process:
                self._locks.pop(handle.key, None)
            self._close(descriptor)
        else:
            real_os.close(descriptor)

    def _close(self, descriptor: int) -> None:
        del self._handles[descriptor]
        real_os.close(descriptor)

    def read(self, descriptor: int, size: int) -> bytes:
        """See `os.read`."""
        if descriptor >= FIRST:
            return self._kernel.read(descriptor, size)
        return real_os.read(descriptor, size)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        """See `os.pwrite`; may write less than all."""
        return self._write(descriptor, bytes(data), offset, "pwrite")

    def pwritev(self, descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
        """See `os.pwritev`."""
        return self._write(descriptor, b"".join(buffers), offset, "pwritev")

    def _write(self, descriptor: int, data: bytes, offset: int, name: str) -> int:
        self._come_by(name)
        if descriptor not in self._handles:
            return real_os.pwrite(descriptor, data, offset)
        if self.is_full and offset + len(data) > real_os.fstat(descriptor).st_size:
            self._no_room()
        if len(data) > 64 and self.hub.chance.random() < 0.02:
            data = data[: self.hub.chance.randint(1, len(data))]
        path = self._handles[descriptor].path
        # By its descriptor: a temporary file has no name any more.
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            file.seek(offset)
            before = file.read(len(data))
        written = real_os.pwrite(descriptor, data, offset)
        if _has_name(descriptor):
            self.on_write(path, before[:written], data[:written])
        self._log(descriptor, Write(offset, data[:written]))
        return written

    def write(self, descriptor: int, data: Any) -> int:
        """See `os.write`."""
        if descriptor not in self._handles:
            return real_os.write(descriptor, data)
        offset = real_os.lseek(descriptor, 0, real_os.SEEK_CUR)
        written = self._write(descriptor, bytes(data), offset, "write")
        real_os.lseek(descriptor, offset + written, real_os.SEEK_SET)
        return written

    def ftruncate(self, descriptor: int, length: int) -> None:
        """See `os.ftruncate`."""
        self._come_by("ftruncate")
        before = real_os.fstat(descriptor).st_size
        real_os.ftruncate(descriptor, length)
        if descriptor in self._handles:
            if _has_name(descriptor):
                self.on_write(self._handles[descriptor].path, bytes([length != before]), b"\0")
            self._log(descriptor, Write(0, b"", length))

    def posix_fallocate(self, descriptor: int, offset: int, length: int) -> None:
        """See `os.posix_fallocate`."""
        self._come_by("fallocate")
        if descriptor in self._handles:
            self._no_room()
        real_os.posix_fallocate(descriptor, offset, length)
        if descriptor in self._handles:
            self._log(descriptor, Write(0, b"", real_os.fstat(descriptor).st_size))

    def fsync(self, descriptor: int) -> None:
        """See `os.fsync`: what was written before it began is durable when it returns."""
        handle = self._handles.get(descriptor)
        if handle is None:
            return
        process = self.hub.process()
        is_directory = real_os.path.isdir(handle.path)
        inode, count = handle.inode, len(handle.inode.pending)
        changes = len(self._changes)
        first = inode.pending[:count]
        self._come_by("fsync")
        if process is not None:
            chance = self.hub.chance
            slow = chance.randint(0, 3000) * MILLISECOND if self.is_slow else 0
            self.slow_until = max(self.slow_until, self.hub.now + slow)
            self.hub.sleep(chance.randint(50, 4000) * MICROSECOND + slow)
        if self.fails_sync is not None and self.fails_sync is process:
            self._fail_sync(inode, process)
        if is_directory:
            self._settle_names(changes)
            return
        content = bytearray(inode.durable)
        for write in first:
            if write.length is not None:
                _stretch(content, write.length, exactly=True)
            else:
                _stretch(content, write.offset + len(write.data))
                content[write.offset : write.offset + len(write.data)] = write.data
        inode.durable = bytes(content)
        done = {id(write) for write in first}
        inode.pending = [write for write in inode.pending if id(write) not in done]

    def _fail_sync(self, inode: Inode, process: Process) -> None:
        """Lose some of what was written, once, and say so once: that is what Linux does."""
        self.fails_sync = None
        inode.pending = [each for each in inode.pending if self.hub.chance.random() < 0.5]
        self.on_failed_sync(process)
        raise OSError(errno.EIO, real_os.strerror(errno.EIO))

    def _settle_names(self, count: int) -> None:
        done, self._changes = self._changes[:count], self._changes[count:]
        for action, path, key in done:
            if action == "enter" and key is not None:
                self._names[path] = key
            else:
                self._names.pop(path, None)

    def rename(self, source: Any, target: Any, **options: Any) -> None:
        """See `os.rename`, which replaces."""
        if not self._is_ours(source):
            real_os.rename(source, target, **options)
            return
        self._come_by("rename")
        old, new = real_os.fspath(source), real_os.fspath(target)
        real_os.rename(old, new)
        self._follow(old, new)
        self._enter(new)
        self._changes.append(("leave", old, None))

    def link(self, source: Any, target: Any, **options: Any) -> None:
        """See `os.link`, which never replaces."""
        if not self._is_ours(source):
            real_os.link(source, target, **options)
            return
        self._come_by("link")
        real_os.link(source, target, **options)
        self._follow(real_os.fspath(source), real_os.fspath(target))
        self._enter(real_os.fspath(target))

    def _follow(self, old: str, new: str) -> None:
        """Know a file by its new name: who has it open writes into that."""
        status = real_os.stat(new)
        for handle in self._handles.values():
            if handle.key == (status.st_dev, status.st_ino):
                handle.path = new
        self.on_name(old, new)

    def _enter(self, path: str) -> None:
        status = real_os.stat(path)
        self._changes.append(("enter", path, (status.st_dev, status.st_ino)))

    def unlink(self, path: Any, **options: Any) -> None:
        """See `os.unlink`."""
        if self._is_ours(path):
            self._come_by("unlink")
        real_os.unlink(path, **options)
        if self._is_ours(path):
            self.on_name(real_os.fspath(path), None)
            self._changes.append(("leave", real_os.fspath(path), None))

    def make_os(self) -> ModuleType:
        """Return the module `os`."""
        return Shim(
            real_os,
            open=self.open,
            close=self.close,
            read=self.read,
            write=self.write,
            pwrite=self.pwrite,
            pwritev=self.pwritev,
            ftruncate=self.ftruncate,
            posix_fallocate=self.posix_fallocate,
            posix_fadvise=lambda *_: None,
            fsync=self.fsync,
            fdatasync=self.fsync,
            rename=self.rename,
            replace=self.rename,
            link=self.link,
            unlink=self.unlink,
            remove=self.unlink,
            eventfd=self._kernel.eventfd,
            eventfd_read=self._kernel.eventfd_read,
            eventfd_write=self._kernel.eventfd_write,
            getpid=lambda: process.number if (process := self.hub.process()) else 1,
            setpriority=lambda *_: None,
        )

    def make_fcntl(self) -> ModuleType:
        """Return the module `fcntl`: locks belong to processes, not to descriptors."""

        def lockf(file: Any, command: int, *_: int) -> None:
            self._come_by("lockf")
            descriptor = file if isinstance(file, int) else file.fileno()
            status = real_os.fstat(descriptor)
            key = status.st_dev, status.st_ino
            process = self.hub.process()
            owner = self._locks.get(key)
            if command & real_fcntl.LOCK_UN:
                if owner is process:
                    self._locks.pop(key, None)
                return
            if owner is not None and owner is not process:
                raise BlockingIOError(errno.EAGAIN, "locked by another process")
            assert process is not None
            self._locks[key] = process

        return Shim(real_fcntl, lockf=lockf)

    def make_io(self) -> ModuleType:
        """Return the module `io`, whose `open` writes by way of `os`."""
        disk = self

        class Raw(real_io.RawIOBase):
            def __init__(self, path: Any, flags: int) -> None:
                super().__init__()
                self._descriptor = disk.open(path, flags | real_os.O_CLOEXEC, 0o644)

            def fileno(self) -> int:
                return self._descriptor

            def readable(self) -> bool:
                return True

            def writable(self) -> bool:
                return True

            def seekable(self) -> bool:
                return True

            def readinto(self, buffer: Any) -> int:
                data = real_os.read(self._descriptor, len(buffer))
                buffer[: len(data)] = data
                return len(data)

            def write(self, data: Any) -> int:
                return disk.write(self._descriptor, bytes(data))

            def seek(self, offset: int, whence: int = 0) -> int:
                return real_os.lseek(self._descriptor, offset, whence)

            def truncate(self, size: int | None = None) -> int:
                length = self.seek(0, 1) if size is None else size
                disk.ftruncate(self._descriptor, length)
                return length

            def close(self) -> None:
                if not self.closed:
                    super().close()
                    disk.close(self._descriptor)

        def open_file(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not disk._is_ours(path) or not set(mode) & set("wxa+"):
                return open(path, mode, *arguments, **options)
            flags = real_os.O_RDWR
            if "w" in mode:
                flags |= real_os.O_CREAT | real_os.O_TRUNC
            if "x" in mode:
                flags |= real_os.O_CREAT | real_os.O_EXCL
            if "a" in mode:
                flags |= real_os.O_CREAT | real_os.O_APPEND
            raw = Raw(path, flags)
            if "a" in mode:
                raw.seek(0, 2)
            binary = real_io.BufferedRandom(raw)
            return binary if "b" in mode else real_io.TextIOWrapper(binary, "utf-8")

        return Shim(real_io, open=open_file)


def _has_name(descriptor: int) -> bool:
    """Tell whether an open file is still in a directory.

    Where a copy took its place, or it was deleted, what had been its name is another file's, and
    nobody will ever read what a frozen master still writes through its descriptor.
    """
    return real_os.fstat(descriptor).st_nlink > 0


def _stretch(content: bytearray, length: int, exactly: bool = False) -> None:
    """Make *content* at least *length* long, or *exactly* so."""
    if len(content) < length:
        content.extend(bytes(length - len(content)))
    elif exactly:
        del content[length:]
