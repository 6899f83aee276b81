package cleanup

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil/awstest/ecstest"
	"github.com/meshtask/consul-ecs/awsutil/ecsread"
)

func TestNamespaceOfTags(t *testing.T) {
	t.Parallel()
	tags := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m["consul.hashicorp.com/"+pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		tags      map[string]string
		partition string
		want      string
		wrong     string
	}{
		"no mesh":               {tags("partition", "ecs", "namespace", "web"), "ecs", "", ""},
		"mesh off":              {tags("mesh", "false", "partition", "ecs", "namespace", "web"), "ecs", "", ""},
		"both":                  {tags("mesh", "true", "partition", "ecs", "namespace", "web"), "ecs", "web", ""},
		"neither":               {tags("mesh", "true"), "default", "default", ""},
		"neither, elsewhere":    {tags("mesh", "true"), "ecs", "", ""},
		"another partition":     {tags("mesh", "true", "partition", "x", "namespace", "web"), "ecs", "", ""},
		"no namespace":          {tags("mesh", "true", "partition", "ecs"), "ecs", "", halfPlace},
		"no partition":          {tags("mesh", "true", "namespace", "web"), "default", "", halfPlace},
		"no tags":               {nil, "ecs", "", ""},
		"half, and not in mesh": {tags("namespace", "web"), "ecs", "", ""},
		"a name with a space":   {tags("mesh", "true", "partition", "ecs", "namespace", "team a"), "ecs", "", badName},
		"a name that is long":   {tags("mesh", "true", "partition", "ecs", "namespace", strings.Repeat("a", 64)), "ecs", "", badName},
		"a name that is not":    {tags("mesh", "true", "partition", "ecs", "namespace", ""), "ecs", "", ""},
		"one letter":            {tags("mesh", "true", "partition", "ecs", "namespace", "a"), "ecs", "a", ""},
		"the longest":           {tags("mesh", "true", "partition", "ecs", "namespace", strings.Repeat("a", 63)), "ecs", strings.Repeat("a", 63), ""},
		"a bad one, elsewhere":  {tags("mesh", "true", "partition", "x", "namespace", "team a"), "ecs", "", ""},
	} {
		if got, wrong := namespace(c.tags, c.partition); got != c.want || wrong != c.wrong {
			t.Errorf("%s: got %q, %q; want %q, %q", name, got, wrong, c.want, c.wrong)
		}
	}
}

// fake is an ECS of tasks with tags.
type fake struct {
	tasks     map[string]map[string]string
	described [][]string
	err       error
}

func (f *fake) List(_ context.Context, _, _ string, each func(string)) error {
	for _, id := range slices.Sorted(maps.Keys(f.tasks)) {
		each(id)
	}
	return f.err
}

func (f *fake) Describe(_ context.Context, _ string, ids []string) (ecsread.Answer, error) {
	f.described = append(f.described, ids)
	var a ecsread.Answer
	for _, id := range ids {
		if tags, ok := f.tasks[id]; ok && tags != nil {
			a.Tasks = append(a.Tasks, ecsread.Task{ID: id, Tags: tags})
		}
	}
	return a, f.err
}

func (f *fake) Counts() ecsread.Counts { return ecsread.Counts{} }

func in(namespace string) map[string]string {
	return map[string]string{tagMesh: "true", tagPartition: "ecs", tagNamespace: namespace}
}

func pass(t *testing.T, w *Watcher) error {
	t.Helper()
	seen := 0
	if err := w.List(t.Context(), "c", ecsread.Running, func(string) { seen++ }); err != nil {
		return err
	}
	if f, ok := w.TaskReader.(*fake); ok && seen != len(f.tasks) {
		t.Errorf("%d of %d tasks passed on", seen, len(f.tasks))
	}
	return w.Follow(t.Context())
}

// TestNothingNewCostsNothing: the old program read namespaces and
// policies in every pass.
func TestNothingNewCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tasks: map[string]map[string]string{"1": in("web"), "2": in("web"), "3": {tagMesh: "true", tagPartition: "ecs"}, "4": in("api")}}
		var ensured []string
		w := &Watcher{TaskReader: f, Cluster: "c", Partition: "ecs", Log: hclog.NewNullLogger(), Ensure: func(_ context.Context, names []string) error {
			ensured = append(ensured, strings.Join(names, " "))
			return nil
		}}
		step := func(what string, wantEnsured string, wantDescribed ...string) {
			t.Helper()
			f.described, ensured = nil, nil
			if err := pass(t, w); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if got := strings.Join(ensured, "|"); got != wantEnsured {
				t.Errorf("%s: ensured %q, want %q", what, got, wantEnsured)
			}
			if diff := cmp.Diff(wantDescribed, slices.Concat(f.described...)); diff != "" {
				t.Errorf("%s: described (-want +got):\n%s", what, diff)
			}
		}
		step("first", "api web", "1", "2", "3", "4")
		step("nothing new", "")
		f.tasks["5"] = in("web")
		step("a task of a known namespace", "", "5")
		f.tasks["6"] = in("new")
		step("a new namespace", "api new web", "6")
		delete(f.tasks, "6")
		step("a task ends", "")
		f.tasks["6"] = in("new")
		step("its ID again", "", "6")
		<-time.After(again)
		step("an hour later", "api new web")
		f.tasks["7"] = nil
		step("a task that ECS does not describe", "", "7")
		step("and again", "", "7")
	})
}

// TestTagsMayBeLate: a task that AWS shows without its tags is described again,
// for five minutes.
func TestTagsMayBeLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tasks: map[string]map[string]string{"late": {}, "never": {}, "other": {"team": "shop"}}}
		var ensured []string
		w := &Watcher{TaskReader: f, Cluster: "c", Partition: "ecs", Log: hclog.NewNullLogger(), Ensure: func(_ context.Context, names []string) error {
			ensured = append(ensured, strings.Join(names, " "))
			return nil
		}}
		for minute := range 8 {
			if minute == 2 {
				f.tasks["late"] = in("web")
			}
			if err := pass(t, w); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		want := [][]string{{"late", "never", "other"}, {"late", "never"}, {"late", "never"}, {"never"}, {"never"}, {"never"}}
		if diff := cmp.Diff(want, f.described); diff != "" {
			t.Errorf("described (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"", "web"}, ensured); diff != "" {
			t.Errorf("ensured (-want +got):\n%s", diff)
		}
	})
}

func TestFirstPassWithoutTasks(t *testing.T) {
	t.Parallel()
	called := 0
	w := &Watcher{TaskReader: &fake{}, Partition: "ecs", Log: hclog.NewNullLogger(), Ensure: func(context.Context, []string) error { called++; return nil }}
	for range 3 {
		if err := pass(t, w); err != nil {
			t.Fatal(err)
		}
	}
	if called != 1 {
		t.Errorf("ensured %d times, want once, for the partition's default namespace", called)
	}
}

func TestFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	f := &fake{tasks: map[string]map[string]string{"1": in("web")}}
	fail := errors.New("away")
	w := &Watcher{TaskReader: f, Partition: "ecs", Log: hclog.NewNullLogger(), Ensure: func(context.Context, []string) error { return fail }}
	if err := pass(t, w); !errors.Is(err, fail) || !strings.Contains(err.Error(), "make namespaces of tasks: ") {
		t.Errorf("got %v", err)
	}
	fail = nil
	if err := pass(t, w); err != nil || len(w.ensured) != 1 {
		t.Errorf("got %v, ensured %v", err, w.ensured)
	}
	f.err = errors.New("throttled")
	f.tasks["2"] = in("api")
	if err := pass(t, w); !errors.Is(err, f.err) || len(w.running) != 1 {
		t.Errorf("a list in part counts: %v, %v", err, w.running)
	}
	w.running["2"] = struct{}{}
	if err := w.Follow(t.Context()); !errors.Is(err, f.err) || !strings.Contains(err.Error(), "read the tags of tasks: ") || len(w.ensured) != 2 {
		t.Errorf("got %v, ensured %v", err, w.ensured)
	}
}

func TestOffWithoutPartitions(t *testing.T) {
	t.Parallel()
	f := &fake{tasks: map[string]map[string]string{"1": in("web")}}
	w := &Watcher{TaskReader: f}
	if err := pass(t, w); err != nil || f.described != nil {
		t.Errorf("got %v, described %v", err, f.described)
	}
}

// clusterOf is the cluster's ARN of a task's.
func watchedCluster(task string) string {
	return strings.Replace(task[:strings.LastIndex(task, "/")], ":task/", ":cluster/", 1) // arn:...:task/<cluster>/<id>
}

// TestRealReader: tags come through the real SDK.
func TestRealReader(t *testing.T) {
	t.Parallel()
	ecs := ecstest.New(t, ecstest.Options{})
	arns := ecs.Run(ecstest.Group{Family: "web", Count: 150, Tags: in("web")})
	ecs.Run(ecstest.Group{Family: "plain", Count: 2, Tags: map[string]string{"team": "shop"}})
	var got []string
	w := &Watcher{
		Cluster:    watchedCluster(arns[0]),
		TaskReader: ecsread.New(ecs.Config(), ecsread.Options{CallsPerSecond: 100}), Partition: "ecs", Log: hclog.NewNullLogger(),
		Ensure: func(_ context.Context, names []string) error { got = append(got, names...); return nil },
	}
	for range 2 {
		listed := 0
		if err := w.List(t.Context(), watchedCluster(arns[0]), ecsread.Running, func(string) { listed++ }); err != nil || listed != 152 {
			t.Fatalf("%d tasks, %v", listed, err)
		}
		if err := w.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := ecs.Calls("DescribeTasks"); !slices.Equal(got, []string{"web"}) || n != 2 {
		t.Errorf("ensured %q with %d DescribeTasks, want web with 2", got, n)
	}
}
