package awsutil

import (
	"strings"
	"testing"
)

func TestParseCluster(t *testing.T) {
	t.Parallel()
	tests := map[string]Cluster{
		cluster: {cluster, "aws", "us-east-1", "123456789012", "shop"},
		"arn:aws-cn:ecs:cn-north-1:1:cluster/a-b_c": {
			"arn:aws-cn:ecs:cn-north-1:1:cluster/a-b_c", "aws-cn", "cn-north-1", "1", "a-b_c",
		},
		"shop":                                   {},
		"":                                       {},
		"arn:aws:ecs:us-east-1:1:service/shop/x": {},
		"arn:aws:ecs:us-east-1:1:cluster/":       {},
		"arn:aws:ecs:us-east-1:1:cluster/a/b":    {},
		"arn:aws:ecs:us-east-1:1:cluster/a:b":    {},
		"arn:aws:ecs::1:cluster/a":               {},
		"arn:aws:ecs:us-east-1::cluster/a":       {},
		"arn::ecs:us-east-1:1:cluster/a":         {},
		"arn:aws:eks:us-east-1:1:cluster/a":      {},
	}
	for in, want := range tests {
		got, err := ParseCluster(in)
		if got != want || (err == nil) != (want != Cluster{}) {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
}

func TestIsTaskID(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"0123456789abcdef0123456789abcdef":     true,
		"01234567-89ab-cdef-0123-456789abcdef": true,
		"0123456789ABCDEF0123456789abcdef":     false,
		"0123456789abcdef0123456789abcde":      false,
		"0123456789abcdef0123456789abcdeg":     false,
		"0123456-789ab-cdef-0123-456789abcdef": false,
		"012345678-89ab-cdef-0123-456789abcde": false,
		"0123456789abcdef0123456789abcdef0123": false,
		"------------------------------------": false,
		"":                                     false,
	}
	for in, want := range tests {
		if got := IsTaskID(in); got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}

func TestTaskARN(t *testing.T) {
	t.Parallel()
	c, err := ParseCluster(cluster)
	if err != nil {
		t.Fatal(err)
	}
	id, ours, sure := c.Belongs(c.TaskARN(taskID(7)))
	if id != taskID(7) {
		t.Errorf("ID %s, want %s", id, taskID(7))
	}
	if !ours || !sure {
		t.Errorf("ours %v, sure %v, want both", ours, sure)
	}
}

// FuzzBelongs: a task that is said to be ours has our account in its ARN, and an
// ID that AWS takes.
func FuzzBelongs(f *testing.F) {
	f.Add("arn:aws:ecs:us-east-1:123456789012:task/shop/" + taskID(1))
	f.Add("arn:aws:ecs:us-east-1:123456789012:task/" + taskID(1))
	f.Fuzz(func(t *testing.T, arn string) {
		c, err := ParseCluster(cluster)
		if err != nil {
			t.Fatal(err)
		}
		id, ours, sure := c.Belongs(arn)
		if !ours {
			return
		}
		if !IsTaskID(id) || !strings.HasPrefix(arn, "arn:aws:ecs:us-east-1:123456789012:task/") {
			t.Errorf("%q is ours: %s", arn, id)
		}
		if sure && !strings.Contains(arn, "/shop/") {
			t.Errorf("%q is surely ours", arn)
		}
	})
}

// FuzzParseCluster: what is accepted is put together again to the same ARN.
func FuzzParseCluster(f *testing.F) {
	f.Add(cluster)
	f.Fuzz(func(t *testing.T, arn string) {
		c, err := ParseCluster(arn)
		if err == nil && arn != "arn:"+c.Partition+":ecs:"+c.Region+":"+c.Account+":cluster/"+c.Name {
			t.Errorf("%q became %+v", arn, c)
		}
	})
}
