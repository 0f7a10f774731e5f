package dev.lockkeeper.rocketmq;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** RocketMQ on loopback, name server and broker, with its data in a directory. */
public final class Main {
    private static final int SMALL_FILE_BYTES = 32 << 20;

    private Main() {}

    /**
     * Runs both; the arguments are the two ports, the directory and the name of the broker. With
     * {@code durable} behind them the store is as RocketMQ's own, but syncs each send before it is
     * answered; else its files are small and nobody waits for the disk.
     */
    public static void main(String[] arguments) throws Exception {
        // A name server reads the topics only of brokers that say their version.
        System.setProperty(
                RemotingCommand.REMOTING_VERSION_KEY, "" + MQVersion.CURRENT_VERSION);
        int nameServerPort = Integer.parseInt(arguments[0]);
        int brokerPort = Integer.parseInt(arguments[1]);
        startNameServer(nameServerPort, arguments[2]);
        boolean isDurable = arguments.length > 4 && arguments[4].equals("durable");
        MessageStoreConfig store = isDurable ? durable() : small();
        startBroker(nameServerPort, brokerPort, arguments[2], arguments[3], store);
    }

    private static void startNameServer(int port, String directory) throws Exception {
        NamesrvConfig names = new NamesrvConfig();
        names.setRocketmqHome(directory);
        names.setKvConfigPath(directory + "/names/kvConfig.json");
        names.setConfigStorePath(directory + "/names/names.properties");
        NettyServerConfig netty = new NettyServerConfig();
        netty.setBindAddress("127.0.0.1");
        netty.setListenPort(port);
        NamesrvController server = new NamesrvController(names, netty);
        if (!server.initialize()) {
            throw new IllegalStateException("the name server does not start");
        }
        server.start();
    }

    private static MessageStoreConfig durable() {
        MessageStoreConfig store = new MessageStoreConfig();
        store.setFlushDiskType(FlushDiskType.SYNC_FLUSH);
        return store;
    }

    private static MessageStoreConfig small() {
        MessageStoreConfig store = new MessageStoreConfig();
        store.setMappedFileSizeCommitLog(SMALL_FILE_BYTES);
        store.setMappedFileSizeConsumeQueue(20 * 10_000);
        store.setMappedFileSizeTimerLog(SMALL_FILE_BYTES);
        store.setMaxIndexNum(40_000);
        store.setMaxHashSlotNum(10_000);
        store.setFlushDiskType(FlushDiskType.ASYNC_FLUSH);
        return store;
    }

    private static void startBroker(
            int nameServerPort, int port, String directory, String name, MessageStoreConfig store)
            throws Exception {
        BrokerConfig broker = new BrokerConfig();
        broker.setRocketmqHome(directory);
        broker.setBrokerName(name);
        broker.setBrokerIP1("127.0.0.1");
        broker.setNamesrvAddr("127.0.0.1:" + nameServerPort);
        broker.setEnablePropertyFilter(true);
        // On a busy machine requests wait for longer than the usual 200 ms.
        broker.setWaitTimeMillsInSendQueue(60_000);
        broker.setWaitTimeMillsInPullQueue(60_000);
        broker.setWaitTimeMillsInHeartbeatQueue(60_000);
        broker.setWaitTimeMillsInTransactionQueue(60_000);
        // Half messages are looked at often, so that scenarios need not wait.
        broker.setTransactionTimeOut(2_000);
        broker.setTransactionCheckInterval(1_000);
        broker.setTransactionCheckMax(3);
        store.setStorePathRootDir(directory + "/store");
        store.setStorePathCommitLog(directory + "/store/commitlog");
        store.setDiskMaxUsedSpaceRatio(99);
        store.setMessageDelayLevel("1s 2s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s");
        store.setHaListenPort(0);
        NettyServerConfig netty = new NettyServerConfig();
        netty.setBindAddress("127.0.0.1");
        netty.setListenPort(port);
        BrokerController controller =
                new BrokerController(broker, netty, new NettyClientConfig(), store);
        if (!controller.initialize()) {
            throw new IllegalStateException("the broker does not start");
        }
        controller.start();
    }
}
