package dev.lockkeeper.bench;

import java.util.concurrent.Semaphore;
import javax.jms.Destination;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** Scenario o: four clients ask, one after the other, and four services answer. */
final class RequestReply {

    static final int PAIRS = 4;
    private static final long ANSWER_MILLIS_MAX = 30_000;

    private RequestReply() {}

    static void roundTrips(Clients clients, Meter meter) throws Exception {
        for (int i = 0; i < PAIRS; i++) {
            answer(clients, clients.session(false));
        }
        for (int i = 0; i < PAIRS; i++) {
            Session session = clients.session(false);
            clients.run(() -> ask(clients, meter, session));
        }
        meter.measure();
        clients.stop(new Semaphore(0));
        clients.settle();
    }

    private static void answer(Clients clients, Session session) throws Exception {
        MessageProducer producer = Clients.producer(session, null, false);
        session.createConsumer(clients.queue()).setMessageListener(request -> {
            try {
                Message reply = session.createTextMessage("done");
                reply.setJMSCorrelationID(request.getJMSCorrelationID());
                producer.send(request.getJMSReplyTo(), reply);
            } catch (Exception exception) {
                clients.fail(exception);
            }
        });
    }

    private static void ask(Clients clients, Meter meter, Session session) throws Exception {
        Meter.Recorder recorder = meter.recorder();
        MessageProducer producer = Clients.producer(session, clients.queue(), false);
        Destination own = session.createTemporaryQueue();
        MessageConsumer answers = session.createConsumer(own);
        for (long number = 0; !clients.stopping(); number++) {
            Message request = Clients.message(session);
            request.setJMSReplyTo(own);
            request.setJMSCorrelationID(Long.toString(number));
            long began = System.nanoTime();
            producer.send(request);
            Message reply = answers.receive(ANSWER_MILLIS_MAX);
            if (reply == null || !Long.toString(number).equals(reply.getJMSCorrelationID())) {
                throw new IllegalStateException("no answer, or that of another request");
            }
            recorder.record(System.nanoTime() - began);
            meter.count();
        }
    }
}
