package dev.mockube;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;

/**
 * The clock of a cluster for the code under test, with timers. An advance stops at each timer, and goes on when it has fired and no request
 * arrives any more.
 *
 * <p>Timers fire one after another in a thread of the clock; code that waits for another timer needs a thread of its own. After one that
 * throws, no timer fires any more: sleeps end with its error, and so does {@link #close}.
 */
public final class ClusterClock extends Clock implements AutoCloseable {
    private static final String PARTICIPANTS = Cluster.GROUP + "/clockparticipants";
    /** The longest time for which the thread waits, and far less than what overflows. */
    private static final Duration MAX_WAIT = Duration.ofDays(1);

    /** What the clock of the cluster showed at a time of the machine, and how fast it runs. */
    private record Reading(Instant time, Instant at, double rate) {
        static Reading of(Tree tree) {
            double rate = tree.get("rate") instanceof Number number ? number.doubleValue() : 0;
            return new Reading(Instant.parse(tree.text("time")), Instant.parse(tree.text("at")), rate);
        }

        Instant now() {
            if (rate == 0) {
                return time;
            }
            double passed = Duration.between(at, Instant.now()).toNanos() * rate;
            return time.plusNanos((long) passed).truncatedTo(ChronoUnit.MICROS);
        }
    }

    /** What fires at a time of the cluster, and again after each period if it has one. */
    public static final class Timer implements Comparable<Timer> {
        private final ClusterClock clock;
        private final Runnable work;
        private final Duration period;
        private Instant due;

        private Timer(ClusterClock clock, Runnable work, Instant due, Duration period) {
            this.clock = clock;
            this.work = work;
            this.due = due;
            this.period = period;
        }

        /** Lets the timer not fire any more, and returns whether it was to fire. */
        public boolean cancel() {
            return clock.cancel(this);
        }

        @Override
        public int compareTo(Timer other) {
            return due.compareTo(other.due);
        }
    }

    private static final class InZone extends Clock {
        private final Clock clock;
        private final ZoneId zone;

        InZone(Clock clock, ZoneId zone) {
            this.clock = clock;
            this.zone = zone;
        }

        @Override
        public Instant instant() {
            return clock.instant();
        }

        @Override
        public ZoneId getZone() {
            return zone;
        }

        @Override
        public Clock withZone(ZoneId other) {
            return new InZone(clock, other);
        }
    }

    private final Client client;
    private final String path;
    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private final Set<CompletableFuture<Void>> sleepers = new HashSet<>();
    private final Thread reader = new Thread(this::read, "mockube clock reader");
    private final Thread worker = new Thread(this::run, "mockube clock");
    private final CountDownLatch known = new CountDownLatch(1);
    private InputStream stream;
    private Reading reading;
    private boolean isClosed;
    private Throwable failure;

    private ClusterClock(Client client, String name) {
        this.client = client;
        this.path = PARTICIPANTS + "/" + name;
    }

    static ClusterClock start(Client client, String name) {
        client.send("POST", PARTICIPANTS, Cluster.object("ClockParticipant", Map.of("name", name), Map.of()));
        ClusterClock clock = new ClusterClock(client, name);
        clock.reader.setDaemon(true);
        clock.worker.setDaemon(true);
        clock.reader.start();
        try {
            clock.known.await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        if (!clock.isKnown()) {
            throw clock.endUnknown();
        }
        clock.worker.start();
        return clock;
    }

    private synchronized boolean isKnown() {
        return reading != null;
    }

    /** Closes the clock of a server that does not show it, and returns the error. */
    private IllegalStateException endUnknown() {
        Throwable cause = failure();
        IllegalStateException error = new IllegalStateException("this server does not show its clock", cause);
        try {
            close();
        } catch (RuntimeException | Error other) {
            if (other != cause) {
                error.addSuppressed(other);
            }
        }
        return error;
    }

    @Override
    public synchronized Instant instant() {
        return reading.now();
    }

    @Override
    public ZoneId getZone() {
        return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId other) {
        return new InZone(this, other);
    }

    /** Runs something after a while. */
    public Timer after(Duration delay, Runnable work) {
        return add(delay, Duration.ZERO, work);
    }

    /** Runs something again and again. */
    public Timer every(Duration period, Runnable work) {
        if (period.compareTo(Duration.ofNanos(1000)) < 0) {
            throw new IllegalArgumentException("a period has a microsecond at least");
        }
        return add(period, period, work);
    }

    /** Waits for a while. Throws IllegalStateException if the clock ends meanwhile. */
    public void sleep(Duration duration) throws InterruptedException {
        CompletableFuture<Void> woken = new CompletableFuture<>();
        Timer timer;
        synchronized (this) {
            timer = after(duration, () -> woken.complete(null));
            sleepers.add(woken);
        }
        try {
            woken.get();
        } catch (ExecutionException error) {
            throw ended();
        } finally {
            timer.cancel();
            synchronized (this) {
                sleepers.remove(woken);
            }
        }
    }

    /** Ends the clock, whose timers do not fire any more. */
    @Override
    public void close() {
        synchronized (this) {
            if (isClosed) {
                return;
            }
            isClosed = true;
            release();
        }
        closeStream();
        client.send("DELETE", path, null);
        if (failure() instanceof RuntimeException error) {
            throw error;
        }
        if (failure() instanceof Error error) {
            throw error;
        }
    }

    /** Notes why no timer fires any more. */
    private synchronized void fail(Throwable error) {
        if (!isOver()) {
            failure = error;
            release();
        }
    }

    private synchronized void release() {
        timers.clear();
        sleepers.forEach(each -> each.completeExceptionally(ended()));
        notifyAll();
    }

    private synchronized Throwable failure() {
        return failure;
    }

    private synchronized IllegalStateException ended() {
        return new IllegalStateException(failure == null ? "the clock was closed" : "the clock has failed", failure);
    }

    private synchronized void closeStream() {
        if (stream != null) {
            try {
                stream.close();
            } catch (IOException error) {
                // it has ended
            }
        }
    }

    private synchronized Timer add(Duration delay, Duration period, Runnable work) {
        if (isOver()) {
            throw ended();
        }
        Instant due = reading.now().plus(delay).plusNanos(999).truncatedTo(ChronoUnit.MICROS);
        Timer timer = new Timer(this, work, due, period);
        timers.add(timer);
        notifyAll();
        return timer;
    }

    private synchronized boolean cancel(Timer timer) {
        boolean wasActive = timers.remove(timer);
        notifyAll();
        return wasActive;
    }

    /** Reads what the clock of the cluster shows, until this clock is closed or the server ends. */
    private void read() {
        try (InputStream opened = client.stream("/mockube/clock");
                BufferedReader lines = new BufferedReader(new InputStreamReader(opened, StandardCharsets.UTF_8))) {
            synchronized (this) {
                stream = opened;
                if (isClosed) {
                    return;
                }
            }
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Reading next = Reading.of(Tree.parse(line));
                synchronized (this) {
                    reading = next;
                    notifyAll();
                }
                known.countDown();
            }
            fail(new IllegalStateException("the server does not show its clock any more"));
        } catch (IOException error) {
            fail(new UncheckedIOException(error));
        } catch (Throwable error) {
            fail(error);
        } finally {
            known.countDown();
        }
    }

    /** Fires timers, and writes when the next one is due. */
    private void run() {
        Map<String, Object> written = Map.of();
        try {
            while (!isOver()) {
                Timer due = take();
                if (due != null) {
                    due.work.run();
                    continue;
                }
                Map<String, Object> spec = spec();
                if (!spec.equals(written)) {
                    client.send("PATCH", path, Map.of("spec", spec));
                    written = spec;
                }
                await(spec);
            }
        } catch (InterruptedException error) {
            fail(new IllegalStateException("the thread of the clock was interrupted", error));
        } catch (Throwable error) {
            fail(error);
        }
    }

    private synchronized boolean isOver() {
        return isClosed || failure != null;
    }

    /** Returns a timer that is due; null if none is. */
    private synchronized Timer take() {
        Instant now = reading.now();
        Timer first = timers.peek();
        if (first == null || first.due.isAfter(now)) {
            return null;
        }
        timers.remove();
        if (!first.period.isZero()) {
            long missed = Duration.between(first.due, now).dividedBy(first.period);
            first.due = first.due.plus(first.period.multipliedBy(missed + 1));
            timers.add(first);
        }
        return first;
    }

    /** Returns at which time the program is idle if the clock stands still, and when the next timer is due. */
    private synchronized Map<String, Object> spec() {
        Map<String, Object> spec = new HashMap<>();
        boolean isIdle = reading.rate == 0 && (timers.isEmpty() || timers.peek().due.isAfter(reading.time));
        spec.put("idleAt", isIdle ? text(reading.time) : null);
        spec.put("nextTimer", timers.isEmpty() ? null : text(timers.peek().due));
        return spec;
    }

    /** Waits until the next timer is due, or something else than what was written. */
    private synchronized void await(Map<String, Object> written) throws InterruptedException {
        while (!isOver() && spec().equals(written)) {
            Duration wait = MAX_WAIT;
            if (reading.rate > 0 && !timers.isEmpty()) {
                double nanos = Duration.between(reading.now(), timers.peek().due).toNanos() / reading.rate;
                wait = Duration.ofNanos((long) Math.min(nanos, MAX_WAIT.toNanos()));
            } else if (!timers.isEmpty() && !timers.peek().due.isAfter(reading.time)) {
                return;
            }
            if (wait.isNegative() || wait.isZero()) {
                return;
            }
            wait(wait.toMillis() + 1);
        }
    }

    private static String text(Instant time) {
        return time.truncatedTo(ChronoUnit.MICROS).toString();
    }
}
