from mockube.cluster import AsyncCluster as AsyncCluster
from mockube.cluster import Cluster as Cluster
