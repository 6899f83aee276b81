package view_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
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
	// svg counts the pictures before it, itself included.
	svg int
}

// parse reads a page as strictly as XML wants it.
func parse(t testing.TB, page string) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	var all []element
	var open []int
	svgs := 0
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
			if token.Name.Local == "svg" {
				svgs++
			}
			e := element{name: token.Name.Local, attrs: map[string]string{}, svg: svgs}
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
	var parts []string
	shapes := map[string]int{}
	for _, e := range parse(t, page) {
		if slices.Contains([]string{"h1", "h2", "summary", "figcaption"}, e.name) || e.attrs["class"] == "facts" {
			parts = append(parts, e.name+" "+strings.Join(strings.Fields(e.text), " "))
		}
		if kind, _, _ := strings.Cut(e.attrs["class"], " "); kind == "s" || kind == "m" {
			shapes[kind]++
		}
	}
	if diff := cmp.Diff([]string{
		"h1 small FAILED",
		"p 40.0 s · 2 tasks · 285 requests answered, 3 lost · 2 faults · stop order reverse · seed 7 · " +
			"started 2026-01-02T03:04:05Z",
		"h2 The run", "summary Steps (4)", "summary Faults (2)", "summary Traffic (1)", "summary All other events",
		"summary Requests by second", "h2 Legend",
		"h2 api-1",
		"p 0123456789abcdef0123456789abcdef 10.0.0.4 STOPPED UserInitiated: Task stopped by user",
		"figcaption Start T0 is 1.00 s into the run", "figcaption Stop T0 is 31.00 s into the run",
		"summary All 45 events of api-1",
		"h2 batch-1",
		"p b1 10.0.0.9 STOPPED EssentialContainerExited: Essential container in task exited",
		"figcaption Start T0 is 2.00 s into the run", "figcaption Stop T0 is 18.10 s into the run",
		"figcaption From start to stop seconds since its T0", "summary All 8 events of batch-1",
	}, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"s": 285, "m": 44}, shapes); diff != "" {
		t.Errorf("segments and marks (-want +got):\n%s", diff)
	}
}

func TestNoTextsOverlap(t *testing.T) {
	t.Parallel()
	for _, run := range []view.RecordedRun{small(), many(), tiny()} {
		type box struct {
			x1, y1, x2, y2 float64
			text           string
		}
		boxes, widths, texts := map[int][]box{}, map[int]float64{}, 0
		for _, e := range parse(t, html(t, run)) {
			number := func(name string) float64 {
				n, err := strconv.ParseFloat(e.attrs[name], 64)
				if err != nil {
					t.Fatalf("%s %q: %v", name, e.text, err)
				}
				return n
			}
			if e.name == "svg" {
				widths[e.svg] = number("width")
			}
			if e.name != "text" {
				continue
			}
			texts++
			// Not what the sheet thinks: every letter as wide as it is on average.
			size := number("font-size")
			w := 0.52 * size * float64(len([]rune(e.text)))
			b := box{number("x"), number("y") - 0.76*size, 0, number("y") + 0.2*size, e.text}
			switch e.attrs["text-anchor"] {
			case "middle":
				b.x1 -= w / 2
			case "end":
				b.x1 -= w
			}
			b.x2 = b.x1 + w
			for _, other := range boxes[e.svg] {
				beside, above := b.x1 >= other.x2 || other.x1 >= b.x2, b.y1 >= other.y2 || other.y1 >= b.y2
				if !beside && !above {
					t.Errorf("%s, picture %d: %q overlaps %q", run.Scenario, e.svg, b.text, other.text)
				}
			}
			if b.x1 < -0.5 || b.x2 > widths[e.svg]+2 {
				t.Errorf("%s, picture %d: %q reaches out of it", run.Scenario, e.svg, b.text)
			}
			boxes[e.svg] = append(boxes[e.svg], b)
		}
		if texts < 10 {
			t.Errorf("%s: %d texts", run.Scenario, texts)
		}
	}
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

func TestMarksAreInThePictures(t *testing.T) {
	t.Parallel()
	classes := map[string]int{}
	for _, e := range parse(t, html(t, small())) {
		classes[e.attrs["class"]]++
		image := e.attrs["role"] == "img"
		if described := image || e.attrs["aria-hidden"] != ""; described != (e.name == "svg") {
			t.Errorf("a picture without a role, or a role without a picture: %v", e)
		}
		if image && e.attrs["aria-label"] == "" {
			t.Errorf("a picture without a name: %v", e)
		}
		for _, name := range []string{"src", "href"} {
			if link := e.attrs[name]; link != "" && !strings.HasPrefix(link, "#") {
				t.Errorf("the page needs %s", link)
			}
		}
		if e.name == "script" || e.name == "link" {
			t.Errorf("an element %s", e.name)
		}
		if e.name == "image" {
			t.Errorf("an element %s", e.name)
		}
	}
	// The legend has one of each; what was not in the run has no other.
	for class, want := range map[string]bool{
		"m term": true, "m kill": true, "m again": true, "m badexit": true, "m exit": true, "m sick": false,
		"s waiting": true, "s unknown": true, "s up": true, "s healthy": true, "s unhealthy": true, "s warning": false,
		"s held":     true,
		"s answered": true, "s lost": true, "s fault": true, "s step error": true, "s out": true,
	} {
		if class == "s step error" {
			classes[class]++
		}
		if got := classes[class] > 1; got != want {
			t.Errorf("%q is there %d times", class, classes[class])
		}
	}
}

func TestDurationsAreInWords(t *testing.T) {
	t.Parallel()
	var words []string
	for _, e := range parse(t, html(t, small())) {
		if slices.Contains([]string{"dd", "span", "text"}, e.name) {
			words = append(words, e.text)
		}
	}
	for _, want := range []string{
		"mesh-init 0.65 s", "in traffic after T0 11.1 s", "TERM to its last answer 0.40 s", "TERM to STOPPED 5.20 s",
		"the application starts 6.00 s",
		"T1 0.80 s", "0.65 s, exit 0", "gone +2.00 s, exit 0", "logged out +2.30 s",
	} {
		if !slices.Contains(words, want) {
			t.Errorf("nowhere %q", want)
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
		Tasks: []view.RecordedTask{{Name: a, ID: b, Address: a, Application: b,
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

func TestTextOfTheSheetFitsItsStatedWidth(t *testing.T) {
	t.Parallel()
	// Widths of DejaVu Sans in thousandths of the size, from its file.
	for text, want := range map[string]float64{"mesh-init": 4.833, "10.0 s": 3.065, "WWW": 2.967, "iiii": 1.112} {
		if got := view.FontSize(1).Width(text); got < want || got > want*1.35 {
			t.Errorf("%q: %g, the font has %g", text, got, want)
		}
	}
}
