package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.RedeliveryPolicy;

/** What is acknowledged is gone, what is not comes again. */
final class Acknowledgement {

    private Acknowledgement() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("acknowledge-auto", Acknowledgement::auto);
        scenarios.put("acknowledge-client", Acknowledgement::client);
        scenarios.put("acknowledge-client-beyond-prefetch", Acknowledgement::beyondPrefetch);
        scenarios.put("acknowledge-individual", Acknowledgement::individual);
        scenarios.put("acknowledge-dups-ok", Acknowledgement::dupsOk);
        scenarios.put("acknowledge-optimized", Acknowledgement::optimized);
        scenarios.put("acknowledge-recover", Acknowledgement::recover);
        scenarios.put("acknowledge-dead-letter", Acknowledgement::deadLetter);
        scenarios.put("acknowledge-listener-throws", Acknowledgement::listenerThrows);
        scenarios.put("acknowledge-consumer-closes", Acknowledgement::consumerCloses);
        scenarios.put("acknowledge-topic-client", Acknowledgement::topicClient);
    }

    private static void auto(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        Scene.send(session, queue, "a", "b", "c");
        MessageConsumer consumer = session.createConsumer(queue);
        same(List.of("a", "b"), Scene.texts(consumer, 2), "texts");
        session.close();
        only(scene.session().createConsumer(queue), "c");
    }

    private static void client(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, "a", "b", "c", "d");
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        next(consumer);
        next(consumer).acknowledge();
        same("c", Scene.<TextMessage>next(consumer).getText(), "third");
        connection.close();
        MessageConsumer again = scene.session().createConsumer(queue);
        TextMessage third = next(again);
        same("c", third.getText(), "not acknowledged");
        check(third.getJMSRedelivered(), "a message delivered before is marked");
        same(2, third.getIntProperty("JMSXDeliveryCount"), "delivery count");
        TextMessage fourth = next(again);
        same("d", fourth.getText(), "never delivered");
        check(!fourth.getJMSRedelivered(), "a message only prefetched is not marked");
        nothing(again);
    }

    private static void beyondPrefetch(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, Scene.numbered("m", 40));
        ActiveMQConnection connection = scene.connect("jms.prefetchPolicy.queuePrefetch=10");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        Message last = null;
        for (int i = 0; i < 40; i++) {
            last = next(consumer);
        }
        last.acknowledge();
        connection.close();
        nothing(scene.session().createConsumer(queue));
    }

    private static void individual(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, Scene.numbered("m", 6));
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        for (int i = 0; i < 6; i++) {
            Message message = next(consumer);
            if (i == 1 || i == 4) {
                message.acknowledge();
            }
        }
        connection.close();
        only(scene.session().createConsumer(queue), "m0", "m2", "m3", "m5");
    }

    private static void dupsOk(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, Scene.numbered("m", 25));
        ActiveMQConnection connection = scene.connect("jms.prefetchPolicy.queuePrefetch=10");
        Session session = connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
        Scene.texts(session.createConsumer(queue), 25);
        connection.close();
        nothing(scene.session().createConsumer(queue));
    }

    private static void optimized(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, Scene.numbered("m", 30));
        ActiveMQConnection connection =
                scene.connect("jms.optimizeAcknowledge=true&jms.prefetchPolicy.queuePrefetch=10");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Scene.texts(session.createConsumer(queue), 30);
        connection.close();
        nothing(scene.session().createConsumer(queue));
    }

    private static void recover(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, "a", "b", "c");
        ActiveMQConnection connection =
                scene.connect("jms.redeliveryPolicy.initialRedeliveryDelay=0");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        next(consumer).acknowledge();
        next(consumer);
        session.recover();
        TextMessage again = next(consumer);
        same("b", again.getText(), "after recover");
        check(again.getJMSRedelivered(), "marked as redelivered");
        same(2, again.getIntProperty("JMSXDeliveryCount"), "delivery count");
        next(consumer).acknowledge();
        connection.close();
        nothing(scene.session().createConsumer(queue));
    }

    private static void deadLetter(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session sender = scene.session();
        TextMessage poison = sender.createTextMessage("poison");
        poison.setStringProperty("scenario", scene.name);
        sender.createProducer(queue).send(poison);
        Scene.send(sender, queue, "harmless");
        ActiveMQConnection connection = scene.connect();
        RedeliveryPolicy policy = connection.getRedeliveryPolicy();
        policy.setInitialRedeliveryDelay(0);
        policy.setRedeliveryDelay(0);
        policy.setMaximumRedeliveries(2);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(queue);
        for (int delivery = 1; delivery <= 3; delivery++) {
            TextMessage message = next(consumer);
            same("poison", message.getText(), "delivery " + delivery);
            same(delivery, message.getIntProperty("JMSXDeliveryCount"), "delivery count");
            session.rollback();
        }
        same("harmless", Scene.<TextMessage>next(consumer).getText(), "after the poison");
        session.commit();
        MessageConsumer dead = sender.createConsumer(
                sender.createQueue("ActiveMQ.DLQ"), "scenario = '" + scene.name + "'");
        TextMessage letter = next(dead);
        same("poison", letter.getText(), "the dead letter");
        String cause = letter.getStringProperty("dlqDeliveryFailureCause");
        check(cause != null && cause.contains("redelivery policy limit"), "cause: " + cause);
        same(poison.getJMSMessageID(), letter.getJMSMessageID(), "message id");
        nothing(dead);
    }

    private static void listenerThrows(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        ActiveMQConnection connection =
                scene.connect("jms.redeliveryPolicy.initialRedeliveryDelay=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        List<String> seen = new CopyOnWriteArrayList<>();
        session.createConsumer(queue).setMessageListener(message -> {
            try {
                seen.add(((TextMessage) message).getText() + message.getJMSRedelivered());
                if (!message.getJMSRedelivered()) {
                    throw new IllegalStateException("the first delivery fails");
                }
            } catch (javax.jms.JMSException exception) {
                throw new IllegalStateException(exception);
            }
        });
        Scene.send(scene.session(), queue, "once");
        Scene.until("it came twice", () -> seen.size() == 2);
        same(List.of("oncefalse", "oncetrue"), List.copyOf(seen), "deliveries");
        connection.close();
        nothing(scene.session().createConsumer(queue));
    }

    private static void consumerCloses(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, Scene.numbered("m", 20));
        Session first = scene.session();
        MessageConsumer holder = first.createConsumer(queue);
        same("m0", Scene.<TextMessage>next(holder).getText(), "first");
        Session second = scene.session();
        MessageConsumer waiting = second.createConsumer(queue);
        nothing(waiting);
        holder.close();
        List<String> rest = Scene.texts(waiting, 19);
        same(List.of(Scene.numbered("m", 20)).subList(1, 20), rest, "what was prefetched");
    }

    private static void topicClient(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect("jms.prefetchPolicy.topicPrefetch=10");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(scene.topic("all"));
        Scene.send(scene.session(), scene.topic("all"), Scene.numbered("t", 50));
        for (int i = 0; i < 50; i++) {
            TextMessage message = next(consumer);
            same("t" + i, message.getText(), "order");
            if (i % 4 == 3) {
                message.acknowledge();
            }
        }
    }
}
