"""Agreement of both sides of a connection, which follows from their WireFormatInfos."""

from dataclasses import dataclass

from lockkeeper.message.openwire import Codec


@dataclass(frozen=True, slots=True)
class Agreement:
    """Settings that both sides agreed on; times in ms, 0 for no inactivity check.

    With `spliced`, messages pass as the bytes they are.
    """

    codec: Codec
    inactivity_duration: int
    inactivity_initial_delay: int
    spliced: bool
