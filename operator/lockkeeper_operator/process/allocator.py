"""Settings of the C library's allocator, so that freed memory goes back to the system."""

import ctypes

LARGE_BYTES = 1 << 20
KEPT_BYTES = 8 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def give_back_large_blocks() -> None:
    """Have pages of its own for each large block, which go back to the system with it.

    glibc does so only until it has seen a large block freed (mallopt(3)). scrypt takes 16 MiB for
    each password, and the thread that hashes would keep them for good.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        # Else the end of the heap would go, and come again, all the time.
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
