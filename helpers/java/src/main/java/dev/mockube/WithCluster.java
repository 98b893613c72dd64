package dev.mockube;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives tests a cluster as a parameter of the type Cluster: on a method one of its own, on a class one that its tests share.
 *
 * <p>Faults are removed after each test. If it fails, what happened in the cluster since its beginning is printed.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(ClusterExtension.class)
public @interface WithCluster {
    /** The flags of mockube run, such as --nodes=1. */
    String[] value() default {};
}
