package dev.mockube;

import java.time.Instant;
import java.util.List;

/**
 * A write to the store. The type is ADDED, MODIFIED or DELETED; the patch is a JSON patch against the version before.
 *
 * <p>The time is null if another server wrote it; then user and manager are empty, as they are if it is too long ago. If there is no patch,
 * such as one that is too large, patchOmitted says why, and is empty else.
 */
public record Change(
        long revision,
        Instant time,
        String type,
        String kind,
        String namespace,
        String name,
        String user,
        String manager,
        List<Tree> patch,
        String patchOmitted) {

    static Change of(Tree tree) {
        Tree spec = tree.tree("spec");
        Tree object = spec.tree("object");
        Tree author = spec.tree("author");
        return new Change(
                spec.number("revision"),
                spec.get("time") == null ? null : Instant.parse(spec.text("time")),
                spec.text("type"),
                object.text("kind"),
                object.text("namespace"),
                object.text("name"),
                author.text("user"),
                author.text("manager"),
                spec.trees("patch"),
                spec.text("patchOmitted"));
    }
}
