"""Streams: logs of partitions that consumer groups read at their own pace (RocketMQ's model).

Comes in: drafts of messages, reads, offsets, heartbeats and locks of groups, the time. Goes out:
one output for each command that has to wait, in the outbox of its connection. Never here: the
wire of a protocol, files, what a client does with what it reads.
"""
