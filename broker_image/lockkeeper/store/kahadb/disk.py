"""Making writes durable without stopping the event loop: one fdatasync at a time.

Linux asynchronous I/O does it with no thread and no hand-over of the interpreter lock; where the
kernel refuses (seccomp, other systems), a thread does it. Both report through an eventfd.
"""

import ctypes
import errno
import os
import platform
import select
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

_IO_SETUP, _IO_DESTROY, _IO_SUBMIT = range(3)
_SYSCALLS = {"x86_64": (206, 207, 209), "aarch64": (0, 1, 2)}
_FDSYNC = 3
_HAS_EVENTFD = 1
_RING_MAGIC = 0xA10A10A1


class Disk(Protocol):
    """Makes one file at a time durable; raises OSError when the disk did not."""

    def submit(self, descriptor: int) -> None:
        """Begin to sync; only when nothing is outstanding."""

    def completed(self) -> bool:
        """Tell, without waiting, whether the sync is done. Raises OSError when it failed."""

    def wait(self) -> None:
        """Wait until the sync is done. Raises OSError when it failed."""

    def fileno(self) -> int:
        """Return the eventfd that turns readable when a sync is done."""

    def close(self) -> None:
        """Let go of the kernel's resources; waits for what is outstanding."""


class _ControlBlock(ctypes.Structure):
    """The kernel's struct iocb (linux/aio_abi.h), little-endian."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("eventfd", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    """The kernel's struct io_event: `result` is 0 or a negative errno."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("control_block", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result2", ctypes.c_int64),
    )


class _Ring(ctypes.Structure):
    """The kernel's struct aio_ring, where every context begins: results lie behind its header."""

    _fields_ = (
        ("id", ctypes.c_uint),
        ("slots", ctypes.c_uint),
        ("head", ctypes.c_uint),
        ("tail", ctypes.c_uint),
        ("magic", ctypes.c_uint),
        ("compatible", ctypes.c_uint),
        ("incompatible", ctypes.c_uint),
        ("header_bytes", ctypes.c_uint),
    )


class AioDisk:
    """Syncs by the kernel's io_submit(IOCB_CMD_FDSYNC). Raises OSError where it is refused.

    Results are read where the kernel puts them, without a system call, as libaio does.
    """

    def __init__(self) -> None:
        if platform.machine() not in _SYSCALLS or platform.system() != "Linux":
            raise OSError(f"no asynchronous sync known for {platform.machine()}")
        self._numbers = _SYSCALLS[platform.machine()]
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        self._context = ctypes.c_ulong(0)
        self._call(_IO_SETUP, ctypes.c_long(1), ctypes.byref(self._context))
        self._ring = _Ring.from_address(self._context.value)
        if self._ring.magic != _RING_MAGIC or self._ring.incompatible:
            self._call(_IO_DESTROY, self._context)
            raise OSError("the kernel's ring of results has an unknown form")
        events = self._context.value + self._ring.header_bytes
        self._events = (_Event * self._ring.slots).from_address(events)
        self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._block = _ControlBlock(opcode=_FDSYNC, flags=_HAS_EVENTFD, eventfd=self._eventfd)
        self._blocks = (ctypes.POINTER(_ControlBlock) * 1)(ctypes.pointer(self._block))
        # Made once: a sync costs hardly more than its system call.
        self._submission = (self._context, ctypes.c_long(1), self._blocks)
        self._outstanding = False

    def submit(self, descriptor: int) -> None:
        """See `Disk.submit`."""
        self._block.descriptor = descriptor
        self._call(_IO_SUBMIT, *self._submission)
        self._outstanding = True

    def completed(self) -> bool:
        """See `Disk.completed`."""
        return _clear(self._eventfd) and self._outstanding and self._reap()

    def wait(self) -> None:
        """See `Disk.wait`."""
        while self._outstanding and not self.completed():
            _await(self._eventfd)

    def fileno(self) -> int:
        """See `Disk.fileno`."""
        return self._eventfd

    def close(self) -> None:
        """See `Disk.close`."""
        if self._eventfd >= 0:
            self._call(_IO_DESTROY, self._context)
            os.close(self._eventfd)
            self._eventfd = -1

    def _reap(self) -> bool:
        """Take the result of the outstanding sync out of the ring, if it is there."""
        ring = self._ring
        head = ring.head
        if head == ring.tail:
            return False
        event = self._events[head]
        ring.head = (head + 1) % ring.slots
        self._end(event)
        return True

    def _end(self, event: _Event) -> None:
        """Go by a result: raises OSError when the disk did not do it."""
        self._outstanding = False
        result = int(event.result)
        if result < 0:
            raise OSError(-result, os.strerror(-result))

    def _call(self, name: int, *arguments: object) -> int:
        """Call the kernel, again when a signal came first: that is no failure of the disk."""
        number = ctypes.c_long(self._numbers[name])
        while (result := int(self._syscall(number, *arguments))) < 0:
            error = ctypes.get_errno()
            if error != errno.EINTR:
                raise OSError(error, os.strerror(error))
        return result


class ThreadDisk:
    """Syncs in a thread of its own."""

    def __init__(self) -> None:
        self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._requests: SimpleQueue[int | None] = SimpleQueue()
        self._results: SimpleQueue[OSError | None] = SimpleQueue()
        self._outstanding = False
        self._thread = threading.Thread(target=self._work, name="journal-sync", daemon=True)
        self._thread.start()

    def submit(self, descriptor: int) -> None:
        """See `Disk.submit`."""
        self._outstanding = True
        self._requests.put(descriptor)

    def completed(self) -> bool:
        """See `Disk.completed`."""
        return _clear(self._eventfd) and self._outstanding and self._take_result()

    def wait(self) -> None:
        """See `Disk.wait`."""
        while self._outstanding and not self.completed():
            _await(self._eventfd)

    def fileno(self) -> int:
        """See `Disk.fileno`."""
        return self._eventfd

    def close(self) -> None:
        """See `Disk.close`."""
        if self._eventfd >= 0:
            self._requests.put(None)
            self._thread.join()
            os.close(self._eventfd)
            self._eventfd = -1

    def _take_result(self) -> bool:
        error = self._results.get()
        self._outstanding = False
        if error is not None:
            raise error
        return True

    def _work(self) -> None:
        while (descriptor := self._requests.get()) is not None:
            try:
                os.fdatasync(descriptor)
                self._results.put(None)
            except OSError as error:
                self._results.put(error)
            os.eventfd_write(self._eventfd, 1)


def open_disk(descriptor: int) -> Disk:
    """Return the best disk that can sync the file *descriptor*; tries it on that file."""
    try:
        disk = AioDisk()
    except OSError:
        return ThreadDisk()
    try:
        disk.submit(descriptor)
        disk.wait()
    except OSError:
        disk.close()
        return ThreadDisk()
    return disk


def disk_for(directory: Path, make: Callable[[int], Disk]) -> Disk:
    """Return what *make* makes, given a descriptor in *directory* to try on."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return make(descriptor)
    finally:
        os.close(descriptor)


def _await(eventfd: int) -> None:
    """Wait until an eventfd is readable.

    A result that is taken before its signal leaves a signal behind, which wakes the event loop
    again and again.
    """
    poll = select.poll()
    poll.register(eventfd, select.POLLIN)
    poll.poll()


def _clear(eventfd: int) -> bool:
    """Make an eventfd unreadable, and tell whether it was: its signal follows the result."""
    try:
        os.eventfd_read(eventfd)
    except BlockingIOError:
        return False
    return True
