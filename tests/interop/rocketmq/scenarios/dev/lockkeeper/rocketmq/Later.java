package dev.lockkeeper.rocketmq;

import java.util.Map;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that come later: by a level of delay, or at a time (since 5.0). */
final class Later {
    private Later() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("delay-level", Later::level);
        scenarios.put("delay-order", Later::order);
        scenarios.put("delay-level-too-high", Later::levelTooHigh);
        scenarios.put("deliver-time", Later::time);
        scenarios.put("deliver-delay", Later::delay);
        scenarios.put("deliver-past", Later::past);
        scenarios.put("deliver-too-late", Later::tooLate);
    }

    private static void told(Scene scene, Message sent, long atLeast) throws Exception {
        var got = scene.started(scene.consumer(), sent.getTopic());
        long before = System.currentTimeMillis();
        scene.saw("%s", scene.producer().send(sent).getSendStatus());
        MessageExt message = Scene.next(got);
        long waited = System.currentTimeMillis() - before;
        scene.saw("%s waited %s", Scene.text(message), waited >= atLeast);
        scene.saw(
                "topic %s queue %d offset %d %s", message.getTopic(), message.getQueueId(),
                message.getQueueOffset(), Scene.properties(message));
        scene.saw("again %d system flag %d", message.getReconsumeTimes(), message.getSysFlag());
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static Message message(Scene scene) throws Exception {
        Message message = Scene.message(scene.topic("a", 1), "tag", "later");
        message.putUserProperty("mine", "1");
        message.setKeys("key");
        return message;
    }

    private static void level(Scene scene) throws Exception {
        Message message = message(scene);
        message.setDelayTimeLevel(1);
        told(scene, message, 900);
    }

    private static void order(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        for (int level : new int[] {2, 1, 0}) {
            Message message = Scene.message(topic, "level " + level);
            message.setDelayTimeLevel(level);
            scene.producer().send(message);
        }
        scene.saw("%s", Scene.texts(Scene.next(got, 3)));
    }

    private static void levelTooHigh(Scene scene) throws Exception {
        Message message = message(scene);
        message.setDelayTimeLevel(99);
        told(scene, message, 900);
    }

    private static void time(Scene scene) throws Exception {
        Message message = message(scene);
        MessageAccessor.putProperty(
                message, "TIMER_DELIVER_MS", "" + (System.currentTimeMillis() + 5_000));
        told(scene, message, 900);
    }

    private static void delay(Scene scene) throws Exception {
        Message message = message(scene);
        MessageAccessor.putProperty(message, "TIMER_DELAY_SEC", "5");
        told(scene, message, 900);
    }

    private static void past(Scene scene) throws Exception {
        Message message = message(scene);
        MessageAccessor.putProperty(
                message, "TIMER_DELIVER_MS", "" + (System.currentTimeMillis() - 60_000));
        told(scene, message, 0);
    }

    private static void tooLate(Scene scene) throws Exception {
        Message message = message(scene);
        MessageAccessor.putProperty(message, "TIMER_DELAY_SEC", "" + 100L * 86_400);
        scene.saw("sent", () -> scene.producer().send(message).getSendStatus());
    }
}
