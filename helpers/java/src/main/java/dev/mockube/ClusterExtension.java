package dev.mockube;

import java.lang.reflect.AnnotatedElement;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** The extension of JUnit behind the annotation WithCluster. */
final class ClusterExtension implements BeforeEachCallback, AfterEachCallback, ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(ClusterExtension.class);

    /** The cluster of the place of an annotation, which JUnit closes at the end of that class or test. */
    private record Running(Cluster cluster) implements CloseableResource {
        @Override
        public void close() {
            cluster.close();
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Cluster.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return cluster(context);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        context.getStore(NAMESPACE).put(Report.class, new Report(cluster(context)));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Report report = context.getStore(NAMESPACE).get(Report.class, Report.class);
        if (report != null && context.getExecutionException().isPresent()) {
            System.err.println(report.text());
        }
        try {
            cluster(context).closeClocks();
        } finally {
            cluster(context).removeFaults();
        }
    }

    /** Returns the cluster of the nearest annotation, and starts it if nobody has. */
    private static Cluster cluster(ExtensionContext context) {
        ExtensionContext place = context;
        while (flags(place).isEmpty()) {
            place = place.getParent().orElseThrow();
        }
        String[] flags = flags(place).get();
        // The key has the place, because a store has the values of its parents, too.
        return place.getStore(NAMESPACE)
                .getOrComputeIfAbsent(place.getUniqueId(), key -> new Running(Cluster.start(flags)), Running.class)
                .cluster();
    }

    private static Optional<String[]> flags(ExtensionContext context) {
        Optional<AnnotatedElement> element = context.getElement();
        return element.map(found -> found.getAnnotation(WithCluster.class)).map(WithCluster::value);
    }
}
