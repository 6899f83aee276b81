package awsutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
)

const (
	// DefaultECSRate is how many calls a second an ECSReader makes. AWS grants an account
	// 20 in a region for ListTasks and DescribeTasks together, with bursts of 100
	// (ECS API Reference, "Request throttling for the Amazon ECS API").
	DefaultECSRate = 5
	// pageSize is the most that ListTasks lists and DescribeTasks takes.
	pageSize = 100
	// defaultAttempts bounds the SDK's tries of one call, in ten seconds or so.
	defaultAttempts = 5
	// attemptLimit bounds one of them.
	attemptLimit = 15 * time.Second
)

// TaskRunning and TaskStopped are a task's statuses, desired and last; ECS has more last
// ones between them. TaskMissing is the reason why ECS describes no task.
const (
	TaskRunning = "RUNNING"
	TaskStopped = "STOPPED"
	TaskMissing = "MISSING"
)

// ECSReaderOptions are what an ECSReader may spend.
type ECSReaderOptions struct {
	// CallsPerSecond is the budget, DefaultECSRate if 0. Bursts are twice that.
	CallsPerSecond float64
	// Attempts bounds the tries of one call, 5 if 0.
	Attempts int
}

// ECSReader asks ECS. It is safe for concurrent use; all who use it share its budget.
type ECSReader struct {
	client *ecs.Client
	meter  *callMeter
}

// NewECSReader returns a reader that makes no call yet.
func NewECSReader(c aws.Config, o ECSReaderOptions) *ECSReader {
	if o.CallsPerSecond <= 0 {
		o.CallsPerSecond = DefaultECSRate
	}
	m := newCallMeter(o.CallsPerSecond)
	client := ecs.NewFromConfig(c, func(e *ecs.Options) {
		e.Logger = logging.Nop{} // it warns of every connection that AWS closes
		e.APIOptions = append(e.APIOptions, m.install, hideWriterTo)
		if http, ok := c.HTTPClient.(*awshttp.BuildableClient); ok {
			e.HTTPClient = http.WithTimeout(attemptLimit) // the SDK tries again after it
		}
		e.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), cmp.Or(o.Attempts, defaultAttempts))
	})
	return &ECSReader{client: client, meter: m}
}

// CallCounts are what an ECSReader has spent since it was made.
type CallCounts struct {
	// Calls are attempts, retries included; Throttles those that AWS refused
	// because there were too many.
	Calls     int `json:"calls"`
	Throttles int `json:"throttles"`
}

// Sub returns the calls made since earlier.
func (c CallCounts) Sub(earlier CallCounts) CallCounts {
	return CallCounts{Calls: c.Calls - earlier.Calls, Throttles: c.Throttles - earlier.Throttles}
}

// Counts returns the calls so far.
func (r *ECSReader) Counts() CallCounts {
	return CallCounts{Calls: int(r.meter.calls.Load()), Throttles: int(r.meter.throttles.Load())}
}

// List calls each with the ID of every task of the cluster that has the desired
// status. An error means that the list is not whole, whatever each callback got.
func (r *ECSReader) List(ctx context.Context, cluster, desiredStatus string, each func(id string)) error {
	in := &ecs.ListTasksInput{
		Cluster: aws.String(cluster), DesiredStatus: types.DesiredStatus(desiredStatus),
		MaxResults: aws.Int32(pageSize),
	}
	for n := 1; ; n++ {
		page, err := r.client.ListTasks(ctx, in)
		// The SDK's paginator would take a repeated token for the end, or never end.
		if err == nil && page.NextToken != nil && aws.ToString(in.NextToken) == *page.NextToken {
			err = errors.New("ListTasks returned the same NextToken twice")
		}
		if err = permissionRemedy("ecs:ListTasks", r.explain(ctx, cluster, err)); err != nil {
			return fmt.Errorf("list tasks whose desired status is %s, page %d: %w", desiredStatus, n, err)
		}
		for _, arn := range page.TaskArns {
			each(lastPart(arn))
		}
		if aws.ToString(page.NextToken) == "" {
			return nil
		}
		in.NextToken = page.NextToken
	}
}

// NoClusterError is returned for a cluster that ECS does not have (any more).
type NoClusterError struct {
	// Inactive means that the cluster was deleted, which ECS refuses for one that
	// has tasks.
	Inactive bool
	Err      error
}

func (e *NoClusterError) Error() string {
	if e.Inactive {
		return e.Err.Error()
	}
	return e.Err.Error() + ": check the ARN; if ECS has forgotten a deleted cluster, make an empty one of its name"
}
func (e *NoClusterError) Unwrap() error { return e.Err }

// explain asks what became of a cluster that was not found.
func (r *ECSReader) explain(ctx context.Context, cluster string, err error) error {
	if _, unknown := errors.AsType[*types.ClusterNotFoundException](err); !unknown {
		return err
	}
	out, describeErr := r.client.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{cluster}})
	if describeErr != nil {
		return errors.Join(err, fmt.Errorf("describe the cluster: %w", describeErr))
	}
	inactive := slices.ContainsFunc(out.Clusters, func(c types.Cluster) bool {
		return aws.ToString(c.ClusterArn) == cluster && aws.ToString(c.Status) == "INACTIVE" &&
			c.RunningTasksCount+c.PendingTasksCount == 0
	})
	return &NoClusterError{Inactive: inactive, Err: err}
}

// ECSTask is the answer of ECS about a task that it knows.
type ECSTask struct {
	ID, ClusterARN            string
	LastStatus, DesiredStatus string
	// StoppedAt is zero until the task has stopped; StopCode is the reason.
	StoppedAt time.Time
	StopCode  string
	// Group is service:<name> or family:<name>, unless RunTask was given another one.
	Group string
	// Images are those of the task's containers, by name.
	Images map[string]string
	// Tags are the task's; ECS takes them away when it is stopped.
	Tags map[string]string
}

// TaskFailure is a task that ECS does not describe.
type TaskFailure struct {
	ID string
	// Reason is TaskMissing, or why ECS could not look.
	Reason, Detail string
}

// DescribedTasks are what ECS returned for the requested tasks. It may lack some.
type DescribedTasks struct {
	Tasks    []ECSTask
	Failures []TaskFailure
}

// Describe looks tasks up by their IDs. It continues after a refused call and
// returns what it has learnt together with the errors: what could not be asked
// is in no part of the answer.
func (r *ECSReader) Describe(ctx context.Context, cluster string, ids []string) (DescribedTasks, error) {
	var answer DescribedTasks
	var errs []error
	for chunk := range slices.Chunk(ids, pageSize) {
		out, err := r.DescribeTasks(ctx, cluster, chunk)
		if err != nil {
			errs = append(errs, err)
			if !refused(err) {
				break
			}
			continue
		}
		answer.add(out)
	}
	return answer, errors.Join(errs...)
}

// DescribeTasks returns the answer of ECS about up to 100 tasks, by their IDs or ARNs, in
// one call. ECS may answer for tasks of another cluster. The error for a cluster that ECS does
// not have is a *NoClusterError.
func (r *ECSReader) DescribeTasks(
	ctx context.Context, cluster string, tasks []string,
) (*ecs.DescribeTasksOutput, error) {
	out, err := r.client.DescribeTasks(ctx, &ecs.DescribeTasksInput{
		Cluster: aws.String(cluster), Tasks: tasks, Include: []types.TaskField{types.TaskFieldTags},
	})
	if err != nil {
		return nil, fmt.Errorf("describe %d tasks: %w", len(tasks), permissionRemedy("ecs:DescribeTasks",
			r.explain(ctx, cluster, err)))
	}
	return out, nil
}

// DescribeTaskDefinition returns the JSON that ECS answers about a revision of a task
// definition, with its tags, by its ARN.
func (r *ECSReader) DescribeTaskDefinition(ctx context.Context, arn string) ([]byte, error) {
	var body []byte
	tags := []types.TaskDefinitionField{types.TaskDefinitionFieldTags}
	_, err := r.definition(ctx, arn, tags, func(o *ecs.Options) {
		o.APIOptions = append(o.APIOptions, keepBody(&body))
	})
	return body, err
}

func (r *ECSReader) definition(
	ctx context.Context, arn string, include []types.TaskDefinitionField, options ...func(*ecs.Options),
) (*types.TaskDefinition, error) {
	out, err := r.client.DescribeTaskDefinition(ctx,
		&ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String(arn), Include: include}, options...)
	if err != nil {
		return nil, fmt.Errorf("describe task definition %s: %w", arn,
			permissionRemedy("ecs:DescribeTaskDefinition", err))
	}
	return out.TaskDefinition, nil
}

func (a *DescribedTasks) add(out *ecs.DescribeTasksOutput) {
	for _, t := range out.Tasks {
		task := ECSTask{
			ID: lastPart(aws.ToString(t.TaskArn)), ClusterARN: aws.ToString(t.ClusterArn),
			LastStatus: aws.ToString(t.LastStatus), DesiredStatus: aws.ToString(t.DesiredStatus),
			StoppedAt: aws.ToTime(t.StoppedAt), StopCode: string(t.StopCode), Tags: map[string]string{},
			Group: aws.ToString(t.Group), Images: map[string]string{},
		}
		for _, c := range t.Containers {
			task.Images[aws.ToString(c.Name)] = aws.ToString(c.Image)
		}
		for _, tag := range t.Tags {
			task.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
		}
		a.Tasks = append(a.Tasks, task)
	}
	for _, f := range out.Failures {
		a.Failures = append(a.Failures, TaskFailure{
			ID: lastPart(aws.ToString(f.Arn)), Reason: aws.ToString(f.Reason), Detail: aws.ToString(f.Detail),
		})
	}
}

// RoleUsers returns the families whose latest active revision has the task role, sorted
// by name as ECS lists them. An error means that the list may lack some.
func (r *ECSReader) RoleUsers(ctx context.Context, roleARN string) ([]string, error) {
	var found []string
	pages := ecs.NewListTaskDefinitionFamiliesPaginator(r.client,
		&ecs.ListTaskDefinitionFamiliesInput{Status: types.TaskDefinitionFamilyStatusActive})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, fmt.Errorf("list the families of task definitions: %w", err)
		}
		for _, family := range page.Families {
			latest, err := r.definition(ctx, family, nil)
			if err != nil {
				return found, err
			}
			if aws.ToString(latest.TaskRoleArn) == roleARN {
				found = append(found, family)
			}
		}
	}
	return found, nil
}

// permissionRemedy adds to an error the IAM permission that a call lacks, or that there were no
// credentials. The SDK has no type for the latter.
func permissionRemedy(action string, err error) error {
	answer, answered := errors.AsType[smithy.APIError](err)
	switch {
	case answered && answer.ErrorCode() == "AccessDeniedException":
		return fmt.Errorf("%w: allow %s in a policy of this process's role (taskRoleArn)", err, action)
	case err != nil && strings.Contains(err.Error(), "get credentials: "):
		return fmt.Errorf("%w: run this process with a role (taskRoleArn) whose policy allows %s", err, action)
	}
	return err
}
