"""All protocols that a listener can speak, by the name that a Broker resource gives them.

A protocol is a folder beside this file, and a line here; what it has to offer is in `session.py`.
"""

from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.rocketmq.session import RocketMQSession
from lockkeeper.protocols.session import SessionFactory

PROTOCOLS: dict[str, SessionFactory] = {
    "openwire": OpenWireSession,
    "rocketmq": RocketMQSession,
}
