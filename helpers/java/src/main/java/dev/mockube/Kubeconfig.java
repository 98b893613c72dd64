package dev.mockube;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/** A kubeconfig that mockube wrote: it has one cluster and one user, and one field in each line. */
record Kubeconfig(String server, byte[] caCertificate, String token) {
    static Kubeconfig read(Path path) {
        if (path == null || path.toString().isEmpty()) {
            throw new IllegalArgumentException("the path of the kubeconfig is empty: is KUBECONFIG set? "
                    + "`mockube kubeconfig --path` prints that of `mockube up`");
        }
        try {
            String text = Files.readString(path);
            byte[] authority = Base64.getDecoder().decode(field(path, text, "certificate-authority-data"));
            return new Kubeconfig(field(path, text, "server"), authority, field(path, text, "token"));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String field(Path path, String text, String name) {
        Pattern pattern = Pattern.compile("(?m)^\\s*" + name + ": \"?([^\"\\s]+)\"?\\s*$");
        List<MatchResult> found = pattern.matcher(text).results().toList();
        if (found.size() != 1) {
            throw new IllegalArgumentException(path + " has not one " + name + ": use a kubeconfig that mockube wrote");
        }
        return found.get(0).group(1);
    }
}
