package broker

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	// policiesLabel is the docker label that names the policies of a task's token,
	// separated by commas or spaces. It is required.
	policiesLabel = "consul.hashicorp.com/policies"
	// ttlLabel is the docker label of the token's life, a Go duration or taskLife.
	ttlLabel = "consul.hashicorp.com/ttl"
	// defaultTTL is the life of a token whose task has no ttlLabel.
	defaultTTL = 72 * time.Hour
	// taskLife is the life of a token without expiry, which ends with its task.
	taskLife = config.TaskLife
	// MinTTL and MaxTTL bound a duration.
	MinTTL, MaxTTL = config.MinTokenTTL, config.MaxTokenTTL
	// maxPolicies bounds the policies of one token.
	maxPolicies = 32
)

// annotations are the values of the labels, by label.
type annotations map[string]string

// labels reads the annotations of all containers of a revision.
func labels(d *taskdef.TaskDefinition) (annotations, error) {
	found := annotations{}
	for _, c := range d.ContainerDefinitions {
		for _, key := range []string{policiesLabel, ttlLabel} {
			value, labelled := c.DockerLabels[key]
			if earlier, ok := found[key]; labelled && ok && earlier != value {
				return nil, fmt.Errorf("container %q has a different docker label %s than an earlier container", c.Name,
					key)
			}
			if labelled {
				found[key] = value
			}
		}
	}
	return found, nil
}

// unpinned names the first image that is not named by its digest, and its container.
func unpinned(d *taskdef.TaskDefinition) string {
	for _, c := range d.ContainerDefinitions {
		if !strings.Contains(c.Image, "@sha256:") {
			return fmt.Sprintf("%q of container %q", c.Image, c.Name)
		}
	}
	return ""
}

// annotations decides what the labels, and the tags if they are trusted, ask for. A tag
// never wins over a label: anyone with ecs:TagResource could raise a task's rights.
func (r *Rules) annotations(byLabel annotations, tags []types.Tag) (subject, error) {
	var s subject
	values := map[string]string{policiesLabel: byLabel[policiesLabel], ttlLabel: byLabel[ttlLabel]}
	for _, tag := range tags {
		key, value := aws.ToString(tag.Key), aws.ToString(tag.Value)
		if key != policiesLabel && key != ttlLabel {
			continue
		}
		label, labelled := byLabel[key]
		switch {
		case !labelled && r.TrustTags:
			values[key] = value
		case !labelled || !slices.Equal(list(label), list(value)):
			s.contradicting = append(s.contradicting, key)
		}
	}
	var err error
	if s.policies, err = r.policies(values[policiesLabel]); err != nil {
		return s, err
	}
	s.ttl, err = r.lifetime(values[ttlLabel])
	return s, err
}

func (r *Rules) policies(text string) ([]string, error) {
	names := list(text)
	if len(names) == 0 || len(names) > maxPolicies {
		return nil, refuse(http.StatusUnprocessableEntity, "policies",
			"docker label %s has %d policies, want 1 to %d, separated by commas or spaces", policiesLabel, len(names),
			maxPolicies)
	}
	for _, name := range names {
		if forbidden(name) || !matches(r.Policies, name) {
			return nil, refuse(http.StatusUnprocessableEntity, "policies",
				"policy %q is not one that this broker issues", name)
		}
	}
	return names, nil
}

// forbidden reports whether a policy is never given, whatever the patterns say.
func forbidden(name string) bool {
	folded := backend.FoldName(name)
	return folded == "global-management" || folded == "root"
}

// lifetime returns the life of a token, 0 for taskLife.
func (r *Rules) lifetime(text string) (time.Duration, error) {
	switch {
	case text == "":
		return defaultTTL, nil
	case text == taskLife && r.TaskLife:
		return 0, nil
	case text == taskLife:
		return 0, refuse(http.StatusUnprocessableEntity, "ttl",
			"docker label %s is %q, and this broker issues no tokens without expiry", ttlLabel, text)
	}
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl < MinTTL || ttl > MaxTTL {
		return 0, refuse(http.StatusUnprocessableEntity, "ttl", "docker label %s is %q, want a duration from %s to %s",
			ttlLabel, text, MinTTL, MaxTTL)
	}
	return ttl, nil
}

// list returns the elements of a list without repetitions.
func list(text string) []string {
	var names []string
	for _, name := range config.SplitWords(text) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
