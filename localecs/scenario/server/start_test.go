package server

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/runtime/hostcap"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestMain(m *testing.M) {
	if runtime.InitMain() {
		return
	}
	os.Exit(testkit.Main(m))
}

// newCluster is a cluster with an image of Consul.
func newCluster(t *testing.T) *localecs.Cluster {
	t.Helper()
	consul := testkit.Binary("consul")
	if consul == "" {
		testkit.Missing(t, "no consul")
	}
	cluster, err := localecs.Open(localecs.Options{
		Name: "test", Region: "us-east-1", Account: "123456789012", Dir: t.TempDir(), Log: hclog.NewNullLogger(),
		Images:  map[string]image.Image{"consul": {Name: "consul", Programs: map[string]string{"/bin/consul": consul}}},
		Observe: func(localecs.Event) {},
	})
	if missing, ok := errors.AsType[*hostcap.MissingError](err); ok {
		testkit.Missing(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// A server that is killed, frozen or slowed has afterwards what it had, and is
// found where it was.
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	running, client, err := Start(ctx, cluster, &file.Consul{Image: "consul", Address: "10.42.0.254"}, testkit.ManagementToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.KV().Put(&api.KVPair{Key: "k", Value: []byte("v")}, nil); err != nil {
		t.Fatal(err)
	}
	read := func(patience time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		pair, _, err := client.KV().Get("k", (&api.QueryOptions{}).WithContext(ctx))
		if err != nil || pair == nil {
			return "", err
		}
		return string(pair.Value), nil
	}
	for _, c := range []struct {
		name    string
		act     func() (func() error, error)
		answers bool
		want    error
	}{
		{"down", running.Down, false, syscall.ECONNREFUSED},
		{"frozen", running.Freeze, false, context.DeadlineExceeded},
		{"slow", running.Slow, true, nil},
	} {
		end, err := c.act()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		patience := testkit.Patience
		if errors.Is(c.want, context.DeadlineExceeded) {
			patience = time.Second
		}
		if got, err := read(patience); !errors.Is(err, c.want) || (got == "v") != c.answers {
			t.Errorf("while %s: %q, %v; want %v", c.name, got, err, c.want)
		}
		if err := end(); err != nil {
			t.Fatalf("end of %s: %v", c.name, err)
		}
		if err := WaitLeader(ctx, client, running.Done()); err != nil {
			t.Fatalf("after %s: %v", c.name, err)
		}
		if got, err := read(testkit.Patience); got != "v" || err != nil {
			t.Errorf("after %s: %q, %v", c.name, got, err)
		}
	}
}
