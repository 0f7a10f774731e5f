package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.same;

import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.advisory.ConsumerEvent;
import org.apache.activemq.advisory.ConsumerEventSource;
import org.apache.activemq.advisory.ProducerEvent;
import org.apache.activemq.advisory.ProducerEventSource;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQTempQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.command.ConnectionId;
import org.apache.activemq.command.ConnectionInfo;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.DataStructure;
import org.apache.activemq.command.DestinationInfo;
import org.apache.activemq.command.ProducerInfo;
import org.apache.activemq.command.RemoveInfo;
import org.apache.activemq.command.RemoveSubscriptionInfo;

/** What the broker tells of itself on the topics called ActiveMQ.Advisory.*. */
final class Advisories {

    private Advisories() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("advisory-connection", Advisories::connection);
        scenarios.put("advisory-origin", Advisories::origin);
        scenarios.put("advisory-queue", Advisories::queue);
        scenarios.put("advisory-temporary-queue", Advisories::temporaryQueue);
        scenarios.put("advisory-consumer", Advisories::consumer);
        scenarios.put("advisory-consumer-events", Advisories::consumerEvents);
        scenarios.put("advisory-consumer-exists", Advisories::consumerExists);
        scenarios.put("advisory-producer", Advisories::producer);
        scenarios.put("advisory-producer-events", Advisories::producerEvents);
        scenarios.put("advisory-producer-exists", Advisories::producerExists);
        scenarios.put("advisory-connection-exists", Advisories::connectionExists);
        scenarios.put("advisory-wildcard", Advisories::wildcard);
        scenarios.put("advisory-composite", Advisories::composite);
        scenarios.put("advisory-unsubscribed", Advisories::unsubscribed);
        scenarios.put("advisory-expired", Advisories::expired);
        scenarios.put("advisory-dead-lettered", Advisories::deadLettered);
        scenarios.put("advisory-silent", Advisories::silent);
        scenarios.put("advisory-delivered", Advisories::delivered);
        scenarios.put("advisory-consumed", Advisories::consumed);
        scenarios.put("advisory-body", Advisories::body);
        scenarios.put("advisory-no-consumer", Advisories::noConsumer);
        scenarios.put("advisory-discarded", Advisories::discarded);
        scenarios.put("advisory-slow-consumer", Advisories::slowConsumer);
        scenarios.put("advisory-full", Advisories::full);
    }

    private static MessageConsumer listen(Scene scene, Destination topic) throws JMSException {
        return scene.session().createConsumer(topic);
    }

    private static <S> S content(Message advisory, Class<S> expected) {
        DataStructure content = ((ActiveMQMessage) advisory).getDataStructure();
        check(expected.isInstance(content), "expected " + expected + ", found " + content);
        return expected.cast(content);
    }

    private static <S> S content(MessageConsumer listener, Class<S> expected) throws JMSException {
        Message advisory = next(listener);
        return content(advisory, expected);
    }

    // Connections and destinations

    private static ConnectionInfo connectionOf(MessageConsumer listener, String clientId)
            throws JMSException {
        while (true) {
            DataStructure content = ((ActiveMQMessage) next(listener)).getDataStructure();
            if (content instanceof ConnectionInfo
                    && clientId.equals(((ConnectionInfo) content).getClientId())) {
                return (ConnectionInfo) content;
            }
        }
    }

    private static void connection(Scene scene) throws Exception {
        MessageConsumer listener = listen(scene, AdvisorySupport.getConnectionAdvisoryTopic());
        ActiveMQConnection connection = scene.connectAs(scene.name);
        ConnectionInfo info = connectionOf(listener, scene.name);
        ConnectionId identifier = connection.getConnectionInfo().getConnectionId();
        same(identifier, info.getConnectionId(), "connection id");
        check(info.getClientIp() != null, "a connection has an address");
        connection.close();
        same(identifier, content(listener, RemoveInfo.class).getObjectId(), "who has gone");
    }

    private static void connectionExists(Scene scene) throws Exception {
        scene.connectAs(scene.name);
        MessageConsumer listener = listen(scene, AdvisorySupport.getConnectionAdvisoryTopic());
        connectionOf(listener, scene.name);
    }

    private static void origin(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer listener = listen(scene, AdvisorySupport.getConsumerAdvisoryTopic(queue));
        scene.session().createConsumer(queue);
        Message advisory = next(listener);
        same("Advisory", advisory.getJMSType(), "type");
        same(DeliveryMode.NON_PERSISTENT, advisory.getJMSDeliveryMode(), "delivery mode");
        for (String name : List.of("originBrokerId", "originBrokerName", "originBrokerURL")) {
            check(advisory.getStringProperty(name) != null, "it lacks " + name);
        }
    }

    private static DestinationInfo toldOf(MessageConsumer listener, Destination destination)
            throws JMSException {
        while (true) {
            DestinationInfo info = content(listener, DestinationInfo.class);
            if (info.getDestination().equals(destination)) {
                return info;
            }
        }
    }

    private static void queue(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer listener =
                listen(scene, AdvisorySupport.getDestinationAdvisoryTopic(queue));
        ActiveMQConnection connection = scene.connect();
        connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createProducer(queue).close();
        check(toldOf(listener, queue).isAddOperation(), "it was made");
        connection.destroyDestination((ActiveMQDestination) queue);
        check(toldOf(listener, queue).isRemoveOperation(), "it was removed");
    }

    private static void temporaryQueue(Scene scene) throws Exception {
        MessageConsumer listener =
                listen(scene, AdvisorySupport.TEMP_DESTINATION_COMPOSITE_ADVISORY_TOPIC);
        ActiveMQConnection connection = scene.connect();
        TemporaryQueue queue = connection
                .createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createTemporaryQueue();
        DestinationInfo made = toldOf(listener, queue);
        check(made.isAddOperation(), "it was made");
        same(
                ((ActiveMQTempQueue) queue).getConnectionId(),
                made.getConnectionId().getValue(),
                "whose it is");
        connection.close();
        check(toldOf(listener, queue).isRemoveOperation(), "it went with its connection");
    }

    // Consumers and producers

    private static void consumer(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        MessageConsumer listener = listen(scene, AdvisorySupport.getConsumerAdvisoryTopic(topic));
        Session session = scene.session();
        MessageConsumer first = session.createConsumer(topic, "a = 1");
        Message advisory = next(listener);
        ConsumerInfo info = content(advisory, ConsumerInfo.class);
        same(topic, info.getDestination(), "destination");
        same("a = 1", info.getSelector(), "selector");
        same(1, advisory.getIntProperty("consumerCount"), "consumers");
        session.createConsumer(topic);
        same(2, next(listener).getIntProperty("consumerCount"), "consumers");
        first.close();
        Message last = next(listener);
        same(info.getConsumerId(), content(last, RemoveInfo.class).getObjectId(), "who has gone");
        same(1, last.getIntProperty("consumerCount"), "consumers");
        session.close();
        same(0, next(listener).getIntProperty("consumerCount"), "consumers");
    }

    private static <E> E heard(BlockingQueue<E> events) throws InterruptedException {
        E event = events.poll(Scene.SOON, TimeUnit.MILLISECONDS);
        check(event != null, "an event was expected and none came");
        return event;
    }

    private static BlockingQueue<ConsumerEvent> consumerEvents(Scene scene, Destination of)
            throws Exception {
        ConsumerEventSource source = new ConsumerEventSource(scene.connect(), of);
        BlockingQueue<ConsumerEvent> events = new LinkedBlockingQueue<>();
        source.setConsumerListener(events::add);
        source.start();
        return events;
    }

    private static void consumerEvents(Scene scene) throws Exception {
        BlockingQueue<ConsumerEvent> events = consumerEvents(scene, scene.queue("all"));
        MessageConsumer consumer = scene.session().createConsumer(scene.queue("all"));
        ConsumerEvent started = heard(events);
        check(started.isStarted(), "a consumer has come");
        same(1, started.getConsumerCount(), "consumers");
        consumer.close();
        ConsumerEvent stopped = heard(events);
        check(!stopped.isStarted(), "a consumer has gone");
        same(0, stopped.getConsumerCount(), "consumers");
        same(started.getConsumerId(), stopped.getConsumerId(), "the same one");
    }

    private static void consumerExists(Scene scene) throws Exception {
        scene.session().createConsumer(scene.queue("all"));
        scene.session().createConsumer(scene.queue("all"));
        BlockingQueue<ConsumerEvent> events = consumerEvents(scene, scene.queue("all"));
        for (int i = 0; i < 2; i++) {
            ConsumerEvent event = heard(events);
            check(event.isStarted(), "a consumer is there");
            same(2, event.getConsumerCount(), "consumers");
        }
    }

    private static void producer(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer listener = listen(scene, AdvisorySupport.getProducerAdvisoryTopic(queue));
        Session session = scene.session();
        session.createProducer(null);
        MessageProducer producer = session.createProducer(queue);
        Message advisory = next(listener);
        ProducerInfo info = content(advisory, ProducerInfo.class);
        same(queue, info.getDestination(), "destination");
        same(1, advisory.getIntProperty("producerCount"), "producers");
        producer.close();
        Message last = next(listener);
        same(info.getProducerId(), content(last, RemoveInfo.class).getObjectId(), "who has gone");
        same(0, last.getIntProperty("producerCount"), "producers");
    }

    private static BlockingQueue<ProducerEvent> producerEvents(Scene scene, Destination of)
            throws Exception {
        ProducerEventSource source = new ProducerEventSource(scene.connect(), of);
        BlockingQueue<ProducerEvent> events = new LinkedBlockingQueue<>();
        source.setProducerListener(events::add);
        source.start();
        return events;
    }

    private static void producerEvents(Scene scene) throws Exception {
        BlockingQueue<ProducerEvent> events = producerEvents(scene, scene.topic("all"));
        ActiveMQConnection connection = scene.connect();
        connection
                .createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createProducer(scene.topic("all"));
        ProducerEvent started = heard(events);
        check(started.isStarted(), "a producer has come");
        same(1, started.getProducerCount(), "producers");
        connection.close();
        ProducerEvent stopped = heard(events);
        check(!stopped.isStarted(), "it went with its connection");
        same(started.getProducerId(), stopped.getProducerId(), "the same one");
    }

    private static void producerExists(Scene scene) throws Exception {
        scene.session().createProducer(scene.queue("all"));
        ProducerEvent event = heard(producerEvents(scene, scene.queue("all")));
        check(event.isStarted(), "a producer is there");
        same(1, event.getProducerCount(), "producers");
    }

    private static void wildcard(Scene scene) throws Exception {
        Session session = scene.session();
        session.createConsumer(scene.queue("before"));
        Queue all = scene.queue(">");
        MessageConsumer listener = listen(scene, AdvisorySupport.getConsumerAdvisoryTopic(all));
        same(
                scene.queue("before"),
                content(listener, ConsumerInfo.class).getDestination(),
                "who was there");
        session.createConsumer(scene.queue("after"));
        same(
                scene.queue("after"),
                content(listener, ConsumerInfo.class).getDestination(),
                "who came");
    }

    private static void composite(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        String topics = AdvisorySupport.getConsumerAdvisoryTopic(queue).getPhysicalName()
                + ","
                + AdvisorySupport.getProducerAdvisoryTopic(queue).getPhysicalName();
        Session session = scene.session();
        session.createConsumer(queue);
        MessageConsumer listener = listen(scene, new ActiveMQTopic(topics));
        content(listener, ConsumerInfo.class);
        session.createProducer(queue);
        content(listener, ProducerInfo.class);
    }

    private static void unsubscribed(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        MessageConsumer listener = listen(scene, AdvisorySupport.getConsumerAdvisoryTopic(topic));
        Session session =
                scene.connectAs(scene.name).createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(topic, "sub").close();
        ConsumerInfo info = content(listener, ConsumerInfo.class);
        same("sub", info.getSubscriptionName(), "subscription");
        content(listener, RemoveInfo.class);
        session.unsubscribe("sub");
        RemoveSubscriptionInfo deleted = content(listener, RemoveSubscriptionInfo.class);
        same("sub", deleted.getSubscriptionName(), "subscription");
        same(scene.name, deleted.getClientId(), "client");
    }

    // Messages

    private static void aboutMessage(MessageConsumer listener, Message sent) throws JMSException {
        Message advisory = next(listener);
        ActiveMQMessage about = content(advisory, ActiveMQMessage.class);
        same(sent.getJMSMessageID(), about.getJMSMessageID(), "message id");
        String named = advisory.getStringProperty("orignalMessageId");
        same(sent.getJMSMessageID(), named, "named message id");
    }

    private static void expired(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer listener = listen(scene, AdvisorySupport.getExpiredMessageTopic(queue));
        Session session = scene.session();
        Message message = session.createTextMessage("short-lived");
        session.createProducer(queue).send(message, DeliveryMode.PERSISTENT, 4, 100);
        Thread.sleep(300);
        nothing(session.createConsumer(queue));
        aboutMessage(listener, message);
    }

    private static void deadLettered(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer listener = listen(
                scene, AdvisorySupport.getMessageDLQdAdvisoryTopic((ActiveMQDestination) queue));
        Session session = scene.connect("jms.redeliveryPolicy.maximumRedeliveries=0")
                .createSession(true, Session.SESSION_TRANSACTED);
        Message message = session.createTextMessage("bad");
        session.createProducer(queue).send(message);
        session.commit();
        next(session.createConsumer(queue));
        session.rollback();
        ActiveMQMessage about = content(listener, ActiveMQMessage.class);
        same(message.getJMSMessageID(), about.getJMSMessageID(), "message id");
    }

    private static void silent(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        String name = queue.getQueueName();
        MessageConsumer listener = listen(scene, new ActiveMQTopic(
                "ActiveMQ.Advisory.MessageDelivered.Queue." + name
                        + ",ActiveMQ.Advisory.MessageConsumed.Queue." + name
                        + ",ActiveMQ.Advisory.NoConsumer.Queue." + name));
        Session session = scene.session();
        sendPassing(session, queue, "a");
        Scene.only(session.createConsumer(queue), "a");
        nothing(listener);
    }

    private static Message sendPassing(Session session, Destination destination, String text)
            throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        Message message = session.createTextMessage(text);
        producer.send(message);
        producer.close();
        return message;
    }

    private static Message sendOne(Session session, Destination destination) throws JMSException {
        Message message = session.createTextMessage("a text");
        session.createProducer(destination).send(message);
        return message;
    }

    private static void delivered(Scene scene) throws Exception {
        for (Destination to : List.of(scene.queue("all"), scene.topic("all"))) {
            MessageConsumer listener =
                    listen(scene, AdvisorySupport.getMessageDeliveredAdvisoryTopic(to));
            aboutMessage(listener, sendOne(scene.session(), to));
        }
    }

    private static void consumed(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer listener =
                listen(scene, AdvisorySupport.getMessageConsumedAdvisoryTopic(queue));
        Session session = scene.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Message sent = sendOne(session, queue);
        Message received = next(session.createConsumer(queue));
        nothing(listener);
        received.acknowledge();
        aboutMessage(listener, sent);
    }

    private static void body(Scene scene) throws Exception {
        MessageConsumer with = listen(
                scene, AdvisorySupport.getMessageDeliveredAdvisoryTopic(scene.queue("with")));
        MessageConsumer without = listen(
                scene, AdvisorySupport.getMessageDeliveredAdvisoryTopic(scene.queue("without")));
        Session session = scene.session();
        sendOne(session, scene.queue("with"));
        sendOne(session, scene.queue("without"));
        same("a text", ((TextMessage) content(with, ActiveMQMessage.class)).getText(), "body");
        same(null, ((TextMessage) content(without, ActiveMQMessage.class)).getText(), "body");
    }

    private static void noConsumer(Scene scene) throws Exception {
        for (Destination to : List.of(scene.queue("all"), scene.topic("all"))) {
            ActiveMQTopic topic =
                    AdvisorySupport.getNoConsumersAdvisoryTopic((ActiveMQDestination) to);
            MessageConsumer listener = listen(scene, topic);
            sendPassing(scene.session(), to, "nobody is there");
            TextMessage copy = next(listener);
            same("nobody is there", copy.getText(), "the message itself");
            same(topic, copy.getJMSDestination(), "where it is");
            scene.session().createConsumer(to);
            sendPassing(scene.session(), to, "somebody is there");
            nothing(listener);
        }
    }

    private static void discarded(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        MessageConsumer listener =
                listen(scene, AdvisorySupport.getMessageDiscardedAdvisoryTopic(topic));
        Session session = scene.session();
        session.createConsumer(new ActiveMQTopic(
                topic.getTopicName()
                        + "?consumer.prefetchSize=1&consumer.maximumPendingMessageLimit=1"));
        sendOne(session, topic);
        Message lost = sendOne(session, topic);
        sendOne(session, topic);
        Message advisory = next(listener);
        same(lost.getJMSMessageID(), advisory.getStringProperty("orignalMessageId"), "lost");
        same(1, advisory.getIntProperty("discardedCount"), "how many so far");
        check(advisory.getStringProperty("consumerId") != null, "whose it was");
    }

    private static void slowConsumer(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        MessageConsumer listener =
                listen(scene, AdvisorySupport.getSlowConsumerAdvisoryTopic(topic));
        Session session = scene.session();
        session.createConsumer(
                new ActiveMQTopic(topic.getTopicName() + "?consumer.prefetchSize=2"));
        Scene.send(session, topic, Scene.numbered("m", 8));
        Message advisory = next(listener);
        ConsumerInfo info = content(advisory, ConsumerInfo.class);
        String named = advisory.getStringProperty("consumerId");
        same(info.getConsumerId().toString(), named, "consumer");
        nothing(listener);
    }

    private static void full(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer full = listen(scene, AdvisorySupport.getFullAdvisoryTopic(queue));
        MessageConsumer fast = listen(scene, AdvisorySupport.getFastProducerAdvisoryTopic(queue));
        Session session = scene.session();
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int i = 0; i < 30; i++) {
            producer.send(session.createTextMessage("x".repeat(4000)));
        }
        Message advisory = next(full);
        check(advisory.getStringProperty("usageName") != null, "what is full");
        check(advisory.getLongProperty("usageCount") > 0, "how much is used");
        ProducerInfo blamed = content(fast, ProducerInfo.class);
        check(blamed.getProducerId() != null, "who has to wait");
        MessageConsumer consumer = scene.session().createConsumer(queue);
        for (int i = 0; i < 30; i++) {
            next(consumer);
        }
    }
}
