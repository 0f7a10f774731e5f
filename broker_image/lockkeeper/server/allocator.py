"""Settings of the C library's allocator, so that freed memory goes back to the system."""

import ctypes

LARGE_BYTES = 256 << 10
KEPT_BYTES = 8 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def give_back_large_blocks() -> None:
    """Have pages of its own for each large block, which go back to the system with it.

    glibc does so from 128 KiB on, but goes up to 32 MiB by what it sees freed (mallopt(3)). After
    the first data file what is large shares a heap with what is small and stays, and keeps its
    room there: two million waiting messages took 212 MiB to start instead of 175.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        # Else the end of the heap would go, and come again, all the time.
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
