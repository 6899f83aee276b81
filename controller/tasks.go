package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
)

// readECS adds what ECS answers for the tasks that have something in Consul. Only
// those that are not listed as running are looked up.
func (c *Cleaner) readECS(ctx context.Context, s *snapshot) error {
	s.AskedAt = c.now()
	running := map[string]struct{}{}
	err := c.ECS.List(ctx, c.Cluster.ARN, awsutil.TaskRunning, func(id string) { running[id] = struct{}{} })
	var none *awsutil.NoClusterError
	deleted := errors.As(err, &none) && none.Inactive
	if err != nil && !deleted {
		return fmt.Errorf("nothing is deleted in this pass: %w", err)
	}
	s.Running, s.Observations = running, map[string]observation{}
	notRunning, _ := evidenceOf(s)
	others := slices.Sorted(maps.Keys(notRunning))
	switch {
	case deleted:
		for _, id := range others {
			s.Observations[id] = observation{Last: awsutil.TaskMissing, Detail: "; the cluster was deleted"}
		}
		return nil
	case len(others) == 0:
		return nil
	}
	answer, err := c.ECS.Describe(ctx, c.Cluster.ARN, others)
	missing := false
	for _, t := range answer.Tasks {
		s.Observations[t.ID] = c.observe(t)
	}
	for _, f := range answer.Failures {
		_, contradicted := s.Observations[f.ID]
		switch {
		case contradicted:
			s.Observations[f.ID] = observation{Detail: "ECS lists the task but does not know its ID"}
		case f.Reason == awsutil.TaskMissing:
			s.Observations[f.ID] = observation{Last: awsutil.TaskMissing}
			missing = true
		default:
			s.Observations[f.ID] = observation{Detail: fmt.Sprintf("ECS: %s %s", f.Reason, f.Detail)}
		}
	}
	if err != nil {
		err = fmt.Errorf("tasks without an answer of ECS are not removed in this pass: %w", err)
	}
	if missing {
		err = c.checkStopping(ctx, s, err)
	}
	return err
}

// observe converts a description. One of another cluster proves nothing.
func (c *Cleaner) observe(t awsutil.ECSTask) observation {
	if t.ClusterARN != c.Cluster.ARN {
		return observation{Detail: fmt.Sprintf("ECS shows the task in cluster %q", t.ClusterARN)}
	}
	s := observation{Last: t.LastStatus, Desired: t.DesiredStatus}
	if t.LastStatus == awsutil.TaskStopped && !t.StoppedAt.IsZero() {
		s.Detail = " since " + t.StoppedAt.UTC().Format(time.RFC3339)
		if t.StopCode != "" {
			s.Detail += " (" + t.StopCode + ")"
		}
	}
	return s
}

// checkStopping replaces the observation that a task is missing if the list of those
// that should stop has it, or could not be read.
func (c *Cleaner) checkStopping(ctx context.Context, s *snapshot, err error) error {
	replace := func(id, why string) {
		if s.Observations[id].Last == awsutil.TaskMissing {
			s.Observations[id] = observation{Detail: why}
		}
	}
	listErr := c.ECS.List(ctx, c.Cluster.ARN, awsutil.TaskStopped, func(id string) {
		replace(id, "ECS lists the task but does not know its ID")
	})
	if listErr == nil {
		return err
	}
	for id := range s.Observations {
		replace(id, "the list of tasks that should stop could not be read")
	}
	return errors.Join(err, fmt.Errorf("tasks that ECS reports as MISSING are not removed in this pass: %w", listErr))
}
