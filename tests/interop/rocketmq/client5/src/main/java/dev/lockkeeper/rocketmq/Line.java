package dev.lockkeeper.rocketmq;

import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** What is called differently in the line 5 of the client. */
final class Line {
    /** What names of topics and groups begin with: clients of both lines use one broker. */
    static final String PREFIX = "line5-";

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
