"""Names of settings in ActiveMQ's configuration, where they differ from ours."""

OURS_ALONE = "(none)"

ACTIVEMQ_NAMES = {
    "prefetch": "policyEntry",
    "prefetch.queue": "queuePrefetch",
    "prefetch.queueBrowser": "queueBrowserPrefetch",
    "prefetch.topic": "topicPrefetch",
    "prefetch.durableTopic": "durableTopicPrefetch",
    "prefetch.optimizedDurableTopic": "optimizeDurableTopicPrefetch",
    "deadLetters": "deadLetterStrategy",
    "deadLetters.strategy": "sharedDeadLetterStrategy, individualDeadLetterStrategy, discarding",
    "deadLetters.queue": "sharedDeadLetterStrategy's deadLetterQueue",
    "deadLetters.maximumRedeliveries": OURS_ALONE,
    "expiry": "policyEntry",
    "redelivery": "redeliveryPlugin",
    "redelivery.maximumRedeliveryDelay": "maximumRedeliveryDelay (-1 is no limit)",
    "subscriptionRecovery": "subscriptionRecoveryPolicy",
    "subscriptionRecovery.strategy": "noSubscriptionRecoveryPolicy, fixedCountSubscription"
    "RecoveryPolicy, fixedSizedSubscriptionRecoveryPolicy, timedSubscriptionRecoveryPolicy, "
    "lastImageSubscriptionRecoveryPolicy",
    "subscriptionRecovery.maximumCount": "maximumSize",
    "pendingMessageLimit": "pendingMessageLimitStrategy",
    "pendingMessageLimit.strategy": "constantPendingMessageLimitStrategy, "
    "prefetchRatePendingMessageLimitStrategy",
    "messageEviction": "messageEvictionStrategy",
    "messageEviction.strategy": "oldestMessageEvictionStrategy, oldestMessageWithLowestPriority"
    "EvictionStrategy, uniquePropertyMessageEvictionStrategy",
    "slowConsumers": "slowConsumerStrategy",
    "slowConsumers.strategy": "abortSlowConsumerStrategy, abortSlowAckConsumerStrategy",
    "recorded": OURS_ALONE,
    "dispatch": "policyEntry",
    "messageGroups": "messageGroupMapFactory",
    "messageGroups.map": "cachedMessageGroupMapFactory, simpleMessageGroupMapFactory, "
    "messageGroupHashBucketFactory",
    "inactivity": "policyEntry",
    "flow": "policyEntry",
    "flow.spoolNonPersistent": "pendingQueuePolicy, pendingSubscriberPolicy (vmQueueCursor and "
    "vmCursor are false)",
    "systemUsage.memoryUsage.percentOfAllowance": "percentOfJvmHeap",
    "limits": OURS_ALONE,
    "limits.destinations": OURS_ALONE,
    "limits.consumers": "maximumConsumersAllowedPerConnection",
    "limits.producers": "maximumProducersAllowedPerConnection",
    "limits.temporaryDestinations": OURS_ALONE,
    "limits.transactions": OURS_ALONE,
    "virtualTopics": "virtualDestinationInterceptor's virtualTopic",
    "compositeDestinations": "compositeQueue, compositeTopic",
    "compositeDestinations.kind": "compositeQueue, compositeTopic",
    "compositeDestinations.forwardTo.selector": "filteredDestination's selector",
    "mirroredQueues": "useMirroredQueues, mirroredQueue",
    "inactivity.inactiveTimeoutBeforeGc": "inactiveTimeoutBeforeGC",
    "networkBridgeFilter": "networkBridgeFilterFactory's conditionalNetworkBridgeFilterFactory",
    "networkConnectors": "networkConnector",
    "networkConnectors.passwordFile": "password",
    "networkConnectors.tls": "sslContext",
    "timestamps": "timeStampingBrokerPlugin",
    "populateJmsxUserId": "populateJMSXUserID",
    "scheduler": "broker",
    "scheduler.enabled": "schedulerSupport",
    "scheduler.timeZone": OURS_ALONE,
}
"""By the setting's path, as in `deadLetters.queue`; any other is called the same in ActiveMQ."""

_OURS_WITH_ALL_IN_THEM = ("streams",)


def activemq_name(path: str) -> str:
    """Return what the setting at *path* is called in ActiveMQ."""
    if path.partition(".")[0] in _OURS_WITH_ALL_IN_THEM:
        return OURS_ALONE
    return ACTIVEMQ_NAMES.get(path, path.rpartition(".")[2])
