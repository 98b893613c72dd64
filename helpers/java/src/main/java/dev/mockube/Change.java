package dev.mockube;

import java.time.Instant;
import java.util.List;

/** A write to the store. The type is ADDED, MODIFIED or DELETED; the patch is a JSON patch against the version before. */
public record Change(
        long revision,
        Instant time,
        String type,
        String kind,
        String namespace,
        String name,
        String user,
        String manager,
        List<Tree> patch) {

    static Change of(Tree tree) {
        Tree spec = tree.tree("spec");
        Tree object = spec.tree("object");
        Tree author = spec.tree("author");
        return new Change(
                spec.number("revision"),
                Instant.parse(spec.text("time")),
                spec.text("type"),
                object.text("kind"),
                object.text("namespace"),
                object.text("name"),
                author.text("user"),
                author.text("manager"),
                spec.trees("patch"));
    }
}
