"""The release of Kubernetes that a server implements, its feature gates, and the APIs and packs that are enabled."""

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from msgspec import Struct
from msgspec.json import decode

from mockube.apimachinery.flags import VERSION, Flag, boolean, comma_separated, feature_gate
from mockube.apimachinery.gotext import format_v
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.resource_config import Pair, read_pairs

IMPLEMENTED_GATES: Final = frozenset({"DetectCacheInconsistency", "WatchList"})
"""Gates that this server implements both ways. All others have their default."""


class FeatureSpec(NamedTuple):
    stage: str
    default: bool
    locked: bool = False
    """Whether it cannot be changed from its default."""


_NAMES: Final[Mapping[FeatureSpec, str]] = {
    FeatureSpec("ALPHA", default=False): """
        APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
        CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
        CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
        ContainerStopSignals CrossNamespaceVolumeDataSource DRAListTypeAttributes
        DRANodeAllocatableResources DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG
        GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
        InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
        KubeletInUserNamespace ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity
        PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
        PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
        RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
        TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
        UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
        WorkloadAwarePreemption WorkloadWithJob
    """,
    FeatureSpec("BETA", default=False): """
        AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
        CoordinatedLeaderElection DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring
        MaxUnavailableStatefulSet PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls
        StorageVersionMigrator
    """,
    FeatureSpec("BETA", default=True): """
        APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
        AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions
        CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation
        ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation ContainerCheckpoint
        ContainerRestartRules DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints
        DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
        DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
        DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet
        GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance
        HostnameOverride InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
        InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
        KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
        MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
        MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
        NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist
        PodDeletionCost PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission
        PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation
        ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID
        ResourceHealthStatus ResourceHealthStatusMessage RestartAllContainersOnContainerExits
        RotateKubeletServerCertificate SchedulerAsyncPreemption SchedulerPopFromBackoffQ
        ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet
        StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
        StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
        StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
        StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
        TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
        UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
        WatchCacheInitializationPostStartHook WatchList WatchListClient WindowsGracefulNodeShutdown
    """,
    FeatureSpec("GA", default=True): """
        AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
        MutatingAdmissionPolicy
    """,
    FeatureSpec("GA", default=True, locked=True): """
        APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
        AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
        CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
        DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
        ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers
        InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
        JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
        KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown
        MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
        NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
        OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
        PodObservedGenerationTracking PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType
        RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
        RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName
        SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints
        SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
        ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
        StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
        StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog
        TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay
    """,
    FeatureSpec("DEPRECATED", default=False): """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
        ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover KMSv1
        KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
    """,
    FeatureSpec("DEPRECATED", default=False, locked=True): """
        AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
    """,
    FeatureSpec("DEPRECATED", default=True): """
        DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
        StorageNamespaceIndex
    """,
    FeatureSpec("DEPRECATED", default=True, locked=True): """
        AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
    """,
}  # fmt: skip

GATES: Final[Mapping[str, FeatureSpec]] = MappingProxyType(
    {name: gate for gate, names in _NAMES.items() for name in names.split()}
)


def read_gates(text: str) -> tuple[tuple[str, bool], ...]:
    """Parse `A=true,B=false`; kube-apiserver accepts `kube:A=true`, too."""
    return tuple(_gate(part) for part in text.split(",") if part)


def _gate(text: str) -> tuple[str, bool]:
    name, enabled = feature_gate(text.strip().removeprefix("kube:"))
    if name not in GATES and not any(name in gates_of(minor) for minor in minors.OLDER):
        raise ArgumentTypeError(f"unrecognized feature gate: {name}")
    return name, enabled


@cache
def gates_of(minor: str) -> Mapping[str, FeatureSpec]:
    """Return the gates of kube-apiserver in a minor release."""
    changed = minors.changes(minor, "gates")
    if not changed:
        return GATES
    rows = {
        name: None if row is None else FeatureSpec(*decode(row, type=tuple[str, bool, bool]))
        for name, row in changed.items()
    }
    return {name: gate for name, gate in {**GATES, **rows}.items() if gate is not None}


def gates_problem(settings: Iterable[tuple[str, bool]], minor: str) -> str:
    """Return what is wrong with the settings for a minor; "" if nothing is."""
    gates = gates_of(minor)
    for name, enabled in settings:
        gate = gates.get(name)
        if gate is None:
            return f"unrecognized feature gate: {name}"
        if gate.locked and enabled != gate.default:
            requested_value, locked_value = format_v(enabled), format_v(gate.default)
            return f"cannot set feature gate {name} to {requested_value}, feature is locked to {locked_value}"
    return ""


def is_on(name: str, settings: Iterable[tuple[str, bool]], minor: str = minors.NEWEST) -> bool:
    """Return whether a gate is on. One that is newer than the minor has its later default, which this server implements."""
    return dict(settings).get(name, gates_of(minor).get(name, GATES[name]).default)


def ignored_settings(settings: Iterable[tuple[str, bool]], minor: str = minors.NEWEST) -> list[str]:
    """Return settings that change kube-apiserver but not this server; of a repeated gate the last one counts."""
    last_settings, gates = dict(settings), gates_of(minor)
    return [
        f"{name}={format_v(enabled)}"
        for name, enabled in last_settings.items()
        if name not in IMPLEMENTED_GATES and enabled != gates[name].default
    ]


class Features(Struct, frozen=True, kw_only=True):
    """Features"""

    kubernetes_version: Annotated[
        str,
        Flag(
            f"minor release of Kubernetes, {minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
            minors.read_minor,
            metavar="MINOR",
        ),
    ] = minors.NEWEST
    version: Annotated[str, VERSION] = "false"
    feature_gates: Annotated[
        tuple[tuple[str, bool], ...],
        Flag("feature gates, as A=true,B=false", read_gates, repeats=True),
    ] = ()
    runtime_config: Annotated[
        tuple[Pair, ...],
        Flag(
            "APIs to turn on or off, as GROUP/VERSION=true, GROUP/VERSION/RESOURCE=false, or "
            "api/all, api/ga, api/beta, api/alpha (none)",
            read_pairs,
            repeats=True,
            metavar="SETTINGS",
        ),
    ] = ()
    enable_priority_and_fairness: Annotated[
        bool,
        Flag(
            "name the flow schema and priority level of a request in its response; requests are "
            "not limited by them (true)",
            boolean,
        ),
    ] = True
    packs: Annotated[
        tuple[str, ...],
        Flag("packs of kinds to serve besides Kubernetes' own: kruise (none)", comma_separated, repeats=True),
    ] = ()
    simulate_metrics: Annotated[
        bool,
        Flag(
            "serve metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io with "
            "simulated usage (false)",
            boolean,
        ),
    ] = False

    @property
    def git_version(self) -> str:
        """The version that is reported instead of the release's own version; "" for the latter."""
        return self.version if self.version.startswith("v") else ""
