package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Rules are what the broker demands of a task. Patterns are those of path.Match.
type Rules struct {
	// Clusters are those whose tasks may have tokens.
	Clusters []awsutil.Cluster
	// Networks are where tasks have their addresses. Loopback, link-local, multicast and
	// unspecified addresses are refused in any case.
	Networks []netip.Prefix
	// MinPort and MaxPort bound the port of the push.
	MinPort, MaxPort int
	// Policies are patterns of the policies that tokens may have.
	Policies []string
	// Families, Groups and StartedBy are patterns; without any, all tasks match.
	Families, Groups, StartedBy []string
	// AllowOverrides permits tasks whose command, environment or roles are not those of
	// their revision.
	AllowOverrides bool
	// RefuseExecuteCommand refuses tasks in which ECS Exec is enabled.
	RefuseExecuteCommand bool
	// RequireAdmission refuses tasks whose revision consul-ecs admit has not admitted, or
	// which was changed after that.
	RequireAdmission bool
	// RequireDigests refuses tasks with an image that is not named by its digest.
	RequireDigests bool
	// TaskLife permits tokens without expiry: the backend and the store can revoke them
	// after a restart of the broker.
	TaskLife bool
	// TrustTags takes annotations that the revision lacks from the task's tags.
	TrustTags bool
}

// errUnknownTask and errElsewhere are for callers that may be strangers: they name nothing.
var (
	errUnknownTask = refuse(http.StatusNotFound, "unknown_task", "ECS has no such task")
	errElsewhere   = refuse(http.StatusUnauthorized, "address",
		"the request does not come from the address of the task's network interface: the task needs network mode awsvpc, and proxies between it and the broker must be trusted")
)

// identify finds the cluster of a request without asking ECS. A text that is not the ARN of a
// task there is cut off, for the logs.
func (l *leadership) identify(r *request) error {
	sent := r.in.TaskARN
	r.in.TaskARN = short(sent)
	var err error
	if r.cluster, err = l.opt.Rules.cluster(r.in.Cluster); err != nil {
		return err
	}
	if _, ours, _ := r.cluster.Belongs(sent); !ours {
		return refuse(http.StatusNotFound, "unknown_task", "%q is not the ARN of a task of the cluster", r.in.TaskARN)
	}
	r.in.TaskARN = sent
	if r.in.CallbackPort < l.opt.Rules.MinPort || r.in.CallbackPort > l.opt.Rules.MaxPort {
		return refuse(http.StatusBadRequest, "port", "callback_port %d: want %d to %d", r.in.CallbackPort,
			l.opt.Rules.MinPort, l.opt.Rules.MaxPort)
	}
	if len(r.in.PublicKey) == 0 && !l.opt.AllowUnsealed {
		return refuse(http.StatusBadRequest, "unsealed", "this broker pushes sealed handles only: send a public_key")
	}
	return nil
}

// verify asks ECS, and completes the request. What the rules make of a task is for callers at
// its address only.
func (l *leadership) verify(ctx context.Context, r *request) error {
	task, err := l.lookups.task(ctx, r.cluster.ARN, r.in.TaskARN)
	if err != nil {
		return err
	}
	if err := l.opt.Rules.locate(r.caller, task); err != nil {
		return err
	}
	r.fromTask = true
	ip, err := l.opt.Rules.check(r.cluster, r.in.TaskARN, task)
	if err != nil {
		return err
	}
	definition, err := l.lookups.definition(ctx, *task.TaskDefinitionArn)
	if err != nil {
		return err
	}
	r.subject, err = l.opt.Rules.subject(task, ip, definition)
	return err
}

// cluster finds a permitted cluster by its ARN or name.
func (r *Rules) cluster(name string) (awsutil.Cluster, error) {
	var found []awsutil.Cluster
	for _, c := range r.Clusters {
		if c.ARN == name || c.Name == name {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return awsutil.Cluster{}, refuse(http.StatusNotFound, "unknown_cluster",
			"cluster %q is not one of this broker's, or two of them have this name: send the ARN", short(name))
	}
	return found[0], nil
}

// locate reports whether a caller is where ECS has the task. The logs have the reason if not.
func (r *Rules) locate(c caller, t *types.Task) error {
	ip, err := r.address(t)
	notYet, _ := errors.AsType[*refusal](err)
	switch {
	case notYet != nil && notYet.after > 0:
		return err
	case !c.from(ip):
		return errElsewhere.because(err)
	}
	return nil
}

// check compares a task with the rules and returns its address. The cluster is that of
// the request, because ECS also answers for tasks of others.
func (r *Rules) check(c awsutil.Cluster, arn string, t *types.Task) (netip.Addr, error) {
	if aws.ToString(t.TaskArn) != arn || aws.ToString(t.ClusterArn) != c.ARN {
		return netip.Addr{}, errUnknownTask
	}
	if aws.ToString(t.DesiredStatus) != awsutil.TaskRunning {
		return netip.Addr{}, refuse(http.StatusGone, "stopping", "the task is being stopped")
	}
	switch status := aws.ToString(t.LastStatus); status {
	case "PENDING", "ACTIVATING", awsutil.TaskRunning: // a task waits for its token before it runs
	case "PROVISIONING":
		return netip.Addr{}, later(http.StatusTooEarly, "no_network", networkPause,
			"the task has no network interface yet")
	default:
		return netip.Addr{}, refuse(http.StatusGone, "stopping", "the task's status is %s", status)
	}
	if err := r.origin(t); err != nil {
		return netip.Addr{}, err
	}
	return r.address(t)
}

// origin checks who started the task, and how.
func (r *Rules) origin(t *types.Task) error {
	family, _, err := revision(aws.ToString(t.TaskDefinitionArn))
	switch {
	case err != nil:
		return refuse(http.StatusUnprocessableEntity, "definition", "%v", err)
	case !permits(r.Families, family):
		return refuse(http.StatusUnprocessableEntity, "family", "tokens are not for family %q", family)
	case !permits(r.Groups, aws.ToString(t.Group)):
		return refuse(http.StatusUnprocessableEntity, "group", "tokens are not for task group %q",
			aws.ToString(t.Group))
	case !permits(r.StartedBy, aws.ToString(t.StartedBy)):
		return refuse(http.StatusUnprocessableEntity, "started_by", "tokens are not for tasks started by %q",
			aws.ToString(t.StartedBy))
	case r.RefuseExecuteCommand && t.EnableExecuteCommand:
		return refuse(http.StatusUnprocessableEntity, "execute_command",
			"tokens are not for tasks in which ECS Exec is enabled")
	case !r.AllowOverrides && overridden(t.Overrides):
		return refuse(http.StatusUnprocessableEntity, "overrides",
			"the task overrides the command, environment or roles of its task definition")
	}
	return nil
}

// overridden reports whether a task runs something else than its revision. ECS lists
// every container among the overrides, with no more than its name.
func overridden(o *types.TaskOverride) bool {
	return o != nil && (aws.ToString(o.TaskRoleArn) != "" || aws.ToString(o.ExecutionRoleArn) != "" ||
		slices.ContainsFunc(o.ContainerOverrides, func(c types.ContainerOverride) bool {
			return len(c.Command) > 0 || len(c.Environment) > 0 || len(c.EnvironmentFiles) > 0
		}))
}

// address returns that of the task's only network interface, also with the error that it is not
// permitted.
func (r *Rules) address(t *types.Task) (netip.Addr, error) {
	var found []types.Attachment
	for _, a := range t.Attachments {
		if aws.ToString(a.Type) == "ElasticNetworkInterface" {
			found = append(found, a)
		}
	}
	if len(found) > 1 || len(found) == 0 && aws.ToString(t.LastStatus) == awsutil.TaskRunning {
		return netip.Addr{}, refuse(http.StatusUnprocessableEntity, "network_mode",
			"the task has %d network interfaces, want 1: network mode awsvpc", len(found))
	}
	text := ""
	for _, a := range found {
		for _, detail := range a.Details {
			if aws.ToString(a.Status) == "ATTACHED" && aws.ToString(detail.Name) == "privateIPv4Address" {
				text = aws.ToString(detail.Value)
			}
		}
	}
	if text == "" {
		return netip.Addr{}, later(http.StatusTooEarly, "no_network", networkPause,
			"the task's network interface is not attached yet")
	}
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() || !r.reachable(ip) {
		return ip, refuse(http.StatusUnprocessableEntity, "address",
			"the task's address %q is not in the permitted networks", text)
	}
	return ip, nil
}

// reachable reports whether the broker may connect to an address.
func (r *Rules) reachable(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return false
	}
	return contains(r.Networks, ip)
}

func contains(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// permits reports whether one of the patterns matches, or there is none.
func permits(patterns []string, text string) bool {
	return len(patterns) == 0 || matches(patterns, text)
}

func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, text) // valid, see Options
		return ok
	})
}

// revision reads the family and revision of a task definition's ARN.
func revision(arn string) (family string, number int, err error) {
	_, rest, _ := strings.Cut(arn, ":task-definition/")
	family, text, found := strings.Cut(rest, ":")
	if number, err = strconv.Atoi(text); err != nil || !found || family == "" || number < 1 {
		return "", 0, fmt.Errorf("task definition %q: want the ARN of a revision", arn)
	}
	return family, number, nil
}

// subject is what a request is for, once ECS has vouched for the task.
type subject struct {
	task     backend.Task
	policies []string
	ttl      time.Duration // 0: until the task ends
	// contradicting are the keys of tags that contradict the revision.
	contradicting []string
}

// definition checks where the definition of a task and its images come from.
func (r *Rules) definition(d *definition) error {
	switch {
	case r.RequireAdmission && !d.admitted:
		return refuse(http.StatusUnprocessableEntity, "admission",
			"the task definition has no tag %s with its own hash: register what consul-ecs admit writes, with its tags",
			taskdef.SealTag)
	case r.RequireDigests && d.unpinned != "":
		return refuse(http.StatusUnprocessableEntity, "image_digest",
			"image %s can be replaced: name it by its digest in the task definition, NAME@sha256:...", d.unpinned)
	}
	return nil
}

// subject puts together what a token is made of.
func (r *Rules) subject(t *types.Task, ip netip.Addr, d *definition) (subject, error) {
	s, err := r.annotations(d.annotations, t.Tags)
	if err != nil {
		return s, err
	}
	if err := r.definition(d); err != nil {
		return s, err
	}
	family, number, _ := revision(aws.ToString(t.TaskDefinitionArn)) // checked by origin
	service, _ := strings.CutPrefix(aws.ToString(t.Group), "service:")
	s.task = backend.Task{
		ARN: aws.ToString(t.TaskArn), Cluster: aws.ToString(t.ClusterArn), Family: family, Revision: number,
		Address: ip, AvailabilityZone: aws.ToString(t.AvailabilityZone), Name: cmp.Or(service, family),
	}
	return s, nil
}
