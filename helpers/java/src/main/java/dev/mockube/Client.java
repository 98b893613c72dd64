package dev.mockube;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Sends requests in JSON. */
final class Client {
    /** How long a request may take: longer than the server takes, which ends its requests after a minute. */
    private static final Duration REQUEST_TIME = Duration.ofMinutes(2);
    /** The same for an advance, which waits until everything has happened that was due. */
    private static final Duration ADVANCE_TIME = Duration.ofMinutes(10);

    static final String AGENT = "mockube-helper-java";

    private final Kubeconfig access;
    private final Duration time;
    private final HttpClient http;

    Client(Kubeconfig access) {
        this(access, REQUEST_TIME);
    }

    Client(Kubeconfig access, Duration time) {
        this.access = access;
        this.time = time;
        this.http = HttpClient.newBuilder().sslContext(trusting(access.caCertificate())).build();
    }

    private static SSLContext trusting(byte[] certificate) {
        try {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            store.setCertificateEntry(
                    "ca",
                    CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(certificate)));
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException | IOException error) {
            throw new IllegalArgumentException("certificate-authority-data is no certificate", error);
        }
    }

    /** Returns the object of the response, which has no fields if it is empty. */
    Tree send(String method, String path, Object body) {
        return tree(respond(method, path, body));
    }

    /** A list, and whether there are older objects than it has. */
    record Found(Tree list, boolean isCut) {}

    Found find(String path) {
        HttpResponse<String> response = respond("GET", path, null);
        boolean isCut = response.headers().allValues("Warning").stream()
                .anyMatch(warning -> warning.contains("older changes are left out"));
        return new Found(tree(response), isCut);
    }

    private static Tree tree(HttpResponse<String> response) {
        return response.body().isBlank() ? Tree.EMPTY : Tree.parse(response.body());
    }

    private HttpResponse<String> respond(String method, String path, Object body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(access.server() + path))
                .timeout(path.equals(Cluster.ADVANCE) ? ADVANCE_TIME : time)
                .header("Accept", "application/json")
                .header("Authorization", "Bearer " + access.token())
                .header("User-Agent", AGENT)
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.write(body)));
        if (body != null) {
            request.header("Content-Type", method.equals("PATCH") ? "application/merge-patch+json" : "application/json");
        }
        HttpResponse<String> response = exchange(request.build(), BodyHandlers.ofString());
        if (response.statusCode() >= 400) {
            throw statusException(response.statusCode(), response.body());
        }
        return response;
    }

    /** Returns the body of a response that goes on. */
    InputStream stream(String path) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(access.server() + path))
                .header("Authorization", "Bearer " + access.token())
                .header("User-Agent", AGENT)
                .build();
        HttpResponse<InputStream> response = exchange(request, BodyHandlers.ofInputStream());
        if (response.statusCode() != 200) {
            throw new StatusException(response.statusCode(), "", "GET " + path + ": " + response.statusCode());
        }
        return response.body();
    }

    private <T> HttpResponse<T> exchange(HttpRequest request, BodyHandler<T> handler) {
        try {
            return http.send(request, handler);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }

    /** Returns the error of a response, which is a Status unless a fault has replaced it. */
    private static StatusException statusException(int code, String text) {
        try {
            Tree status = Tree.parse(text);
            if (!status.text("message").isEmpty()) {
                return new StatusException(code, status.text("reason"), status.text("message"));
            }
        } catch (IllegalArgumentException error) {
            // it is no JSON
        }
        return new StatusException(code, "", "the server returned " + code + ": " + text.strip());
    }
}
