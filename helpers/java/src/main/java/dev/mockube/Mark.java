package dev.mockube;

import java.util.List;

/** A name for a revision of the store. */
public record Mark(Cluster cluster, String name, long revision) {
    /** Returns the changes after the mark that meet the field selectors. It fails if the history of the server begins later. */
    public List<Change> changes(String... selectors) {
        cluster.request("GET", "/mockube/at/" + name + "/version", null);
        return cluster.changes(selectors).stream().filter(change -> change.revision() > revision).toList();
    }
}
