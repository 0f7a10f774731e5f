package dev.lockkeeper.rocketmq;

import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.common.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** What is called differently in the line 4.9 of the client. */
final class Line {
    /** What names of topics and groups begin with: clients of both lines use one broker. */
    static final String PREFIX = "line4-";

    private Line() {}

    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    static SubscriptionGroupConfig groupConfig(String name) {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(name);
        return config;
    }
}
