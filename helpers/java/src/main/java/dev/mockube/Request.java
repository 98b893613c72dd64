package dev.mockube;

import java.time.Instant;

/** A request that was sent to the server. Its code is 0 while it is in progress, and if a Fault cut its connection. */
public record Request(
        long version,
        Instant time,
        String user,
        String agent,
        String verb,
        String group,
        String resource,
        String subresource,
        String namespace,
        String name,
        String uri,
        int code,
        long revision,
        String fault,
        boolean isCut) {

    static Request of(Tree tree) {
        Tree spec = tree.tree("spec");
        Tree status = tree.tree("status");
        return new Request(
                Report.version(tree),
                Instant.parse(spec.text("time")),
                spec.text("user"),
                spec.text("agent"),
                spec.text("verb"),
                spec.text("group"),
                spec.text("resource"),
                spec.text("subresource"),
                spec.text("namespace"),
                spec.text("name"),
                spec.text("uri"),
                (int) status.number("code"),
                status.number("revision"),
                status.text("fault"),
                Boolean.TRUE.equals(status.get("isCut")));
    }
}
