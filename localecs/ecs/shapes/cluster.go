package shapes

// Cluster is a cluster as DescribeClusters shows it.
type Cluster struct {
	ClusterARN                      string         `json:"clusterArn"`
	ClusterName                     string         `json:"clusterName"`
	Status                          string         `json:"status"`
	RegisteredContainerInstances    int            `json:"registeredContainerInstancesCount"`
	RunningTasks                    int            `json:"runningTasksCount"`
	PendingTasks                    int            `json:"pendingTasksCount"`
	ActiveServices                  int            `json:"activeServicesCount"`
	Statistics                      []NameValue    `json:"statistics"`
	Tags                            []Tag          `json:"tags"`
	Settings                        []NameValue    `json:"settings"`
	CapacityProviders               []string       `json:"capacityProviders"`
	DefaultCapacityProviderStrategy []StrategyItem `json:"defaultCapacityProviderStrategy"`
}

// CreateClusterInput is what CreateCluster takes. Without a name it is
// "default".
type CreateClusterInput struct {
	ClusterName                     string         `json:"clusterName"`
	Tags                            []Tag          `json:"tags"`
	Settings                        []NameValue    `json:"settings"`
	CapacityProviders               []string       `json:"capacityProviders"`
	DefaultCapacityProviderStrategy []StrategyItem `json:"defaultCapacityProviderStrategy"`
}

// ClusterInput names a cluster.
type ClusterInput struct {
	Cluster string `json:"cluster"`
}

// ClusterOutput is one cluster.
type ClusterOutput struct {
	Cluster Cluster `json:"cluster"`
}

// DescribeClustersInput names clusters; none means "default".
type DescribeClustersInput struct {
	Clusters []string `json:"clusters"`
	Include  []string `json:"include"`
}

// DescribeClustersOutput has what was found, and what was not.
type DescribeClustersOutput struct {
	Clusters []Cluster `json:"clusters"`
	Failures []Failure `json:"failures"`
}

// PageInput asks for a page of a list.
type PageInput struct {
	NextToken  string `json:"nextToken"`
	MaxResults *int   `json:"maxResults"`
}

// ListClustersOutput is a page of clusters.
type ListClustersOutput struct {
	ClusterARNs []string `json:"clusterArns"`
	NextToken   string   `json:"nextToken,omitzero"`
}
