package dev.mockube;

import java.util.List;

/** A name for a revision of the store. */
public record Mark(Cluster cluster, String name, long revision) {
    /** Returns the changes after the mark that meet the field selectors. */
    public List<Change> changes(String... selectors) {
        return cluster.changes(selectors).stream().filter(change -> change.revision() > revision).toList();
    }
}
