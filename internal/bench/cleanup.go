package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// aloneTasks are how many tasks' leftovers are deleted one after the other.
	aloneTasks = 50
	// consulAway is how long a request to Consul takes at least, as one does to
	// servers in other zones that write to disks.
	consulAway = 10 * time.Millisecond
)

// leftoversFigure lets a controller delete what 500 dead tasks left, and deletes
// what some more left one after the other. Both are as far from Consul.
func leftoversFigure(s *stage) ([]row, error) {
	f := &controllerBench{stage: s}
	if err := f.prepare(); err != nil {
		return nil, err
	}
	if err := f.grow(someDead + aloneTasks); err != nil {
		return nil, err
	}
	var delay atomic.Int64
	requests := &recorder{}
	proxy := requests.proxy(f.consul.HTTPAddr)
	away, err := s.serve("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.pause(time.Duration(delay.Load())) == nil {
			proxy.ServeHTTP(w, r)
		}
	}))
	if err != nil {
		return nil, err
	}
	c, err := f.controller(away)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	first, err := f.after(c, 1)
	if err != nil {
		return nil, err
	}
	requests.take() // set-up's
	last, err := f.after(c, 1+quietPasses)
	if err != nil {
		return nil, err
	}
	passes := last[`passes_total{result="ok"}`] - first[`passes_total{result="ok"}`]
	quiet := float64(len(writesOf(requests.take()))) / passes
	delay.Store(int64(consulAway))
	if _, err := f.cleaned(c); err != nil {
		return nil, err
	}
	together := span(writesOf(requests.take()))
	if err := c.end(); err != nil {
		return nil, err
	}
	alone, err := f.deleteAlone(away, f.tasks[someDead:])
	if err != nil {
		return nil, err
	}
	what := "acl-controller: "
	return []row{
		{what + "Consul writes of a later pass, but for its lock", count, "", "0", sample{quiet}, nil},
		{what + fmt.Sprintf("what %d dead tasks left, 10 ms to Consul", someDead), seconds, "", "a fifth", sample{seconds.of(together)}, []reference{
			{fmt.Sprintf("one after the other, from %d", aloneTasks), sample{seconds.of(alone) * someDead / aloneTasks}},
		}},
	}, nil
}

// writesOf are the requests that change something, but for the leader's lock.
func writesOf(all []exchange) []exchange {
	return slices.DeleteFunc(all, func(e exchange) bool {
		return e.method == http.MethodGet || strings.HasPrefix(e.path, "/v1/session/") || strings.HasPrefix(e.path, "/v1/kv/")
	})
}

// span is from the first request's beginning to the last one's end.
func span(all []exchange) time.Duration {
	if len(all) == 0 {
		return 0
	}
	first, last := all[0].start, all[0].end
	for _, e := range all {
		if e.start.Before(first) {
			first = e.start
		}
		if e.end.After(last) {
			last = e.end
		}
	}
	return last.Sub(first)
}

// deleteAlone deletes what tasks have in Consul one after the other.
func (f *controllerBench) deleteAlone(address string, arns []string) (time.Duration, error) {
	client, err := consulutil.NewClient(consulutil.Options{Address: address, Token: f.consul.Token})
	if err != nil {
		return 0, err
	}
	tokens, err := f.accessors()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for _, arn := range arns {
		id := arn[strings.LastIndex(arn, "/")+1:]
		if len(tokens[id]) != perTaskTokens {
			return 0, fmt.Errorf("task %s has %d tokens", id, len(tokens[id]))
		}
		for _, accessor := range tokens[id] {
			if _, err := client.ACL().TokenDelete(accessor, nil); err != nil {
				return 0, err
			}
		}
		for _, service := range []string{workload.ServiceID("web", id), workload.ProxyID(workload.ServiceID("web", id))} {
			if _, err := client.Catalog().Deregister(&api.CatalogDeregistration{Node: "node-" + id, ServiceID: service}, nil); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(begin), nil
}

// accessors are the tokens of each task.
func (f *controllerBench) accessors() (map[string][]string, error) {
	list, _, err := f.admin.ACL().TokenList(nil)
	tokens := map[string][]string{}
	for _, t := range list {
		_, rest, ok := strings.Cut(t.Description, workload.LoginMetaTaskID+`":"`)
		if id, _, _ := strings.Cut(rest, `"`); ok {
			tokens[id] = append(tokens[id], t.AccessorID)
		}
	}
	return tokens, err
}
