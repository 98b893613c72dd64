package dev.mockube;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A Kubernetes cluster for tests, by the program mockube.
 *
 * <p>What it does is described by kubectl explain: each object here is one of the API group control.mockube.dev.
 */
public final class Cluster implements AutoCloseable {
    private static final String CONTROL = "control.mockube.dev";
    private static final String API_VERSION = CONTROL + "/v1alpha1";
    static final String GROUP = "/apis/" + API_VERSION;
    private static final String CLOCK = GROUP + "/clocks/cluster";
    static final String ADVANCE = CLOCK + "/advance";

    private final Path kubeconfig;
    private final Kubeconfig access;
    private final Client client;
    private final Runnable stop;
    private final List<Fault> faults = new ArrayList<>();
    private final List<ClusterClock> clocks = new ArrayList<>();

    private Cluster(Path kubeconfig, Runnable stop) {
        this.kubeconfig = kubeconfig;
        this.access = Kubeconfig.read(kubeconfig);
        this.client = new Client(access);
        this.stop = stop;
    }

    /** Starts a cluster, with the flags of mockube run. It ends with close, and with the process. */
    public static Cluster start(String... flags) {
        ClusterProcess process = ClusterProcess.start(List.of(flags));
        return new Cluster(process.kubeconfig(), process::stop);
    }

    /** Returns a cluster that runs already, by the path of the kubeconfig that mockube wrote. */
    public static Cluster connect(Path kubeconfig) {
        return new Cluster(kubeconfig, () -> {});
    }

    /** Stops a cluster that was started. One that was connected keeps running. */
    @Override
    public void close() {
        stop.run();
    }

    /** Returns the path of a kubeconfig with the rights of an administrator. */
    public Path kubeconfig() {
        return kubeconfig;
    }

    /** Returns the URL of the API server. */
    public String server() {
        return access.server();
    }

    /** Returns the certificate of the cluster's authority, in PEM. */
    public String caCertificate() {
        return new String(access.caCertificate(), StandardCharsets.US_ASCII);
    }

    /** Returns the bearer token of the administrator. */
    public String token() {
        return access.token();
    }

    /**
     * Sends a request, such as GET /api/v1/nodes, and returns the object of the response. The body is of maps, lists, texts and
     * numbers, and may be null; that of a PATCH is a merge patch.
     */
    public Tree request(String method, String path, Object body) {
        return client.send(method, path, body);
    }

    /** Creates a fault. The spec is that of the kind Fault: match, times, refuse and so on. */
    public Fault fault(Map<String, ?> spec) {
        Tree created = request("POST", GROUP + "/faults", object("Fault", Map.of("generateName", "fault-"), spec));
        Fault fault = new Fault(this, created.tree("metadata").text("name"));
        faults.add(fault);
        return fault;
    }

    /** Removes the faults that were created here: all of them, also if one cannot be removed. */
    public void removeFaults() {
        List<Fault> created = List.copyOf(faults);
        faults.clear();
        runAll(created.stream().<Runnable>map(fault -> fault::remove).toList());
    }

    /** Closes the clocks that were created here. */
    public void closeClocks() {
        List<ClusterClock> created = List.copyOf(clocks);
        clocks.clear();
        runAll(created.stream().<Runnable>map(clock -> clock::close).toList());
    }

    /** Runs all of the work, also if one fails. */
    private static void runAll(List<Runnable> all) {
        RuntimeException failure = null;
        for (Runnable work : all) {
            try {
                work.run();
            } catch (RuntimeException error) {
                if (failure == null) {
                    failure = error;
                } else {
                    failure.addSuppressed(error);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /**
     * Returns the requests that meet the field selectors, such as verb=update or code!=200; the oldest first. Those by which this
     * package does its own work are left out.
     */
    public List<Request> requests(String... selectors) {
        return find("requests", selectors).list().trees("items").stream()
                .map(Request::of)
                .filter(each -> !isOwn(each))
                .toList();
    }

    /** Returns the changes that meet the field selectors, such as kind=Deployment or name=web; the oldest first. */
    public List<Change> changes(String... selectors) {
        return find("changes", selectors).list().trees("items").stream().map(Change::of).toList();
    }

    /** Names the newest revision. */
    public Mark mark(String name) {
        Tree created = request("POST", GROUP + "/marks", object("Mark", Map.of("name", name), Map.of()));
        return new Mark(this, name, created.tree("spec").number("revision"));
    }

    /** Makes the objects of a moment the newest ones: the name of a mark, a revision, a time, or a span before now such as -5m. */
    public void rewind(String moment) {
        request("POST", GROUP + "/rewinds", object("Rewind", Map.of(), Map.of("to", moment)));
    }

    /**
     * Starts a copy of the cluster with a name, which goes on by itself until its close. An exception says if the server makes no Forks,
     * as one that neither mockube up nor mockube run runs.
     */
    public Cluster fork(String name) {
        try {
            Tree made = request("POST", GROUP + "/forks", object("Fork", Map.of(), Map.of("name", name)));
            Path kubeconfig = Path.of(made.tree("status").text("kubeconfig"));
            return new Cluster(kubeconfig, () -> ClusterProcess.stopNamed(name));
        } catch (StatusException error) {
            if (error.code() == 404) {
                throw new IllegalStateException("this server offers no Forks", error);
            }
            throw error;
        }
    }

    /** Returns the time of the cluster. */
    public Instant now() {
        return time(request("GET", CLOCK, null));
    }

    /** Advances the clock, and returns its time when everything has happened that was due by then. */
    public Instant advance(Duration by) {
        Map<String, ?> spec = Map.of("seconds", by.toNanos() / 1e9);
        return time(request("POST", ADVANCE, object("ClockAdvance", Map.of(), spec)));
    }

    /**
     * Returns a clock for the code under test, until its close; the extension closes it after the test. The name is that of its object, a
     * ClockParticipant.
     */
    public ClusterClock clock(String name) {
        ClusterClock clock = ClusterClock.start(client, name);
        clocks.add(clock);
        return clock;
    }

    /** Lets time stand still. It can still be advanced. */
    public void pause() {
        setClock(Map.of("paused", true));
    }

    /** Lets time pass again. */
    public void resume() {
        setClock(Map.of("paused", false));
    }

    /** Lets so many seconds of the cluster pass in a second of the machine. */
    public void setRate(double rate) {
        setClock(Map.of("rate", rate));
    }

    /** Returns whether a request is one by which this package does its work. */
    private static boolean isOwn(Request request) {
        return request.agent().equals(Client.AGENT)
                && (request.group().equals(CONTROL) || request.uri().startsWith("/mockube/"));
    }

    Client.Found find(String resource, String... selectors) {
        String query = selectors.length == 0
                ? ""
                : "?fieldSelector=" + URLEncoder.encode(String.join(",", selectors), StandardCharsets.UTF_8);
        return client.find(GROUP + "/" + resource + query);
    }

    private void setClock(Map<String, ?> spec) {
        request("PATCH", CLOCK, Map.of("spec", spec));
    }

    private static Instant time(Tree clock) {
        return Instant.parse(clock.tree("status").text("time"));
    }

    static Map<String, ?> object(String kind, Map<String, ?> metadata, Map<String, ?> spec) {
        return Map.of("apiVersion", API_VERSION, "kind", kind, "metadata", metadata, "spec", spec);
    }
}
