"""Feature gates of kube-apiserver: which there are in 1.36, and in a minor, and what setting one means here."""

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.json import decode

from mockube.apimachinery.gotext import format_v, parse_bool
from mockube.apimachinery.schema import minors

HONOURED: Final = frozenset({"DetectCacheInconsistency", "WatchList"})
"""Gates that switch something of this server. All others are as they are by default."""


class Gate(NamedTuple):
    stage: str
    default: bool
    locked: bool = False
    """It cannot be set to anything else."""


_NAMES: Final[Mapping[Gate, str]] = {
    Gate("ALPHA", default=False): """
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
    Gate("BETA", default=False): """
        AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
        CoordinatedLeaderElection DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring
        MaxUnavailableStatefulSet PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls
        StorageVersionMigrator
    """,
    Gate("BETA", default=True): """
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
    Gate("GA", default=True): """
        AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
        MutatingAdmissionPolicy
    """,
    Gate("GA", default=True, locked=True): """
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
    Gate("DEPRECATED", default=False): """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
        ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover KMSv1
        KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
    """,
    Gate("DEPRECATED", default=False, locked=True): """
        AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
    """,
    Gate("DEPRECATED", default=True): """
        DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
        StorageNamespaceIndex
    """,
    Gate("DEPRECATED", default=True, locked=True): """
        AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
    """,
}  # fmt: skip

GATES: Final[Mapping[str, Gate]] = MappingProxyType(
    {name: gate for gate, names in _NAMES.items() for name in names.split()}
)


def read_gates(text: str) -> tuple[tuple[str, bool], ...]:
    """`A=true,B=false`, or `kube:A=true` as kube-apiserver takes it too."""
    return tuple(_gate(part) for part in text.split(",") if part)


def _gate(text: str) -> tuple[str, bool]:
    name, equals, value = text.partition("=")
    name, value = name.strip().removeprefix("kube:"), value.strip()
    if not equals:
        raise ArgumentTypeError(f"missing bool value for {name}")
    try:
        enabled = parse_bool(value)
    except ValueError as error:
        raise ArgumentTypeError(f"invalid value of {name}={value}, err: {error}") from error
    if name not in GATES and not any(name in gates_of(minor) for minor in minors.OLDER):
        raise ArgumentTypeError(f"unrecognized feature gate: {name}")
    return name, enabled


@cache
def gates_of(minor: str) -> Mapping[str, Gate]:
    """The gates of a minor release's kube-apiserver."""
    changed = minors.changes(minor, "gates")
    if not changed:
        return GATES
    rows = {
        name: None if row is None else Gate(*decode(row, type=tuple[str, bool, bool]))
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
        if name not in HONOURED and enabled != gates[name].default
    ]
