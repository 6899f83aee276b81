package shapes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
)

// Account is an AWS account in a region.
type Account struct{ Region, ID string }

// NewID returns a new task ID: 32 hexadecimal digits.
func NewID() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// RuntimeID returns a new ID of a container in the form that Fargate gives it: that of
// the task and ten digits.
func RuntimeID(task string) string { return fmt.Sprintf("%s-%010d", task, mathrand.Int64N(1e10)) }

// ImageDigest stands for an image's digest: the same for the same name.
func ImageDigest(image string) string {
	sum := sha256.Sum256([]byte(image))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Partition returns the partition of the region: aws, aws-cn or aws-us-gov.
func (a Account) Partition() string {
	switch {
	case strings.HasPrefix(a.Region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(a.Region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// GlobalRegion returns the region of the partition that global services are signed for.
func (a Account) GlobalRegion() string {
	return map[string]string{"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}[a.Partition()]
}

// Hosts returns the names of AWS's endpoints of STS, IAM and ECS for the region (AWS
// General Reference, "Service endpoints"), and of STS where SDKs ask it by default.
func (a Account) Hosts() []string {
	domain, global := ".amazonaws.com", a.GlobalRegion()
	hosts := []string{"sts." + a.Region, "ecs." + a.Region}
	if global != a.Region {
		hosts = append(hosts, "sts."+global)
	}
	switch a.Partition() {
	case "aws":
		hosts = append(hosts, "sts", "iam")
	case "aws-cn":
		domain += ".cn"
		hosts = append(hosts, "iam."+global)
	case "aws-us-gov":
		hosts = append(hosts, "iam.us-gov")
	}
	for i := range hosts {
		hosts[i] += domain
	}
	return hosts
}

func (a Account) of(resource string) string {
	return "arn:" + a.Partition() + ":ecs:" + a.Region + ":" + a.ID + ":" + resource
}

// Cluster returns a cluster's ARN.
func (a Account) Cluster(name string) string { return a.of("cluster/" + name) }

// CapacityProvider returns a capacity provider's ARN.
func (a Account) CapacityProvider(name string) string { return a.of("capacity-provider/" + name) }

// Task returns a task's ARN, in the long form.
func (a Account) Task(cluster, id string) string { return a.of("task/" + cluster + "/" + id) }

// Container returns a container's ARN.
func (a Account) Container(cluster, task, id string) string {
	return a.of("container/" + cluster + "/" + task + "/" + id)
}

// ContainerInstance returns the ARN of a container instance.
func (a Account) ContainerInstance(cluster, id string) string {
	return a.of("container-instance/" + cluster + "/" + id)
}

// Service returns a service's ARN, in the long form.
func (a Account) Service(cluster, name string) string { return a.of("service/" + cluster + "/" + name) }

// ServiceDeployment returns the ARN of a service deployment.
func (a Account) ServiceDeployment(cluster, service, id string) string {
	return a.of("service-deployment/" + cluster + "/" + service + "/" + id)
}

// ServiceRevision returns the ARN of a revision of a service.
func (a Account) ServiceRevision(cluster, service, id string) string {
	return a.of("service-revision/" + cluster + "/" + service + "/" + id)
}

// ServiceRole returns the ARN of the role by which ECS manages services.
func (a Account) ServiceRole() string {
	return a.iam("role/aws-service-role/ecs.amazonaws.com/AWSServiceRoleForECS")
}

// Root returns the ARN of the account's root user.
func (a Account) Root() string { return a.iam("root") }

func (a Account) iam(resource string) string {
	return "arn:" + a.Partition() + ":iam::" + a.ID + ":" + resource
}

// TaskDefinition returns a revision's ARN.
func (a Account) TaskDefinition(family string, revision int) string {
	return a.of("task-definition/" + family + ":" + strconv.Itoa(revision))
}

// Resource is a parsed ARN of ECS: Kind is cluster, task, service, task-definition,
// container-instance, capacity-provider, service-deployment or service-revision. Cluster is
// empty where the ARN has none, as in the old short form of a task's. Name is the rest.
type Resource struct{ Kind, Cluster, Name string }

// Parse reads an ARN of this account and region.
func (a Account) Parse(text string) (Resource, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return Resource{}, Invalid("Invalid identifier: Identifier is not an ARN.")
	}
	if parts[2] != "ecs" {
		return Resource{}, Invalid("Invalid identifier: Unexpected service %q.", parts[2])
	}
	if parts[1] != a.Partition() || parts[3] != a.Region {
		return Resource{}, Invalid("Invalid identifier: Region %s. Your region is %s.", parts[3], a.Region)
	}
	if parts[4] != a.ID {
		return Resource{}, Invalid("Invalid identifier: Account %s. Your account is %s.", parts[4], a.ID)
	}
	path := strings.Split(parts[5], "/")
	switch {
	case len(path) == 2:
		return Resource{Kind: path[0], Name: path[1]}, nil
	case len(path) == 3 && path[0] != "cluster" && path[0] != "task-definition":
		return Resource{Kind: path[0], Cluster: path[1], Name: path[2]}, nil
	case len(path) == 4 && strings.HasPrefix(path[0], "service-"):
		return Resource{Kind: path[0], Cluster: path[1], Name: path[2] + "/" + path[3]}, nil
	}
	return Resource{}, unexpected()
}

func unexpected() error {
	return Invalid("Invalid identifier: Unexpected number of separators")
}

// Default is the cluster of a call that names none.
const Default = "default"

// ClusterName returns the name in a cluster's short name or ARN; empty is Default.
func (a Account) ClusterName(text string) (string, error) {
	switch {
	case text == "":
		return Default, nil
	case !strings.Contains(text, ":"):
		if strings.Contains(text, "/") {
			return "", unexpected()
		}
		return text, nil
	}
	r, err := a.Parse(text)
	if err != nil {
		return "", err
	}
	if r.Kind != "cluster" {
		return "", Invalid("Invalid identifier: Expected a cluster, got a %s.", r.Kind)
	}
	return r.Name, nil
}

// TaskID reads a task's ID or ARN of that cluster.
func (a Account) TaskID(cluster, text string) (string, error) {
	id, err := a.member("task", cluster, text)
	if err == nil && len(id) != 32 && len(id) != 36 {
		err = Invalid("taskId length should be one of [32,36]")
	}
	return id, err
}

// ServiceName reads a service's name or ARN of that cluster.
func (a Account) ServiceName(cluster, text string) (string, error) {
	return a.member("service", cluster, text)
}

// member reads the name of something inside a cluster.
func (a Account) member(kind, cluster, text string) (string, error) {
	if !strings.HasPrefix(text, "arn:") {
		if strings.ContainsAny(text, "/:") {
			return "", unexpected()
		}
		return text, nil
	}
	r, err := a.Parse(text)
	switch {
	case err != nil:
		return "", err
	case r.Kind != kind:
		return "", Invalid("Invalid identifier: Expected a %s, got a %s.", kind, r.Kind)
	case r.Cluster != "" && r.Cluster != cluster:
		return "", Invalid("Invalid identifier: Identifier is for cluster %s. Your cluster is %s", r.Cluster, cluster)
	}
	return r.Name, nil
}

// Revision reads a task definition's family, family:revision or ARN; revision 0
// means the latest active one.
func (a Account) Revision(text string) (family string, revision int, err error) {
	if strings.HasPrefix(text, "arn:") {
		r, err := a.Parse(text)
		if err != nil {
			return "", 0, err
		}
		if r.Kind != "task-definition" {
			return "", 0, Invalid("Invalid identifier: Expected a task-definition, got a %s.", r.Kind)
		}
		text = r.Name
	}
	family, number, given := strings.Cut(text, ":")
	if !validName(family) {
		return "", 0, Client("Family contains invalid characters.")
	}
	if !given {
		return family, 0, nil
	}
	revision, err = strconv.Atoi(number)
	if err != nil || revision < 1 {
		return "", 0, Invalid("Invalid revision number. Number: %s", number)
	}
	return family, revision, nil
}

// validName reports whether a text may be a family's name. A regular expression
// would be most of what a call costs.
func validName(text string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return text != "" && len(text) <= 255 && strings.Trim(text, letters) == ""
}
