package controlplane

import (
	"time"

	"golang.org/x/time/rate"
)

// bucket is one of AWS's token buckets: the burst, and what is added a second.
// Operations share it.
type bucket struct {
	burst      int
	perSecond  rate.Limit
	operations []string
}

// published returns the buckets of the ECS API Reference, "Request throttling for the Amazon ECS API":
// each account has them once in each region.
func published() []bucket {
	return []bucket{
		{20, 1, []string{"CreateCluster", "DeleteCluster", "PutClusterCapacityProviders", "UpdateCluster",
			"UpdateClusterSettings"}},
		{50, 20, []string{"DescribeClusters", "ListClusters"}},
		{20, 1, []string{"DeregisterTaskDefinition", "RegisterTaskDefinition"}},
		{50, 20, []string{"DescribeTaskDefinition", "ListTaskDefinitions", "ListTaskDefinitionFamilies"}},
		{5, 1, []string{"DeleteTaskDefinitions"}},
		{50, 20, []string{"DescribeCapacityProviders"}},
		{50, 20, []string{"ListAccountSettings"}},
		{20, 10, []string{"TagResource", "UntagResource"}},
		{50, 20, []string{"ListTagsForResource"}},
		{100, 40, []string{"RunTask", "StartTask", "StopTask"}},
		{100, 20, []string{"DescribeContainerInstances", "DescribeTasks", "ListContainerInstances", "ListTasks"}},
		{50, 5, []string{"CreateService", "DeleteService", "UpdateService"}},
		{100, 20, []string{"DescribeServices", "ListServices"}},
		{50, 20, []string{"DescribeServiceDeployments", "ListServiceDeployments"}},
		{50, 20, []string{"DescribeServiceRevisions"}},
		{200, 80, []string{"GetTaskProtection", "UpdateTaskProtection"}},
	}
}

// Buckets are AWS's, by operation.
type Buckets map[string]*rate.Limiter

// NewBuckets returns full buckets.
func NewBuckets() Buckets {
	b := Buckets{}
	for _, p := range published() {
		l := rate.NewLimiter(p.perSecond, p.burst)
		for _, name := range p.operations {
			b[name] = l
		}
	}
	return b
}

// take takes a token from the operation's bucket, and reports whether it had one.
func (b Buckets) take(operation string, now time.Time) bool {
	l := b[operation]
	return l == nil || l.AllowN(now, 1)
}
