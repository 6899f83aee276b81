package awsutil

import (
	"fmt"
	"strings"
)

// Cluster is an ECS cluster, as its ARN names it.
type Cluster struct {
	// ARN is the whole; Partition, Region, Account and Name are its parts.
	ARN, Partition, Region, Account, Name string
}

// ParseCluster reads arn:<partition>:ecs:<region>:<account>:cluster/<name>.
func ParseCluster(arn string) (Cluster, error) {
	p := strings.SplitN(arn, ":", 6)
	if len(p) == 6 && p[0] == "arn" && p[2] == "ecs" {
		name, ok := strings.CutPrefix(p[5], "cluster/")
		if ok && name != "" && !strings.ContainsAny(name, "/:") && p[1] != "" && p[3] != "" && p[4] != "" {
			return Cluster{ARN: arn, Partition: p[1], Region: p[3], Account: p[4], Name: name}, nil
		}
	}
	return Cluster{}, fmt.Errorf("cluster %q: want arn:<partition>:ecs:<region>:<account>:cluster/<name>", arn)
}

// Belongs reports whether a task's ARN is of this cluster. The old form of the ARN names no cluster:
// then the task is of the cluster's account and region, and sure is false.
func (c Cluster) Belongs(taskARN string) (id string, ours, sure bool) {
	rest, ok := strings.CutPrefix(taskARN, "arn:"+c.Partition+":ecs:"+c.Region+":"+c.Account+":task/")
	if !ok {
		return "", false, false
	}
	cluster, id, long := strings.Cut(rest, "/")
	if !long {
		return rest, IsTaskID(rest), false
	}
	return id, cluster == c.Name && IsTaskID(id), true
}

// TaskARN returns the ARN of a task, in the long form.
func (c Cluster) TaskARN(id string) string {
	return "arn:" + c.Partition + ":ecs:" + c.Region + ":" + c.Account + ":task/" + c.Name + "/" + id
}

// IsTaskID reports whether a text has the form of a task's ID: 32 hexadecimal
// digits, or those of a UUID in the old form. AWS refuses a whole call that has
// another one in it.
func IsTaskID(text string) bool {
	if len(text) != 32 && len(text) != 36 {
		return false
	}
	for i, r := range text {
		dash := len(text) == 36 && (i == 8 || i == 13 || i == 18 || i == 23)
		hex := '0' <= r && r <= '9' || 'a' <= r && r <= 'f'
		if dash && r != '-' || !dash && !hex {
			return false
		}
	}
	return true
}

// lastPart returns what follows an ARN's last slash, in its own memory.
func lastPart(arn string) string {
	return strings.Clone(arn[strings.LastIndexByte(arn, '/')+1:])
}
