package dev.lockkeeper.rocketmq;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What tools ask of a name server and a broker. */
final class Administering {
    private Administering() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("admin-cluster", Administering::cluster);
        scenarios.put("admin-topics", Administering::topics);
        scenarios.put("admin-route", Administering::route);
        scenarios.put("admin-topic-stats", Administering::topicStats);
        scenarios.put("admin-progress", Administering::progress);
        scenarios.put("admin-reset-offset", Administering::resetOffset);
        scenarios.put("admin-reset-offset-online", Administering::resetOffsetOnline);
        scenarios.put("admin-by-key", Administering::byKey);
        scenarios.put("admin-by-offset-id", Administering::byOffsetId);
        scenarios.put("admin-by-unique-key", Administering::byUniqueKey);
        scenarios.put("admin-consumer-connection", Administering::consumerConnection);
        scenarios.put("admin-producer-connection", Administering::producerConnection);
        scenarios.put("admin-running-info", Administering::runningInfo);
        scenarios.put("admin-delete-topic", Administering::deleteTopic);
        scenarios.put("admin-groups", Administering::groups);
        scenarios.put("admin-who-consumes", Administering::whoConsumes);
        scenarios.put("admin-offset-of-a-queue", Administering::offsetOfAQueue);
        scenarios.put("admin-consume-directly", Administering::consumeDirectly);
    }

    private static void cluster(Scene scene) throws Exception {
        var cluster = scene.admin().examineBrokerClusterInfo();
        scene.saw("%s", cluster.getClusterAddrTable());
        for (var entry : cluster.getBrokerAddrTable().entrySet()) {
            scene.saw(
                    "%s in %s, ids %s", entry.getKey(), entry.getValue().getCluster(),
                    entry.getValue().getBrokerAddrs().keySet());
        }
    }

    private static void topics(Scene scene) throws Exception {
        Set<String> made = new TreeSet<>(List.of(scene.topic("a", 1), scene.topic("b", 1)));
        Set<String> all = scene.admin().fetchAllTopicList().getTopicList();
        scene.saw("%s", all.containsAll(made));
        Set<String> ofCluster = scene.admin().fetchTopicsByCLuster("DefaultCluster").getTopicList();
        scene.saw("of the cluster %s", ofCluster.containsAll(made));
    }

    private static void route(Scene scene) throws Exception {
        String topic = scene.topic("a", 3);
        var route = scene.admin().examineTopicRouteInfo(topic);
        var queues = route.getQueueDatas().get(0);
        scene.saw(
                "%s read %d write %d permission %d flag %d, %d brokers", queues.getBrokerName(),
                queues.getReadQueueNums(), queues.getWriteQueueNums(), queues.getPerm(),
                queues.getTopicSysFlag(), route.getBrokerDatas().size());
        var config = scene.admin().examineTopicConfig(scene.broker(), topic);
        scene.saw(
                "%s read %d write %d permission %d order %s", config.getTopicName(),
                config.getReadQueueNums(), config.getWriteQueueNums(), config.getPerm(),
                config.isOrder());
        scene.saw("unknown", () -> scene.admin().examineTopicRouteInfo("unheard-of"));
    }

    private static void topicStats(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 2, 0, 5);
        Map<Integer, String> stats = new TreeMap<>(Map.of());
        Scene.eventually(3L, () -> scene.admin().examineTopicStats(topic).getOffsetTable()
                .get(scene.queue(topic, 0)).getMaxOffset());
        var offsets = scene.admin().examineTopicStats(topic).getOffsetTable();
        offsets.forEach((queue, offset) -> stats.put(
                queue.getQueueId(),
                offset.getMinOffset() + " to " + offset.getMaxOffset()
                        + (offset.getLastUpdateTimestamp() > 0 ? " updated" : " never")));
        scene.saw("%s", stats);
        scene.saw("unknown", () -> scene.admin().examineTopicStats("unheard-of"));
    }

    private static Map<Integer, String> lag(Scene scene, String topic) throws Exception {
        Map<Integer, String> lags = new TreeMap<>();
        scene.admin().examineConsumeStats(scene.group(), topic).getOffsetTable()
                .forEach((queue, offset) -> lags.put(
                        queue.getQueueId(),
                        offset.getConsumerOffset() + " of " + offset.getBrokerOffset()));
        return lags;
    }

    private static void consumed(Scene scene, String topic, int count) throws Exception {
        DefaultMQPushConsumer consumer = scene.consumer();
        scene.saw("%s", Scene.sorted(scene.started(consumer, topic), count));
        scene.leave(consumer, topic);
    }

    private static void progress(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 2, 0, 4);
        consumed(scene, topic, 4);
        scene.fill(topic, 2, 4, 7);
        Map<Integer, String> wanted = Map.of(0, "2 of 4", 1, "2 of 3");
        scene.saw("%s", Scene.eventually(wanted, () -> lag(scene, topic)));
        scene.saw("unknown", () -> scene.admin().examineConsumeStats("unheard-of"));
    }

    private static void resetOffset(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 4);
        consumed(scene, topic, 4);
        Scene.eventually(Map.of(0, "4 of 4"), () -> lag(scene, topic));
        scene.saw("offline", () -> {
            scene.admin().resetOffsetByTimestampOld(scene.group(), topic, 0, true)
                    .forEach(each -> scene.saw(
                            "queue %d from %d to %d", each.getQueueId(), each.getConsumerOffset(),
                            each.getRollbackOffset()));
            return "done";
        });
        scene.saw("%s", lag(scene, topic));
        consumed(scene, topic, 4);
    }

    private static void resetOffsetOnline(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        var got = scene.started(scene.consumer(), topic);
        scene.saw("%s", Scene.sorted(got, 3));
        scene.saw("online", () -> {
            var offsets = scene.admin().resetOffsetByTimestamp(topic, scene.group(), 0, true);
            Map<Integer, Long> shown = new TreeMap<>();
            offsets.forEach((queue, offset) -> shown.put(queue.getQueueId(), offset));
            return shown;
        });
        scene.saw("again %s", Scene.sorted(got, 3));
    }

    private static void byKey(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        long before = System.currentTimeMillis();
        for (int number = 0; number < 4; number++) {
            Message message = Scene.message(topic, "m" + number);
            message.setKeys(number % 2 == 0 ? "even two" : "odd");
            scene.producer().send(message);
        }
        DefaultMQAdminExt admin = scene.admin();
        long soon = before + 600_000;
        scene.saw("%s", Scene.eventually(List.of("m0", "m2"), () -> keyed(
                admin.queryMessage(topic, "even", 10, before - 1_000, soon))));
        scene.saw("odd", () -> keyed(admin.queryMessage(topic, "odd", 10, before - 1_000, soon)));
        scene.saw("two", () -> keyed(admin.queryMessage(topic, "two", 10, before - 1_000, soon)));
        scene.saw("one", () -> keyed(
                admin.queryMessage(topic, "odd", 1, before - 1_000, soon)).size());
        scene.saw("none", () -> keyed(admin.queryMessage(topic, "none", 10, before - 1_000, soon)));
        scene.saw("too early", () -> keyed(
                admin.queryMessage(topic, "odd", 10, before - 60_000, before - 30_000)));
    }

    private static List<String> keyed(QueryResult result) {
        return Scene.texts(result.getMessageList()).stream().sorted().toList();
    }

    private static void byOffsetId(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        SendResult sent = scene.producer().send(Scene.message(topic, "tag", "m"));
        scene.saw("found", () -> {
            MessageExt found = scene.admin().viewMessage(topic, sent.getOffsetMsgId());
            return Scene.text(found) + " queue " + found.getQueueId() + " offset "
                    + found.getQueueOffset() + " " + Scene.properties(found);
        });
        String wrong = sent.getOffsetMsgId().substring(0, 16) + "00000000FFFFFFFF";
        scene.saw("not found", () -> scene.admin().viewMessage(topic, wrong) == null);
    }

    private static void byUniqueKey(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        SendResult sent = scene.producer().send(Scene.message(topic, "tag", "m"));
        scene.saw("%s", Scene.eventually("m", () -> {
            MessageExt found = scene.admin().viewMessage(topic, sent.getMsgId());
            return found == null ? null : Scene.text(found);
        }));
    }

    private static void consumerConnection(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.saw("nobody", () -> scene.admin().examineConsumerConnectionInfo(scene.group()));
        scene.started(scene.consumer(), topic, "red || blue");
        Scene.eventually(1, () -> scene.admin().examineConsumerConnectionInfo(scene.group())
                .getConnectionSet().size());
        var info = scene.admin().examineConsumerConnectionInfo(scene.group());
        scene.saw(
                "%d members, %s %s %s", info.getConnectionSet().size(), info.getConsumeType(),
                info.getMessageModel(), info.getConsumeFromWhere());
        info.getSubscriptionTable().entrySet().stream().sorted(Map.Entry.comparingByKey())
                .forEach(entry -> scene.saw(
                        "%s: %s %s %s", entry.getKey(), entry.getValue().getSubString(),
                        entry.getValue().getExpressionType(),
                        new TreeSet<>(entry.getValue().getTagsSet())));
        info.getConnectionSet().forEach(each -> scene.saw("%s", each.getLanguage()));
    }

    private static void producerConnection(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.producer().send(Scene.message(topic, "m"));
        String group = scene.group("producers");
        Scene.eventually(1, () -> scene.admin().examineProducerConnectionInfo(group, topic)
                .getConnectionSet().size());
        scene.saw("members", () -> scene.admin().examineProducerConnectionInfo(group, topic)
                .getConnectionSet().size());
        scene.saw("nobody", () -> scene.admin().examineProducerConnectionInfo("unheard-of", topic));
    }

    private static void runningInfo(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        DefaultMQPushConsumer consumer = scene.consumer();
        scene.started(consumer, topic);
        String client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        var queues = Scene.eventually(2L, () -> scene.admin()
                .getConsumerRunningInfo(scene.group(), client, false).getMqTable().keySet().stream()
                .filter(queue -> queue.getTopic().equals(topic)).count());
        scene.saw("%d queues", queues);
        scene.saw("unknown", () -> scene.admin()
                .getConsumerRunningInfo(scene.group(), "unheard-of", false));
    }

    private static void deleteTopic(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 2);
        scene.admin().deleteTopicInBroker(Set.of(scene.broker()), topic);
        scene.saw("config", () -> scene.admin().examineTopicConfig(scene.broker(), topic));
    }

    private static void groups(Scene scene) throws Exception {
        var config = Line.groupConfig(scene.group());
        config.setRetryQueueNums(2);
        config.setRetryMaxTimes(3);
        scene.admin().createAndUpdateSubscriptionGroupConfig(scene.broker(), config);
        var got = scene.admin().examineSubscriptionGroupConfig(scene.broker(), scene.group());
        scene.saw(
                "%s retries %d queues %d enabled %s broadcast %s", got.getGroupName(),
                got.getRetryMaxTimes(), got.getRetryQueueNums(), got.isConsumeEnable(),
                got.isConsumeBroadcastEnable());
        var all = scene.admin().getAllSubscriptionGroup(scene.broker(), 10_000)
                .getSubscriptionGroupTable();
        scene.saw("listed %s", all.containsKey(scene.group()));
        scene.admin().deleteSubscriptionGroup(scene.broker(), scene.group());
        scene.saw("listed %s", scene.admin().getAllSubscriptionGroup(scene.broker(), 10_000)
                .getSubscriptionGroupTable().containsKey(scene.group()));
    }

    private static void whoConsumes(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 1);
        scene.saw("nobody", () -> scene.admin().queryTopicConsumeByWho(topic).getGroupList());
        Scene.next(scene.started(scene.consumer(), topic));
        scene.saw("the group %s", Scene.eventually(true, () -> scene.admin()
                .queryTopicConsumeByWho(topic).getGroupList().contains(scene.group())));
    }

    private static void offsetOfAQueue(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 4);
        consumed(scene, topic, 4);
        Scene.eventually(Map.of(0, "4 of 4"), () -> lag(scene, topic));
        scene.admin().updateConsumeOffset(
                scene.broker(), scene.group(), scene.queue(topic, 0), 2);
        scene.saw("%s", lag(scene, topic));
        consumed(scene, topic, 2);
    }

    private static void consumeDirectly(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        var got = scene.started(consumer, topic);
        SendResult sent = scene.producer().send(Scene.message(topic, "m"));
        Scene.next(got);
        String client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        scene.saw("directly", () -> scene.admin().consumeMessageDirectly(
                scene.group(), client, topic, sent.getOffsetMsgId()).getConsumeResult());
        scene.saw("again %s", Scene.sorted(got, 1));
    }
}
