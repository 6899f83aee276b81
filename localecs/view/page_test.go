package view_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/view"
)

func sortEvents(events []view.RecordedEvent) {
	slices.SortStableFunc(events, func(a, b view.RecordedEvent) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
}

func html(t testing.TB, run view.RecordedRun) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.WriteHTML(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// element is one of a page, with all text in it.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// parse reads a page as strictly as XML wants it.
func parse(t testing.TB, page string) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	var all []element
	var open []int
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			open = append(open, len(all))
			all = append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, i := range open {
				if all[open[len(open)-1]].name != "title" || all[i].name == "title" { // a title is not shown
					all[i].text += string(token)
				}
			}
		}
	}
}

func TestPageHasItsPartsInOrder(t *testing.T) {
	t.Parallel()
	page := html(t, small())
	if page != html(t, small()) {
		t.Error("a second page of the run differs")
	}
	var parts, lanes []string
	for _, e := range parse(t, page) {
		text := strings.Join(strings.Fields(e.text), " ")
		switch {
		case slices.Contains([]string{"h1", "h2", "summary"}, e.name), e.attrs["class"] == "facts":
			parts = append(parts, e.name+" "+text)
		case e.attrs["class"] == "name":
			lanes = append(lanes, text)
		}
	}
	if diff := cmp.Diff([]string{
		"h1 small FAILED",
		"p 40.0 s · 2 tasks · 285 requests answered, 3 lost · 2 faults · stop order reverse · seed 7 · " +
			"started 2026-01-02T03:04:05Z",
		"h2 The run", "summary Steps (4)", "summary Faults (2)", "summary Traffic (1)", "summary All other events",
		"summary Requests by second",
		"h2 api-1",
		"p 0123456789abcdef0123456789abcdef 10.0.0.4 STOPPED UserInitiated: Task stopped by user",
		"summary Start and stop", "summary All 45 events",
		"h2 batch-1",
		"p b1 10.0.0.9 STOPPED EssentialContainerExited: Essential container in task exited",
		"summary Start and stop", "summary All 8 events",
		"h2 Legend",
	}, parts[:len(parts)-1]); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"steps", "faults", "", "traffic", "requests",
		"api-1", "consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy",
		"consul-ecs-health-sync", "api", "log-router-with-a-very-long-name-indeed", "consul ecs synced",
		"Destination Alias", "in traffic", "token iam-ecs-client-token", "token iam-ecs-service-token",
		"batch-1", "batch", "log-router",
	}, lanes); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
}

// Every bar and mark is within the diagram, at its time.
func TestShapesStandAtTheirTimes(t *testing.T) {
	t.Parallel()
	places := regexp.MustCompile(`^left:([0-9.]+)%(?:;width:([0-9.]+)%)?$`)
	for _, run := range []view.RecordedRun{small(), tiny()} {
		for _, e := range parse(t, html(t, run)) {
			style := e.attrs["style"]
			if style == "" || strings.Contains(style, "left:0;") {
				continue
			}
			m := places.FindStringSubmatch(style)
			if m == nil {
				t.Fatalf("%s: style %q", run.Scenario, style)
			}
			left, _ := strconv.ParseFloat(m[1], 64)
			width, _ := strconv.ParseFloat(m[2], 64)
			if left < 0 || left+width > 100.01 {
				t.Errorf("%s: %q reaches out of the diagram: %s", run.Scenario, e.attrs["title"], style)
			}
		}
	}
	for title, want := range map[string]string{
		"start api-1: 1.000 to 1.100 s (0.10 s) ":                "left:2.500%;width:0.250%",
		"api-1 freeze consul: 8.000 to 15.000 s (7.00 s) ":       "left:20.000%;width:17.500%",
		"13.0 to 20.0 s: 105 answered, 0 lost":                   "left:32.500%;width:17.500%",
		"20.0 to 20.3 s: 4 answered, 3 lost":                     "left:50.000%;width:0.750%",
		"api-1: asked to stop: Task stopped by user at 31.000 s": "left:77.500%",
	} {
		if got := styleOf(parse(t, html(t, small())), title); got != want {
			t.Errorf("%q is at %q, want %q", title, got, want)
		}
	}
}

// styleOf returns the style of the first element with a title.
func styleOf(all []element, title string) string {
	for _, e := range all {
		if e.attrs["title"] == title {
			return e.attrs["style"]
		}
	}
	return ""
}

func TestEveryEventIsOnThePage(t *testing.T) {
	t.Parallel()
	run := small()
	rows := map[string]int{}
	page := parse(t, html(t, run))
	for i, e := range page {
		if e.name == "tr" {
			var cells []string
			for _, c := range page[i+1:] {
				if c.name != "td" {
					break
				}
				cells = append(cells, c.text)
			}
			rows[strings.Join(cells, "|")]++
		}
	}
	expect := func(cells ...string) {
		t.Helper()
		key := strings.Join(cells, "|")
		if rows[key] == 0 {
			t.Errorf("no row %s", key)
		}
		rows[key]--
	}
	all := slices.Clone(run.Events)
	for _, task := range run.Tasks {
		all = append(all, task.Events...)
	}
	for _, e := range all {
		what := e.Container
		if e.Check != "" {
			what = e.Check + " (" + e.Service + ")"
		}
		if e.Method != "" {
			what = e.Method + " " + e.Accessor
		}
		expect(fmt.Sprintf("%.3f", e.At), string(e.Kind), what, e.Status, e.Detail)
	}
	for _, steps := range [][]view.RecordedStep{run.Steps, run.Faults, run.Phases} {
		for i, s := range steps {
			expect(fmt.Sprint(i+1), fmt.Sprintf("%.3f", s.From), fmt.Sprintf("%.3f", s.To),
				fmt.Sprintf("%.3f", s.To-s.From), s.Task, s.Text, s.Error)
		}
	}
	expect("20.000", "21.000", "15", "3", "8")
}

func TestEachKindOfShapeIsInTheDiagram(t *testing.T) {
	t.Parallel()
	classes := map[string]int{}
	for _, e := range parse(t, html(t, small())) {
		classes[e.attrs["class"]]++
		for _, name := range []string{"src", "href"} {
			if link := e.attrs[name]; link != "" {
				t.Errorf("the page needs %s", link)
			}
		}
		if slices.Contains([]string{"script", "link", "img"}, e.name) {
			t.Errorf("an element %s", e.name)
		}
	}
	// The legend has one of each; what was not in the run has no other.
	classes["bar step error"]++
	classes["bar out stopping"]++
	for class, want := range map[string]bool{
		"mark term": true, "mark kill": true, "mark again": true, "mark badexit": true, "mark exit": true,
		"mark sick": false, "bar waiting": true, "bar unknown": true, "bar up": true, "bar healthy": true,
		"bar healthy stopping": true, "bar unhealthy": true, "bar warning": false, "bar held": true,
		"bar answered": true, "bar lost": true, "bar fault": true, "bar step error": true,
		"bar out": false, "bar out stopping": true,
	} {
		if got := classes[class] > 1; got != want {
			t.Errorf("%q is there %d times", class, classes[class])
		}
	}
}

func FuzzNamesAreEscaped(f *testing.F) {
	f.Add("<script>alert(1)</script>", "\"><img src=x onerror=y>", 3.0, -1.0)
	f.Add("\x00\x1b[2J\xff", "]]>&amp;", 1e12, 1e-12)
	plain := map[string]int{}
	for _, e := range parse(f, html(f, hostile("x", "y", 3, 4))) {
		plain[e.name]++
	}
	f.Fuzz(func(t *testing.T, a, b string, from, to float64) {
		if bounded := math.Abs(from) <= 1e6 && math.Abs(to) <= 1e6; !bounded { // NaN is not, either
			from, to = 3, 4
		}
		run := hostile(a, b, from, to)
		for _, e := range parse(t, html(t, run)) {
			if plain[e.name] == 0 && !slices.Contains([]string{"b", "title"}, e.name) {
				t.Fatalf("an element %s came in", e.name)
			}
			for name := range e.attrs {
				if strings.HasPrefix(name, "on") {
					t.Fatalf("an attribute %s came in", name)
				}
			}
		}
	})
}

// hostile returns a run all of whose texts are chosen by an attacker.
func hostile(a, b string, from, to float64) view.RecordedRun {
	return view.RecordedRun{
		Scenario: a, Outcome: b, StopOrder: a, Failures: []string{a, b}, Started: time.Unix(1_800_000_000, 0),
		Seconds: to,
		Tasks: []view.RecordedTask{{Name: a, ID: b, Address: a,
			Containers: []view.RecordedContainer{{Name: b}}, Events: []view.RecordedEvent{
				{At: from, Kind: view.KindStatus, Container: b, Status: "RUNNING"},
				{At: to, Kind: view.KindStatus, Container: b, Status: "STOPPED", Detail: a},
				{At: from, Kind: view.KindCheck, Check: a, Service: b, Status: a},
				{At: from, Kind: view.KindToken, Method: a, Accessor: b, Status: "login"},
				{At: to, Kind: view.Kind(a), Container: a, Detail: b}, {At: to, Kind: view.KindDesired, Status: b},
			}}},
		Steps: []view.RecordedStep{{Text: a, From: from, To: to, Error: b}}, Faults: []view.RecordedStep{
			{Text: b, Task: a, From: from, To: to},
		},
		Events: []view.RecordedEvent{{At: from, Kind: view.Kind(a), Detail: b}},
	}
}
