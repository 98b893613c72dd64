package dev.mockube;

import java.time.Instant;
import java.util.List;
import java.util.stream.Stream;

/** What happened in a cluster since a test began. */
final class Report {
    private static final int MAX_LINES = 20;
    /** The beginning of the User-Agent of mockube's own controllers. */
    private static final String CONTROLLERS = "kube-controller-manager";

    private final Cluster cluster;
    private final long revision;
    private final long request;

    /** Begins a report. */
    Report(Cluster cluster) {
        this.cluster = cluster;
        this.revision = version(cluster.request("GET", Cluster.GROUP + "/changes?limit=1", null));
        this.request = version(cluster.find("requests", "code=0").list());
    }

    /** Returns a resource version as a number; later ones are larger. */
    static long version(Tree tree) {
        String version = tree.tree("metadata").text("resourceVersion");
        return version.isEmpty() ? 0 : Long.parseLong(version);
    }

    String text() {
        Stream<String> requests = cluster.requests("group!=control.mockube.dev").stream()
                .filter(each -> each.version() > request && !each.agent().startsWith(CONTROLLERS))
                .map(Report::line);
        Stream<String> events = cluster.request("GET", "/api/v1/events", null).trees("items").stream()
                .filter(each -> version(each) > revision)
                .map(Report::eventLine);
        Stream<String> changes = cluster.changes().stream()
                .filter(each -> each.revision() > revision && !isRoutine(each))
                .map(Report::line);
        return String.join(
                "\n",
                section("requests", requests.toList()),
                section("events", events.toList()),
                section("changes", changes.toList()));
    }

    private static String section(String title, List<String> lines) {
        if (lines.isEmpty()) {
            return "mockube: no " + title;
        }
        int omitted = Math.max(0, lines.size() - MAX_LINES);
        String head = "mockube: " + title + (omitted > 0 ? "\n    ... and " + omitted + " before" : "");
        return head + "\n    " + String.join("\n    ", lines.subList(omitted, lines.size()));
    }

    private static String line(Request request) {
        String noCode = request.isCut() ? "cut" : "...";
        String code = request.code() == 0 ? noCode : String.valueOf(request.code());
        String fault = request.fault().isEmpty() ? "" : " fault=" + request.fault();
        return String.format(
                "%s %s %s %s (%s, %s)%s",
                time(request.time()), code, request.verb(), request.uri(), request.user(), request.agent(), fault);
    }

    private static String eventLine(Tree event) {
        Tree object = event.tree("involvedObject");
        return String.format(
                "%s %s %s: %s",
                event.text("type"),
                event.text("reason"),
                reference(object.text("kind"), object.text("namespace"), object.text("name")),
                event.text("message"));
    }

    static String line(Change change) {
        StringBuilder line = new StringBuilder(String.format(
                "%s %s %s (%s)",
                change.time() == null ? "--:--:--.---" : time(change.time()),
                change.type(),
                reference(change.kind(), change.namespace(), change.name()),
                change.user().isEmpty() ? "the author is not known" : change.user() + ", " + change.manager()));
        if (!change.patchOmitted().isEmpty()) {
            line.append("\n        no patch: ").append(change.patchOmitted());
        }
        if (change.type().equals("MODIFIED")) {
            for (Tree operation : change.patch()) {
                String value = operation.fields().containsKey("value") ? Json.write(operation.get("value")) : "";
                line.append(String.format("\n        %s %s %s", operation.text("op"), operation.text("path"), value));
            }
        }
        return line.toString();
    }

    /** Returns whether a change repeats in each cluster, or is an Event, which has a section of its own. */
    private static boolean isRoutine(Change change) {
        return change.kind().equals("Event") || change.kind().equals("Lease");
    }

    private static String reference(String kind, String namespace, String name) {
        return namespace.isEmpty() ? kind + " " + name : kind + " " + namespace + "/" + name;
    }

    private static String time(Instant time) {
        return time.toString().substring(11).replace("Z", "");
    }
}
