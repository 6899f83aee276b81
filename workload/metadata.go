package workload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Values of the metadata endpoint that we act on.
const (
	// StatusRunning is the status of a container that has started.
	StatusRunning = "RUNNING"
	// StatusStopped is the last status of a container.
	StatusStopped = "STOPPED"
	// HealthHealthy is the only good container health.
	HealthHealthy = "HEALTHY"
	// typeNormal marks the containers of the task definition.
	typeNormal = "NORMAL"
	// Network modes. In awsvpc the containers of a task share its address and loopback; in
	// host also the host's, and the metadata have no address.
	modeAWSVPC, modeHost = "awsvpc", "host"
)

// ErrIncomplete is that of metadata without something that every task has, and so may have a
// moment later: the endpoint lists a starting container before its network.
var ErrIncomplete = errors.New("the task metadata are incomplete")

// ParseTask reads the answer of the task metadata endpoint. Whatever is no
// object with the ARN of an ECS task is an error: the endpoint answers faults
// with JSON too, and an empty task would look like one whose containers are
// all gone.
func ParseTask(body []byte) (Task, error) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return Task{}, fmt.Errorf("parse task metadata: want a JSON object, got %s", excerpt(body))
	}
	var t Task
	if err := json.Unmarshal(body, &t); err != nil {
		return Task{}, fmt.Errorf("parse task metadata %s: %w", excerpt(body), err)
	}
	if t.TaskARN == "" {
		return Task{}, fmt.Errorf("parse task metadata: no TaskARN in %s", excerpt(body))
	}
	if _, ok := splitARN(t.TaskARN); !ok {
		return Task{}, fmt.Errorf("parse task metadata: TaskARN %q: want "+
			"arn:<partition>:ecs:<region>:<account>:task/<cluster>/<id>", t.TaskARN)
	}
	return t, nil
}

// excerpt quotes the beginning of an answer for an error message.
func excerpt(body []byte) string {
	const most = 120
	if len(body) > most {
		return fmt.Sprintf("%q...", body[:most])
	}
	return fmt.Sprintf("%q", body)
}

// arn is a task ARN in parts. cluster is empty in the old format.
type arn struct{ partition, region, account, cluster, id string }

func splitARN(s string) (arn, bool) {
	p := strings.SplitN(s, ":", 6)
	if len(p) != 6 || p[0] != "arn" || p[2] != "ecs" || slices.Contains(p[:5], "") {
		return arn{}, false
	}
	a := arn{partition: p[1], region: p[3], account: p[4]}
	resource := strings.Split(p[5], "/")
	switch {
	case slices.Contains(resource, "") || resource[0] != "task":
		return arn{}, false
	case len(resource) == 2:
		a.id = resource[1]
	case len(resource) == 3:
		a.cluster, a.id = resource[1], resource[2]
	default:
		return arn{}, false
	}
	return a, true
}

func (t Task) arn() arn {
	a, _ := splitARN(t.TaskARN) // proven by ParseTask
	return a
}

// ID returns the task ID, the last part of the task ARN.
func (t Task) ID() string { return t.arn().id }

// Region returns the AWS region of the task ARN.
func (t Task) Region() string { return t.arn().region }

// Partition returns the AWS partition of the task ARN: aws, aws-cn, aws-us-gov.
func (t Task) Partition() string { return t.arn().partition }

// ClusterARN returns the ARN of the cluster. On EC2 the metadata has the short name only, so it comes from
// the task ARN; with an ARN of the old format, which does not name the cluster, from both. It is empty if
// neither names one.
func (t Task) ClusterARN() string {
	if strings.HasPrefix(t.Cluster, "arn:") {
		return t.Cluster
	}
	a := t.arn()
	name := a.cluster
	if name == "" {
		name = t.Cluster
	}
	if name == "" || a.id == "" {
		return ""
	}
	return "arn:" + a.partition + ":ecs:" + a.region + ":" + a.account + ":cluster/" + name
}

// networkMode returns the network mode of the task's containers, not those of AWS; empty when
// the metadata do not name it (yet). A mode that is not awsvpc is returned first.
func (t Task) networkMode() string {
	mode := ""
	for _, c := range t.Containers {
		if IsAWSContainer(c.Name) {
			continue
		}
		for _, n := range c.Networks {
			if n.NetworkMode != "" && n.NetworkMode != modeAWSVPC {
				return n.NetworkMode
			}
			mode = cmp.Or(mode, n.NetworkMode)
		}
	}
	return mode
}

// refuseMode returns the error of a task with a network mode in which it cannot be in the mesh.
func refuseMode(mode string) error {
	return fmt.Errorf("the task has network mode %q: the mesh needs an address of the task's own and a loopback that "+
		"its containers share; "+
		"set networkMode to awsvpc in the task definition (ECS Anywhere, launch type EXTERNAL, has bridge and host "+
		"only: run the task on Fargate or EC2)", mode)
}

// NodeIP returns the address of the task's network interface: the first IPv4 address, else the first IPv6
// address, of the first network that has one. In awsvpc mode all containers share it; one that waits may not
// list it yet: the error is ErrIncomplete when none does. In another mode the task has none.
func (t Task) NodeIP() (string, error) {
	if mode := t.networkMode(); mode != "" && mode != modeAWSVPC {
		return "", refuseMode(mode)
	}
	for _, c := range t.Containers {
		for _, n := range c.Networks {
			for _, ip := range slices.Concat(n.IPv4Addresses, n.IPv6Addresses) {
				if _, err := netip.ParseAddr(ip); err == nil {
					return ip, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%w: no container has an IP address", ErrIncomplete)
}

// Stopped reports whether the container has ended permanently. Both statuses count: a
// non-essential container that ended keeps a desired status of RUNNING, and a
// container about to end has its last known one.
func (c Container) Stopped() bool {
	return c.DesiredStatus == StatusStopped && c.KnownStatus == StatusStopped
}
