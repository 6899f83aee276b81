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
	Configuration                   map[string]any `json:"configuration,omitzero"`
	ServiceConnectDefaults          map[string]any `json:"serviceConnectDefaults,omitzero"`
}

// CreateClusterInput is what CreateCluster takes, and with the name in Cluster what changes a cluster. Without
// a name it is "default".
type CreateClusterInput struct {
	ClusterName                     string         `json:"clusterName"`
	Cluster                         string         `json:"cluster"`
	Tags                            []Tag          `json:"tags"`
	Settings                        []NameValue    `json:"settings"`
	CapacityProviders               []string       `json:"capacityProviders"`
	DefaultCapacityProviderStrategy []StrategyItem `json:"defaultCapacityProviderStrategy"`
	// What follows is shown and has no effect.
	Configuration          map[string]any `json:"configuration"`
	ServiceConnectDefaults map[string]any `json:"serviceConnectDefaults"`
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

// CapacityProvider is one of Fargate's.
type CapacityProvider struct {
	ARN    string `json:"capacityProviderArn"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Tags   []Tag  `json:"tags"`
	Type   string `json:"type"`
}

// DescribeCapacityProvidersInput names capacity providers; none means all, or those of the cluster.
type DescribeCapacityProvidersInput struct {
	CapacityProviders []string `json:"capacityProviders"`
	Cluster           string   `json:"cluster"`
	Include           []string `json:"include"`
	PageInput
}

// DescribeCapacityProvidersOutput has what was found, and what was not.
type DescribeCapacityProvidersOutput struct {
	CapacityProviders []CapacityProvider `json:"capacityProviders"`
	Failures          []Failure          `json:"failures"`
	NextToken         string             `json:"nextToken,omitzero"`
}

// ListAccountSettingsInput filters settings.
type ListAccountSettingsInput struct {
	Name              string `json:"name"`
	Value             string `json:"value"`
	PrincipalARN      string `json:"principalArn"`
	EffectiveSettings bool   `json:"effectiveSettings"`
	PageInput
}

// Setting is a setting of the account.
type Setting struct {
	Name         string `json:"name"`
	Value        string `json:"value"`
	PrincipalARN string `json:"principalArn"`
	Type         string `json:"type"`
}

// ListAccountSettingsOutput is a page of settings.
type ListAccountSettingsOutput struct {
	Settings  []Setting `json:"settings"`
	NextToken string    `json:"nextToken,omitzero"`
}
