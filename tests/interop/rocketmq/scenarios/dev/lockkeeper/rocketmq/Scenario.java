package dev.lockkeeper.rocketmq;

/** A program that uses a broker and says what it saw. */
@FunctionalInterface
interface Scenario {
    void run(Scene scene) throws Exception;
}
