package dev.mockube;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@WithCluster("--nodes=1")
class ClusterTest {
    private static final String CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
    private static final Map<String, ?> BUSY = Map.of(
            "match", Map.of("resource", "configmaps", "verbs", List.of("create")),
            "refuse", Map.of("status", 503),
            "times", 1);

    private static void create(Cluster cluster, String name) {
        cluster.request("POST", CONFIG_MAPS, Map.of("metadata", Map.of("name", name)));
    }

    @Test
    void faultRefusesRequestsAndCountsThem(Cluster cluster) {
        Fault fault = cluster.fault(BUSY);
        StatusException error = assertThrows(StatusException.class, () -> create(cluster, "refused"));
        assertEquals(503, error.code());
        assertEquals("ServiceUnavailable", error.reason());
        create(cluster, "refused");
        assertEquals(1, fault.hits());
        assertThrows(StatusException.class, () -> cluster.changes("kind=Podd"));
        List<Request> refused = cluster.requests("fault=" + fault.name());
        assertEquals(List.of(503), refused.stream().map(Request::code).toList());
        assertEquals("create", refused.get(0).verb());
    }

    @Test
    void faultsEndWhenTheyAreRemoved(Cluster cluster) {
        cluster.fault(BUSY);
        cluster.removeFaults();
        create(cluster, "accepted");
    }

    @Test
    void allFaultsAreForgottenWhenTheClusterHasDied() {
        Cluster own = Cluster.start("--nodes=0");
        own.fault(BUSY);
        own.fault(BUSY);
        own.close();
        RuntimeException error = assertThrows(RuntimeException.class, own::removeFaults);
        assertEquals(1, error.getSuppressed().length);
        own.removeFaults();
    }

    @Test
    void requestThatIsHeldEnds(Cluster cluster) {
        cluster.fault(Map.of("match", Map.of("path", "/version"), "delay", Map.of("seconds", 600)));
        Client client = new Client(Kubeconfig.read(cluster.kubeconfig()), Duration.ofMillis(200));
        assertThrows(UncheckedIOException.class, () -> client.send("GET", "/version", null));
    }

    @Test
    void faultThatIsMisspeltIsRefused(Cluster cluster) {
        Map<String, ?> spec = Map.of("match", Map.of("resource", "pod"), "cut", Map.of("when", "before"));
        StatusException error = assertThrows(StatusException.class, () -> cluster.fault(spec));
        assertTrue(error.getMessage().contains("did you mean \"pods\"?"), error.getMessage());
    }

    @Test
    void requestsAreNotThoseOfTheHelperItself(Cluster cluster) {
        cluster.mark("own").changes("kind=ConfigMap");
        create(cluster, "seen");
        List<Request> requests = cluster.requests("user=kubernetes-admin");
        assertEquals(
                List.of(),
                requests.stream()
                        .filter(each -> each.group().equals("control.mockube.dev"))
                        .toList());
        assertEquals(CONFIG_MAPS, requests.get(requests.size() - 1).uri());
    }

    @Test
    void changesAfterMarkHaveTheirPatches(Cluster cluster) {
        create(cluster, "colors");
        Mark mark = cluster.mark("before-colors");
        cluster.request("PATCH", CONFIG_MAPS + "/colors", Map.of("data", Map.of("color", "r\u00e9\"d\n")));
        String[] selectors = {"kind=ConfigMap", "namespace=default", "name=colors"};
        List<Change> all = cluster.changes(selectors);
        assertEquals(List.of("ADDED", "MODIFIED"), all.stream().map(Change::type).toList());
        List<Change> changes = mark.changes(selectors);
        assertEquals(1, changes.size());
        Tree operation = changes.get(0).patch().get(0);
        assertEquals("/data", operation.text("path"));
        assertEquals("r\u00e9\"d\n", operation.tree("value").text("color"));
    }

    @Test
    void rewindBringsObjectsBack(Cluster cluster) {
        create(cluster, "kept");
        cluster.mark("with-kept");
        cluster.request("DELETE", CONFIG_MAPS + "/kept", null);
        cluster.rewind("with-kept");
        assertEquals("kept", cluster.request("GET", CONFIG_MAPS + "/kept", null).tree("metadata").text("name"));
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void forkGoesOnByItself(Cluster cluster) {
        try (Cluster fork = cluster.fork("java-helper-" + ProcessHandle.current().pid())) {
            create(fork, "only-in-the-fork");
            String path = CONFIG_MAPS + "/only-in-the-fork";
            StatusException error = assertThrows(StatusException.class, () -> cluster.request("GET", path, null));
            assertEquals(404, error.code());
        }
    }

    @Test
    void forkThatIsRefusedIsReported(Cluster cluster) {
        StatusException error = assertThrows(StatusException.class, () -> cluster.fork("Not-A-Name"));
        assertTrue(error.getMessage().contains("Not-A-Name"), error.getMessage());
    }

    @Test
    void clockStandsStillAndIsAdvanced(Cluster cluster) {
        cluster.pause();
        try {
            Instant began = cluster.now();
            Instant ended = cluster.advance(Duration.ofMinutes(1));
            assertEquals(Duration.ofMinutes(1), Duration.between(began, ended));
            assertEquals(ended, cluster.now());
        } finally {
            cluster.resume();
        }
    }

    @Test
    void clockRunsFaster(Cluster cluster) {
        cluster.setRate(100);
        try {
            Instant began = cluster.now();
            Instant deadline = Instant.now().plusSeconds(30);
            while (cluster.now().isBefore(began.plusSeconds(10))) {
                assertTrue(Instant.now().isBefore(deadline), "10 seconds have not passed");
            }
        } finally {
            cluster.setRate(1);
        }
    }

    @Test
    void reportHasWhatHappenedSinceItsBeginning(Cluster cluster) {
        create(cluster, "earlier");
        Report report = new Report(cluster);
        create(cluster, "later");
        cluster.request("POST", "/api/v1/namespaces/default/events", Map.of(
                "metadata", Map.of("name", "late"),
                "type", "Warning",
                "reason", "Late",
                "message", "it is late",
                "involvedObject", Map.of("kind", "ConfigMap", "namespace", "default", "name", "later")));
        String text = report.text();
        for (String line : List.of(
                " 201 create " + CONFIG_MAPS + " (kubernetes-admin, mockube-helper-java)",
                "Warning Late ConfigMap default/later: it is late",
                " ADDED ConfigMap default/later (kubernetes-admin, ")) {
            assertTrue(text.contains(line), text);
        }
        for (String words : List.of("earlier", "kube-controller-manager)", "control.mockube.dev")) {
            assertFalse(text.contains(words), text);
        }
    }

    @Test
    @WithCluster("--nodes=0")
    void testHasClusterOfItsOwn(Cluster cluster) {
        assertEquals(List.of(), cluster.request("GET", "/api/v1/nodes", null).trees("items"));
    }

    @Test
    void closedClusterIsGone() {
        Path kubeconfig;
        try (Cluster own = Cluster.start("--nodes=0")) {
            kubeconfig = own.kubeconfig();
            assertTrue(Files.exists(kubeconfig));
        }
        assertFalse(Files.exists(kubeconfig));
    }

    @Test
    void flagThatDoesNotExistIsReported() {
        RuntimeException error = assertThrows(RuntimeException.class, () -> Cluster.start("--no-such-flag"));
        assertTrue(error.getMessage().contains("--no-such-flag"), error.getMessage());
    }

    @Test
    void missingProgramIsReported() {
        System.setProperty("mockube", "/no/such/program");
        try {
            RuntimeException error = assertThrows(RuntimeException.class, () -> Cluster.start());
            assertTrue(error.getMessage().contains("MOCKUBE"), error.getMessage());
        } finally {
            System.clearProperty("mockube");
        }
    }

    @Test
    void kubeconfigOfAnotherProgramIsRefused(@TempDir Path folder) throws Exception {
        Path path = Files.writeString(folder.resolve("kubeconfig"), "server: https://127.0.0.1\n");
        RuntimeException error = assertThrows(RuntimeException.class, () -> Cluster.connect(path));
        assertTrue(error.getMessage().contains("certificate-authority-data"), error.getMessage());
    }

    @Test
    void emptyPathOfAKubeconfigIsRefused() {
        for (Path path : new Path[] {null, Path.of("")}) {
            RuntimeException error = assertThrows(IllegalArgumentException.class, () -> Cluster.connect(path));
            assertTrue(error.getMessage().contains("is KUBECONFIG set?"), error.getMessage());
        }
    }
}
