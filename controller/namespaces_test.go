package controller

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

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/testkit"
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
		"a name that is long": {tags("mesh", "true", "partition", "ecs", "namespace", strings.Repeat("a", 64)), "ecs",
			"", badName},
		"a name that is not": {tags("mesh", "true", "partition", "ecs", "namespace", ""), "ecs", "", ""},
		"one letter":         {tags("mesh", "true", "partition", "ecs", "namespace", "a"), "ecs", "a", ""},
		"the longest": {tags("mesh", "true", "partition", "ecs", "namespace", strings.Repeat("a", 63)), "ecs",
			strings.Repeat("a", 63), ""},
		"a bad one, elsewhere": {tags("mesh", "true", "partition", "x", "namespace", "team a"), "ecs", "", ""},
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

func (f *fake) Describe(_ context.Context, _ string, ids []string) (awsutil.DescribedTasks, error) {
	f.described = append(f.described, ids)
	var a awsutil.DescribedTasks
	for _, id := range ids {
		if tags, ok := f.tasks[id]; ok && tags != nil {
			a.Tasks = append(a.Tasks, awsutil.ECSTask{ID: id, Tags: tags})
		}
	}
	return a, f.err
}

func (f *fake) Counts() awsutil.CallCounts { return awsutil.CallCounts{} }

func in(namespace string) map[string]string {
	return map[string]string{tagMesh: "true", tagPartition: "ecs", tagNamespace: namespace}
}

// follower returns a Cleaner of partition ecs.
func follower(ecs ECS, ensure func(names []string) error) *Cleaner {
	return NewCleaner(
		CleanerOptions{ECS: ecs, Partition: "ecs", Log: hclog.NewNullLogger(),
			EnsureNamespaces: func(_ context.Context, names []string) ([]setup.Write, error) {
				return nil, ensure(names)
			}})
}

// follow makes the namespaces of all tasks of the fake.
func (f *fake) follow(t *testing.T, c *Cleaner) error {
	t.Helper()
	running := map[string]struct{}{}
	for id := range f.tasks {
		running[id] = struct{}{}
	}
	return c.ensureNamespaces(t.Context(), running)
}

// TestKnownNamespacesCauseNoRequest: the old program read namespaces and
// policies in every pass.
func TestKnownNamespacesCauseNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tasks: map[string]map[string]string{"1": in("web"), "2": in("web"),
			"3": {tagMesh: "true", tagPartition: "ecs"}, "4": in("api")}}
		var ensured []string
		c := follower(f, func(names []string) error {
			ensured = append(ensured, strings.Join(names, " "))
			return nil
		})
		step := func(what string, wantEnsured string, wantDescribed ...string) {
			t.Helper()
			f.described, ensured = nil, nil
			if err := f.follow(t, c); err != nil {
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
		<-time.After(recheck)
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
		c := follower(f, func(names []string) error {
			ensured = append(ensured, strings.Join(names, " "))
			return nil
		})
		for minute := range 8 {
			if minute == 2 {
				f.tasks["late"] = in("web")
			}
			if err := f.follow(t, c); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		want := [][]string{{"late", "never", "other"}, {"late", "never"}, {"late", "never"}, {"never"}, {"never"},
			{"never"}}
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
	f := &fake{}
	c := follower(f, func([]string) error { called++; return nil })
	for range 3 {
		if err := f.follow(t, c); err != nil {
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
	c := follower(f, func([]string) error { return fail })
	if err := f.follow(t, c); !errors.Is(err, fail) || !strings.Contains(err.Error(), "create namespaces of tasks: ") {
		t.Errorf("got %v", err)
	}
	fail = nil
	if err := f.follow(t, c); err != nil || len(c.namespaces.ensured) != 1 {
		t.Errorf("got %v, ensured %v", err, c.namespaces.ensured)
	}
	f.err = errors.New("throttled")
	f.tasks["2"] = in("api")
	err := f.follow(t, c)
	testkit.ErrorContains(t, err, "read the tags of tasks: ")
	if !errors.Is(err, f.err) {
		t.Errorf("got %v, want %v", err, f.err)
	}
	testkit.Equal(t, "ensured namespaces", len(c.namespaces.ensured), 2)
}

// TestPartialListMakesNoNamespaces: tasks of a list that could not be read to its end
// keep what is known of them.
func TestPartialListMakesNoNamespaces(t *testing.T) {
	t.Parallel()
	f := &fake{tasks: map[string]map[string]string{"1": in("web")}}
	c := follower(f, func([]string) error { t.Error("called"); return nil })
	if err := c.ensureNamespaces(t.Context(), nil); err != nil || f.described != nil {
		t.Errorf("got %v, described %v", err, f.described)
	}
	f.err = errors.New("throttled")
	s := &snapshot{}
	if err := c.readECS(t.Context(), s); !errors.Is(err, f.err) || s.Running != nil {
		t.Errorf("a list in part counts: %v, %v", err, s.Running)
	}
}

func TestOffWithoutPartitions(t *testing.T) {
	t.Parallel()
	f := &fake{tasks: map[string]map[string]string{"1": in("web")}}
	if err := f.follow(t, NewCleaner(CleanerOptions{ECS: f})); err != nil || f.described != nil {
		t.Errorf("got %v, described %v", err, f.described)
	}
}

// TestPassMakesNamespaces: tags arrive through the real SDK, in the pass that lists the
// task, after what dead tasks left is deleted, and the calls of ECS count.
func TestPassMakesNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ecs := awstest.NewECS(t, awstest.ECSOptions{})
		tags := map[string]string{tagMesh: "true", tagPartition: "edge", tagNamespace: "web"}
		arns := ecs.Run(awstest.TaskGroup{Family: "web", Count: 151, Cluster: "shop", Tags: tags})
		ecs.Run(awstest.TaskGroup{Family: "plain", Count: 2, Cluster: "shop", Tags: map[string]string{"team": "shop"}})
		ecs.Stop(arns[0])
		consul := &enterprise{fakeConsul: populated(t, []string{arns[0][len(arns[0])-32:]})}
		c := inMemory(t, consul, awsutil.NewECSReader(ecs.Config(), awsutil.ECSReaderOptions{CallsPerSecond: 100}))
		c.Partition = "edge"
		var got []string
		c.EnsureNamespaces = func(_ context.Context, names []string) ([]setup.Write, error) {
			if left := consul.accessors(); len(left) > 0 {
				t.Errorf("%d tokens of the dead task are left", len(left))
			}
			got = append(got, names...)
			return nil, nil
		}
		// Two pages of the list, and at first one description of the dead task and two
		// of the tags.
		for _, calls := range []int{5, 2} {
			r, err := c.Pass(t.Context())
			testkit.ErrorContains(t, err, "")
			testkit.Equal(t, "tasks and calls", []int{r.Running, r.AWS.Calls}, []int{152, calls})
		}
		if !slices.Equal(got, []string{"web"}) {
			t.Errorf("ensured %q, want web", got)
		}
	})
}
