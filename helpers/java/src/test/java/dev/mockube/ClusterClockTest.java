package dev.mockube;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@WithCluster("--nodes=1")
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class ClusterClockTest {
    private static final String CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

    private static ClusterClock pausedClock(Cluster cluster) {
        cluster.pause();
        return cluster.clock("shop-operator");
    }

    @Test
    void advanceStopsAtEachTick(Cluster cluster) {
        ClusterClock clock = pausedClock(cluster);
        Instant began = clock.instant();
        List<Instant> ticks = new CopyOnWriteArrayList<>();
        clock.every(Duration.ofSeconds(7), () -> ticks.add(clock.instant()));
        Instant ended = cluster.advance(Duration.ofMinutes(1));
        assertEquals(8, ticks.size());
        for (int count = 1; count <= 8; count++) {
            Duration late = Duration.between(began.plusSeconds(7L * count), ticks.get(count - 1));
            assertTrue(!late.isNegative() && late.toMillis() <= 2000, "tick " + count + " is late by " + late);
        }
        assertEquals(ended, clock.instant());
        assertEquals(ended, clock.withZone(ZoneId.of("Asia/Tokyo")).instant());
    }

    @Test
    void advanceHasTheResolutionOfTheCluster(Cluster cluster) {
        cluster.pause();
        Duration span = Duration.ofNanos(1_500_000);
        assertEquals(cluster.now().plus(span), cluster.advance(span));
    }

    @Test
    void timerFiresOnceUnlessItIsCancelled(Cluster cluster) {
        ClusterClock clock = pausedClock(cluster);
        List<String> fired = new CopyOnWriteArrayList<>();
        clock.after(Duration.ofSeconds(5), () -> fired.add("first"));
        ClusterClock.Timer cancelled = clock.after(Duration.ofSeconds(5), () -> fired.add("cancelled"));
        assertTrue(cancelled.cancel());
        assertFalse(cancelled.cancel());
        cluster.advance(Duration.ofSeconds(20));
        assertEquals(List.of("first"), fired);
    }

    @Test
    void workOfTimersIsPartOfTheAdvance(Cluster cluster) throws Exception {
        ClusterClock clock = pausedClock(cluster);
        clock.after(Duration.ofSeconds(30), () ->
                cluster.request("POST", CONFIG_MAPS, Map.of("metadata", Map.of("name", "later"))));
        cluster.advance(Duration.ofMinutes(1));
        cluster.request("GET", CONFIG_MAPS + "/later", null);
    }

    @Test
    void timerThatThrowsEndsTheClock(Cluster cluster) throws Exception {
        ClusterClock clock = pausedClock(cluster);
        clock.after(Duration.ZERO, () -> {
            throw new AssertionError("wrong");
        });
        Duration day = Duration.ofDays(1);
        IllegalStateException ended = assertThrows(IllegalStateException.class, () -> clock.sleep(day));
        assertEquals("wrong", ended.getCause().getMessage());
        assertThrows(IllegalStateException.class, () -> clock.after(day, () -> {}));
        assertThrows(AssertionError.class, clock::close);
    }

    @Test
    void sleepEndsWithTheClock(Cluster cluster) throws Exception {
        ClusterClock clock = pausedClock(cluster);
        CompletableFuture<Throwable> ended = new CompletableFuture<>();
        Thread sleeper = new Thread(() -> {
            try {
                clock.sleep(Duration.ofDays(1));
            } catch (Throwable error) {
                ended.complete(error);
            }
        });
        sleeper.start();
        clock.close();
        assertEquals("the clock was closed", ended.get().getMessage());
    }

    @Test
    void clockRunsWithTheCluster(Cluster cluster) throws Exception {
        ClusterClock clock = pausedClock(cluster);
        cluster.resume();
        Instant began = clock.instant();
        clock.sleep(Duration.ofMillis(100));
        assertTrue(Duration.between(began, clock.instant()).toMillis() >= 100);
        clock.close();
        String participants = Cluster.GROUP + "/clockparticipants";
        assertEquals(List.of(), cluster.request("GET", participants, null).trees("items"));
    }
}
