package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Limits of calls about service deployments.
const (
	maxHistoryDescribed = 20
	historyPage         = 20
)

// ListServiceDeployments lists a service's deployments, newest first. An ARN names the service's cluster, too.
func (a *serviceAPI) ListServiceDeployments(call shapes.Call,
	in shapes.ListServiceDeploymentsInput) (shapes.ServiceDeploymentsOutput, error) {
	out := shapes.ServiceDeploymentsOutput{ServiceDeployments: []shapes.ServiceDeployment{}}
	if err := enum("status", in.Status, "PENDING", successful, stopped, "STOP_REQUESTED", inProgress,
		"ROLLBACK_REQUESTED", rollingBack, rolledBack, rollbackFailed); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	if r, err := a.state.account.Parse(in.Service); err == nil {
		in.Cluster = cmp.Or(in.Cluster, r.Cluster)
	}
	v, err := a.state.service(in.Cluster, in.Service)
	if err != nil {
		return out, err
	}
	page := in.PageInput
	if page.MaxResults == nil {
		page.MaxResults = new(historyPage)
	}
	in.PageInput = shapes.PageInput{}
	listed := func(d *Deployment) bool {
		after, before := in.CreatedAt.After, in.CreatedAt.Before
		return (len(in.Status) == 0 || slices.Contains(in.Status, d.outcome.status)) &&
			(after.IsZero() || d.Created.After(after.Time)) && (before.IsZero() || d.Created.Before(before.Time))
	}
	number := func(d *Deployment) string { return fmt.Sprintf("%09d", d.outcome.number) }
	found, next, err := Page(v.history, listed, page, fingerprint(in), call.Now, true, number)
	for _, d := range found {
		shape := a.serviceDeployment(v, d)
		shape.TargetRevisionARN = a.revisionARN(v, d.ID)
		out.ServiceDeployments = append(out.ServiceDeployments, shape)
	}
	out.NextToken = next
	return out, err
}

// DescribeServiceDeployments shows service deployments. The numbers of tasks are those of now.
func (a *serviceAPI) DescribeServiceDeployments(call shapes.Call,
	in shapes.DescribeServiceDeploymentsInput) (shapes.ServiceDeploymentsOutput, error) {
	out := shapes.ServiceDeploymentsOutput{ServiceDeployments: []shapes.ServiceDeployment{}}
	id := func(d *Deployment) string { return d.outcome.id }
	var err error
	out.Failures, err = a.find("serviceDeploymentArns", "service-deployment", in.ARNs, id,
		func(v *Service, d *Deployment) {
			o, shape := d.outcome, a.serviceDeployment(v, d)
			revisions := a.revisions(v, a.deployments(v, call.Now, 0))
			summary := func(id string) shapes.RevisionSummary {
				arn := a.revisionARN(v, id)
				i := slices.IndexFunc(revisions, func(s shapes.RevisionSummary) bool { return s.ARN == arn })
				if i < 0 {
					return shapes.RevisionSummary{ARN: arn}
				}
				return revisions[i]
			}
			target, configuration := summary(d.ID), v.configuration()
			shape.Target, shape.Configuration, shape.UpdatedAt = &target, &configuration, shapes.At(d.Updated)
			shape.Sources = []shapes.RevisionSummary{}
			for _, id := range o.sources {
				shape.Sources = append(shape.Sources, summary(id))
			}
			if o.status == stopped {
				shape.StoppedAt = shapes.At(o.finished)
			}
			if o.back != "" {
				shape.Rollback = &shapes.Rollback{
					Reason: o.reason, StartedAt: shapes.At(d.failed), RevisionARN: a.revisionARN(v, o.back),
				}
			}
			shape.Breaker = &shapes.BreakerState{
				Status: breakerStatus(v, d), Failures: d.FailedTasks, Threshold: v.Breaker.Failures(v.Desired),
			}
			shape.Alarms = &shapes.AlarmState{Status: "DISABLED"}
			out.ServiceDeployments = append(out.ServiceDeployments, shape)
		})
	return out, err
}

func breakerStatus(v *Service, d *Deployment) string {
	switch {
	case !d.failed.IsZero():
		return "TRIGGERED"
	case !v.Breaker.Enable:
		return "DISABLED"
	case !d.outcome.finished.IsZero():
		return "MONITORING_COMPLETE"
	}
	return "MONITORING"
}

// DescribeServiceRevisions shows what the deployments of a service consist of.
func (a *serviceAPI) DescribeServiceRevisions(_ shapes.Call,
	in shapes.DescribeServiceRevisionsInput) (shapes.ServiceRevisionsOutput, error) {
	out := shapes.ServiceRevisionsOutput{ServiceRevisions: []shapes.ServiceRevision{}}
	id := func(d *Deployment) string { return strings.TrimPrefix(d.ID, deploymentPrefix) }
	var err error
	out.Failures, err = a.find("serviceRevisionArns", "service-revision", in.ARNs, id,
		func(v *Service, d *Deployment) {
			shape := shapes.ServiceRevision{
				ARN: a.revisionARN(v, d.ID), ServiceARN: a.state.account.Service(v.cluster, v.Name),
				ClusterARN: a.state.account.Cluster(v.cluster), TaskDefinition: d.run.TaskDefinition,
				CapacityProviderStrategy: d.run.CapacityProviderStrategy, LaunchType: d.run.LaunchType,
				PlatformVersion: shapes.PlatformVersion, PlatformFamily: "Linux",
				NetworkConfiguration: d.run.NetworkConfiguration, ServiceConnect: shapes.ServiceConnect{},
				ServiceRegistries: d.registries, CreatedAt: shapes.At(d.Created),
			}
			if d.connect != nil {
				shape.ServiceConnect = *d.connect
			}
			if r, _ := a.state.revision(d.run.TaskDefinition); r != nil {
				for _, c := range r.Definition.ContainerDefinitions {
					shape.ContainerImages = append(shape.ContainerImages, shapes.ContainerImage{
						Name: c.Name, Image: c.Image, Digest: shapes.ImageDigest(c.Image),
					})
				}
			}
			out.ServiceRevisions = append(out.ServiceRevisions, shape)
		})
	return out, err
}

// find calls add with each deployment that an ARN of the kind names by its ID.
func (a *serviceAPI) find(member, kind string, arns []string, id func(*Deployment) string,
	add func(*Service, *Deployment)) ([]shapes.Failure, error) {
	failures := []shapes.Failure{}
	if len(arns) == 0 {
		return failures, shapes.Invalid("%s cannot be empty.", member)
	}
	if err := atMost(member, len(arns), maxHistoryDescribed); err != nil {
		return failures, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	for _, arn := range arns {
		r, err := a.state.account.Parse(arn)
		if err != nil {
			return failures, err
		}
		if r.Kind != kind {
			return failures, shapes.Invalid("Invalid identifier: Expected a %s, got a %s.", kind, r.Kind)
		}
		service, wanted, _ := strings.Cut(r.Name, "/")
		v, err := a.state.service(r.Cluster, service)
		if err != nil {
			return failures, err
		}
		i := slices.IndexFunc(v.history, func(d *Deployment) bool { return id(d) == wanted })
		if i < 0 {
			failures = append(failures, shapes.Failure{ARN: arn, Reason: shapes.Missing})
			continue
		}
		add(v, v.history[i])
	}
	return failures, nil
}

// serviceDeployment returns what lists and descriptions share.
func (a *serviceAPI) serviceDeployment(v *Service, d *Deployment) shapes.ServiceDeployment {
	return shapes.ServiceDeployment{
		ARN:        a.state.account.ServiceDeployment(v.cluster, v.Name, d.outcome.id),
		ServiceARN: a.state.account.Service(v.cluster, v.Name), ClusterARN: a.state.account.Cluster(v.cluster),
		CreatedAt: shapes.At(d.Created), StartedAt: shapes.At(d.Created), FinishedAt: shapes.At(d.outcome.finished),
		Status: d.outcome.status, StatusReason: d.outcome.reason,
	}
}

// revisionARN returns the ARN of the revision that a deployment has.
func (a *serviceAPI) revisionARN(v *Service, deployment string) string {
	return a.state.account.ServiceRevision(v.cluster, v.Name, strings.TrimPrefix(deployment, deploymentPrefix))
}

func (a *serviceAPI) revisions(v *Service, shown []shapes.Deployment) []shapes.RevisionSummary {
	var all []shapes.RevisionSummary
	for _, d := range shown {
		all = append(all, shapes.RevisionSummary{
			ARN: a.revisionARN(v, d.ID), Requested: d.DesiredCount, Running: d.RunningCount, Pending: d.PendingCount,
		})
	}
	return all
}
