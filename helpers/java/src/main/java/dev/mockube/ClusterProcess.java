package dev.mockube;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A running command mockube run. It ends with the process of the test, even if that is killed. */
final class ClusterProcess {
    /** The command for which the cluster exists: it prints the kubeconfig, and ends when its input does. */
    private static final String HOLD_OPEN = "printf '%s\\n' \"$KUBECONFIG\"; exec cat >/dev/null";

    private final Process process;
    private final Path messages;
    private final Path kubeconfig;

    private ClusterProcess(Process process, Path messages, Path kubeconfig) {
        this.process = process;
        this.messages = messages;
        this.kubeconfig = kubeconfig;
    }

    static ClusterProcess start(List<String> flags) {
        List<String> command = new ArrayList<>(List.of(program(), "run"));
        command.addAll(flags);
        command.addAll(List.of("--", "sh", "-c", HOLD_OPEN));
        try {
            Path messages = Files.createTempFile("mockube-", ".log");
            Process process = launch(command, messages);
            String line = new BufferedReader(process.inputReader(StandardCharsets.UTF_8)).readLine();
            if (line != null) {
                return new ClusterProcess(process, messages, Path.of(line));
            }
            new ClusterProcess(process, messages, null).stop();
            throw new IllegalStateException("mockube run did not start a cluster");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Stops the cluster with a name. */
    static void stopNamed(String name) {
        try {
            Path messages = Files.createTempFile("mockube-", ".log");
            new ClusterProcess(launch(List.of(program(), "down", "--name", name, "--delete"), messages), messages, null).stop();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The system property comes first, because a test can set it. */
    private static String program() {
        String named = System.getProperty("mockube", System.getenv("MOCKUBE"));
        return named == null || named.isEmpty() ? "mockube" : named;
    }

    private static Process launch(List<String> command, Path messages) throws IOException {
        try {
            return new ProcessBuilder(command).redirectError(messages.toFile()).start();
        } catch (IOException error) {
            Files.delete(messages);
            throw new IOException("the program mockube is not on the PATH, and MOCKUBE does not name it: " + error.getMessage(), error);
        }
    }

    Path kubeconfig() {
        return kubeconfig;
    }

    void stop() {
        try {
            process.getOutputStream().close();
            int code = process.waitFor();
            String text = Files.readString(messages);
            Files.deleteIfExists(messages);
            if (code != 0) {
                throw new IllegalStateException("mockube: exit code " + code + "\n" + text);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }
}
