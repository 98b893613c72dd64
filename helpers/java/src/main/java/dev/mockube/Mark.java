package dev.mockube;

import java.util.List;

/** A name for a revision of the store. */
public record Mark(Cluster cluster, String name, long revision) {
    /**
     * Returns the changes after the mark that meet the field selectors. It fails if the history of the server begins later, and if there
     * are more than a list has.
     */
    public List<Change> changes(String... selectors) {
        cluster.request("GET", "/mockube/at/" + name + "/version", null);
        Client.Found found = cluster.find("changes", selectors);
        List<Tree> items = found.list().trees("items");
        List<Change> changes = items.stream()
                .map(Change::of)
                .filter(change -> change.revision() > revision)
                .toList();
        if (found.isCut() && changes.size() == items.size()) {
            throw new IllegalStateException("the list of changes does not reach back to the mark " + name
                    + ": select a kind, a namespace and a name");
        }
        return changes;
    }
}
