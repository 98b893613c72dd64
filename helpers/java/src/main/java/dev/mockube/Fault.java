package dev.mockube;

/** A rule that harms requests. */
public final class Fault {
    private final Cluster cluster;
    private final String name;

    Fault(Cluster cluster, String name) {
        this.cluster = cluster;
        this.name = name;
    }

    /** Returns the name of the object, which requests that got the fault have, too. */
    public String name() {
        return name;
    }

    /** Returns the number of requests that got the fault. */
    public long hits() {
        return cluster.request("GET", path(), null).tree("status").number("hits");
    }

    /** Ends the fault; requests that it delays continue. */
    public void remove() {
        try {
            cluster.request("DELETE", path(), null);
        } catch (StatusException error) {
            if (error.code() != 404) {
                throw error;
            }
        }
    }

    private String path() {
        return Cluster.GROUP + "/faults/" + name;
    }
}
