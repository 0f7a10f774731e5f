"""Messages that are to be delivered later, or again and again (ActiveMQ's schedulerSupport).

Comes in: messages with AMQ_SCHEDULED_… properties, and requests on the management topic. A job
waits as a message of a queue of its own, so that it outlives restarts and failovers like any
other. Never here: a clock; `Timers` say when a job is due.
"""
