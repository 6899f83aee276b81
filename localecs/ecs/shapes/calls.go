package shapes

import (
	"encoding/json"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Call is what a call carries besides its input.
type Call struct {
	Now time.Time
	// Principal is the caller's ARN.
	Principal string
}

// RunTaskInput is what RunTask takes.
type RunTaskInput struct {
	CapacityProviderStrategy []StrategyItem        `json:"capacityProviderStrategy"`
	ClientToken              string                `json:"clientToken"`
	Cluster                  string                `json:"cluster"`
	Count                    *int                  `json:"count"`
	EnableECSManagedTags     bool                  `json:"enableECSManagedTags"`
	EnableExecuteCommand     bool                  `json:"enableExecuteCommand"`
	Group                    string                `json:"group"`
	LaunchType               string                `json:"launchType"`
	NetworkConfiguration     *NetworkConfiguration `json:"networkConfiguration"`
	Overrides                Overrides             `json:"overrides"`
	PlacementConstraints     []map[string]any      `json:"placementConstraints"`
	PlacementStrategy        []map[string]any      `json:"placementStrategy"`
	PlatformVersion          string                `json:"platformVersion"`
	PropagateTags            string                `json:"propagateTags"`
	ReferenceID              string                `json:"referenceId"`
	StartedBy                string                `json:"startedBy"`
	Tags                     []Tag                 `json:"tags"`
	TaskDefinition           string                `json:"taskDefinition"`
	VolumeConfigurations     []map[string]any      `json:"volumeConfigurations"`
}

// TasksOutput has tasks, and what could not be had.
type TasksOutput struct {
	Tasks    []Task    `json:"tasks"`
	Failures []Failure `json:"failures"`
}

// ListTasksInput is what ListTasks takes: its filters, and the page.
type ListTasksInput struct {
	Cluster           string `json:"cluster"`
	ContainerInstance string `json:"containerInstance"`
	Family            string `json:"family"`
	StartedBy         string `json:"startedBy"`
	ServiceName       string `json:"serviceName"`
	DesiredStatus     string `json:"desiredStatus"`
	LaunchType        string `json:"launchType"`
	// DaemonName is of a managed daemon, of which there are none.
	DaemonName string `json:"daemonName"`
	PageInput
}

// ListTasksOutput is a page of tasks.
type ListTasksOutput struct {
	TaskARNs  []string `json:"taskArns"`
	NextToken string   `json:"nextToken,omitzero"`
}

// DescribeTasksInput names tasks. Include may have TAGS.
type DescribeTasksInput struct {
	Cluster string   `json:"cluster"`
	Tasks   []string `json:"tasks"`
	Include []string `json:"include"`
}

// StopTaskInput names the task, and gives the reason.
type StopTaskInput struct {
	Cluster string `json:"cluster"`
	Task    string `json:"task"`
	Reason  string `json:"reason"`
}

// TaskOutput is one task.
type TaskOutput struct {
	Task Task `json:"task"`
}

// RegisterTaskDefinitionInput is the whole document: taskdef reads it.
type RegisterTaskDefinitionInput struct{ Document json.RawMessage }

// UnmarshalJSON implements json.Unmarshaler.
func (in *RegisterTaskDefinitionInput) UnmarshalJSON(text []byte) error {
	in.Document = append(in.Document[:0], text...)
	return nil
}

// TaskDefinition is a revision with what registration makes of it.
type TaskDefinition struct {
	taskdef.TaskDefinition
	// RequiresAttributes shadows the embedded ones: these have no value.
	RequiresAttributes []NameValue `json:"requiresAttributes"`
}

// TaskDefinitionOutput is one revision. Tags are nil where the call does not
// show them.
type TaskDefinitionOutput struct {
	TaskDefinition TaskDefinition `json:"taskDefinition"`
	Tags           []Tag          `json:"tags,omitzero"`
}

// TaskDefinitionInput names a revision. Include may have TAGS.
type TaskDefinitionInput struct {
	TaskDefinition string   `json:"taskDefinition"`
	Include        []string `json:"include"`
}

// DeleteTaskDefinitionsInput names inactive revisions.
type DeleteTaskDefinitionsInput struct {
	TaskDefinitions []string `json:"taskDefinitions"`
}

// DeleteTaskDefinitionsOutput has what is deleted now, and what is not.
type DeleteTaskDefinitionsOutput struct {
	TaskDefinitions []TaskDefinition `json:"taskDefinitions"`
	Failures        []Failure        `json:"failures"`
}

// ListTaskDefinitionsInput is what both lists of task definitions take; Sort is
// for revisions only.
type ListTaskDefinitionsInput struct {
	FamilyPrefix string `json:"familyPrefix"`
	Status       string `json:"status"`
	Sort         string `json:"sort"`
	PageInput
}

// ListTaskDefinitionsOutput is a page of revisions.
type ListTaskDefinitionsOutput struct {
	ARNs      []string `json:"taskDefinitionArns"`
	NextToken string   `json:"nextToken,omitzero"`
}

// ListFamiliesOutput is a page of families.
type ListFamiliesOutput struct {
	Families  []string `json:"families"`
	NextToken string   `json:"nextToken,omitzero"`
}

// ResourceInput names a resource, the tags that it gets, or the keys of those it loses.
type ResourceInput struct {
	ResourceARN string   `json:"resourceArn"`
	Tags        []Tag    `json:"tags"`
	TagKeys     []string `json:"tagKeys"`
}

// TagsOutput has a resource's tags.
type TagsOutput struct {
	Tags []Tag `json:"tags"`
}

// Empty is the answer of calls that have none.
type Empty struct{}

// TaskProtectionInput names service tasks. The last two are for
// UpdateTaskProtection.
type TaskProtectionInput struct {
	Cluster           string   `json:"cluster"`
	Tasks             []string `json:"tasks"`
	ProtectionEnabled *bool    `json:"protectionEnabled"`
	ExpiresInMinutes  *int     `json:"expiresInMinutes"`
}

// ProtectedTask is a task's protection from scale-in.
type ProtectedTask struct {
	TaskARN           string `json:"taskArn"`
	ProtectionEnabled bool   `json:"protectionEnabled"`
	ExpirationDate    Time   `json:"expirationDate,omitzero"`
}

// TaskProtectionOutput has what was found, and what cannot be protected.
type TaskProtectionOutput struct {
	ProtectedTasks []ProtectedTask `json:"protectedTasks"`
	Failures       []Failure       `json:"failures"`
}

// ContainerInstancesInput names container instances, of which there are none. The task
// definition is StartTask's.
type ContainerInstancesInput struct {
	Cluster            string   `json:"cluster"`
	ContainerInstances []string `json:"containerInstances"`
	TaskDefinition     string   `json:"taskDefinition"`
}

// ContainerInstancesOutput finds none of them.
type ContainerInstancesOutput struct {
	ContainerInstances []struct{} `json:"containerInstances"`
	Failures           []Failure  `json:"failures"`
}

// ListContainerInstancesOutput is an empty list.
type ListContainerInstancesOutput struct {
	ARNs []string `json:"containerInstanceArns"`
}
