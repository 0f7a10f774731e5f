package dev.lockkeeper.rocketmq;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests and their replies. */
final class Requests {
    private static final long PATIENCE = 20_000;

    private Requests() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("request-reply", Requests::reply);
        scenarios.put("request-async", Requests::async);
        scenarios.put("request-unanswered", Requests::unanswered);
        scenarios.put("request-two-clients", Requests::twoClients);
    }

    /** Answers all requests; returns what came of the first reply. */
    private static CompletableFuture<String> answer(Scene scene, String topic) throws Exception {
        CompletableFuture<String> replied = new CompletableFuture<>();
        DefaultMQProducer replies = scene.producer("repliers");
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    byte[] body = ("reply to " + Scene.text(message)).getBytes();
                    Message reply = MessageUtil.createReplyMessage(message, body);
                    reply.putUserProperty("mine", "1");
                    replied.complete(replies.send(reply, 10_000).getSendStatus().toString());
                } catch (Exception failed) {
                    replied.complete(failed.toString());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return replied;
    }

    private static String told(Message reply) {
        MessageExt extended = (MessageExt) reply;
        return String.format(
                "%s topic %s system flag %d %s", Scene.text(reply), reply.getTopic(),
                extended.getSysFlag(), Scene.properties(reply));
    }

    private static void reply(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        CompletableFuture<String> replied = answer(scene, topic);
        Message reply = scene.producer().request(Scene.message(topic, "question"), PATIENCE);
        scene.saw(told(reply));
        scene.saw("replied %s", replied.get(PATIENCE, TimeUnit.MILLISECONDS));
    }

    private static void async(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        answer(scene, topic);
        CompletableFuture<Message> answered = new CompletableFuture<>();
        scene.producer().request(Scene.message(topic, "question"), new RequestCallback() {
            @Override
            public void onSuccess(Message reply) {
                answered.complete(reply);
            }

            @Override
            public void onException(Throwable error) {
                answered.completeExceptionally(error);
            }
        }, PATIENCE);
        scene.saw(Scene.text(answered.get(PATIENCE, TimeUnit.MILLISECONDS)));
    }

    private static void unanswered(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        try {
            scene.producer().request(Scene.message(topic, "question"), 5_000);
            scene.saw("answered");
        } catch (RequestTimeoutException late) {
            scene.saw("too late");
        }
        MessageExt question = Scene.next(got);
        scene.saw("%s %s", Scene.text(question), Scene.properties(question));
    }

    private static void twoClients(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        answer(scene, topic);
        for (String part : List.of("one", "other")) {
            Message reply = scene.producer(part).request(Scene.message(topic, part), PATIENCE);
            scene.saw("%s: %s", part, Scene.text(reply));
        }
    }
}
