package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tests of a shop, which is a Deployment and its settings. */
class ShopTest {
    static final String NAMESPACE = "shop-java";
    static final KubernetesClient CLIENT = new KubernetesClientBuilder().build();

    @BeforeAll
    static void createNamespace() {
        CLIENT.resource(new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
    }

    @AfterAll
    static void deleteNamespace() {
        CLIENT.namespaces().withName(NAMESPACE).delete();
        CLIENT.close();
    }

    @Test
    void aDeploymentBecomesAvailable() {
        Map<String, String> labels = Map.of("app", "web");
        Deployment web = new DeploymentBuilder()
            .withNewMetadata().withName("web").withNamespace(NAMESPACE).endMetadata()
            .withNewSpec()
                .withReplicas(2)
                .withNewSelector().withMatchLabels(labels).endSelector()
                .withNewTemplate()
                    .withNewMetadata().withLabels(labels).endMetadata()
                    .withNewSpec().addNewContainer().withName("web").withImage("nginx").endContainer().endSpec()
                .endTemplate()
            .endSpec()
            .build();
        CLIENT.resource(web).create();
        Deployment ready = CLIENT.resource(web).waitUntilReady(30, TimeUnit.SECONDS);
        assertEquals(2, ready.getStatus().getAvailableReplicas());
    }

    @Test
    void settingsAreAppliedAndEdited() {
        ConfigMap settings = new ConfigMapBuilder()
            .withNewMetadata().withName("settings").withNamespace(NAMESPACE).endMetadata()
            .addToData("color", "red")
            .build();
        CLIENT.resource(settings).serverSideApply();
        CLIENT.resource(settings).edit(map -> new ConfigMapBuilder(map).addToData("color", "blue").build());
        assertEquals(Map.of("color", "blue"), CLIENT.resource(settings).get().getData());
    }

    @Test
    void anInvalidNameIsRefusedWithTheServersMessage() {
        ConfigMap invalid = new ConfigMapBuilder().withNewMetadata().withName("No").endMetadata().build();
        KubernetesClientException error = assertThrows(
            KubernetesClientException.class, () -> CLIENT.configMaps().inNamespace(NAMESPACE).resource(invalid).create());
        assertEquals(422, error.getCode());
        assertEquals("Invalid", error.getStatus().getReason());
    }
}
