package dev.lockkeeper.interop;

/** Something a broker must do; throws when it does not. */
@FunctionalInterface
interface Scenario {
    void run(Scene scene) throws Exception;
}
