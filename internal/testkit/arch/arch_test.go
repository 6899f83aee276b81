package arch

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// small returns a layout with one of everything.
func small() Layout {
	return Layout{
		Groups: []Group{
			{Name: "program", Packages: []string{"cmd/x"}, Uses: []string{"flows", "simulator"}},
			{
				Name:      "flows",
				Packages:  []string{"f1", "f2"},
				Among:     Never,
				Uses:      []string{"ports", "nouns"},
				Interface: 3,
			},
			{Name: "ports", Packages: []string{"p1", "p2"}, Among: Downwards, Uses: []string{"nouns"}},
			{Name: "nouns", Packages: []string{"n1", "n2"}, Among: Downwards, Pure: true},
			{Name: "simulator", Packages: []string{"sim"}, Among: Freely, Uses: []string{"rules"}},
			{Name: "rules", Packages: []string{"sim/rules"}, Pure: true},
			{
				Name:     "tests",
				Packages: []string{"kit", "p1/fake"},
				Among:    Freely,
				TestOnly: true,
				Uses:     []string{"ports"},
			},
		},
		Rules: []Rule{
			{
				Name:    "client",
				Import:  "example.org/api",
				Names:   []string{"NewClient"},
				Allowed: []string{"p2"},
				Why:     "why",
			},
			{Name: "environment", Import: "os", Names: []string{"Getenv"}, Allowed: []string{"n2"}, Why: "why"},
		},
		Fields: []Rule{
			{Name: "generation", Names: []string{"Generation"}, Allowed: []string{"p1", "n2"}, Why: "why"},
		},
		Bans:        []Ban{{Package: "f2", Imports: []string{"example.org/api", "m/p1"}, Why: "why"}},
		Unreachable: map[string]string{"cmd/x": "sim"},
		Depths:      []Depth{{From: "cmd/x", Most: 4}, {From: "sim", Within: "sim", Most: 2}},
	}
}

// check runs the small layout over files. Where a file has no package comment,
// it gets one.
func check(t *testing.T, h Layout, files map[string]string) []string {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, src := range files {
		if strings.HasSuffix(name, ".go") && !strings.Contains(src, "package ") {
			src = "// Package a is documented.\npackage a\n" + src
		}
		fsys[name] = &fstest.MapFile{Data: []byte(src)}
	}
	m, err := Load(fsys, "m")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range h.Check(m) {
		got = append(got, v.String())
	}
	return got
}

func TestCheck(t *testing.T) {
	t.Parallel()
	long := func(lines int) string { return strings.Repeat("//\n", lines) }
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"every allowed arrow": {files: map[string]string{
			"cmd/x/main.go":   "import _ \"m/f1\"",
			"f1/f1.go":        "import _ \"m/p1\"\nimport _ \"m/n1\"",
			"p1/p1.go":        "import _ \"m/p2\"\nimport _ \"m/n2\"",
			"p1/sub/sub.go":   "import _ \"m/p1\"", // below an entry is inside it
			"p2/p2.go":        "",
			"n1/n1.go":        "import _ \"m/n2\"",
			"n2/n2.go":        "",
			"sim/sim.go":      "import _ \"m/sim/a\"\nimport _ \"m/sim/rules\"",
			"sim/a/a.go":      "",
			"sim/rules/r.go":  "",
			"f1/f1_test.go":   "import _ \"m/kit\"\nimport _ \"m/p1/fake\"",
			"p2/p2_test.go":   "import _ \"m/p1\"", // a test against its neighbour
			"p1/fake/fake.go": "import _ \"m/p1\"\nimport _ \"m/kit\"",
			"kit/kit.go":      "",
		}},
		"upwards": {
			map[string]string{"n1/a.go": "import _ \"m/p1\"", "p1/a.go": ""},
			[]string{"n1/a.go:3: arrow: n1 imports p1: nouns may not import ports"},
		},
		"a test upwards": {
			map[string]string{"n1/a_test.go": "import _ \"m/p1\"", "p1/a.go": ""},
			[]string{"n1/a_test.go:3: arrow: n1 imports p1: nouns may not import ports"},
		},
		"from right to left": {
			map[string]string{"n2/a.go": "import _ \"m/n1\"", "n1/a.go": ""},
			[]string{"n2/a.go:3: arrow: n2 imports n1: it stands above"},
		},
		"flow to flow": {
			map[string]string{"f1/a.go": "import _ \"m/f2\"", "f2/a.go": ""},
			[]string{"f1/a.go:3: arrow: f1 imports f2: flows never import each other"},
		},
		"flow to flow in a test": {
			map[string]string{"f1/a_test.go": "import _ \"m/f2\"", "f2/a.go": ""},
			[]string{"f1/a_test.go:3: arrow: f1 imports f2: flows never import each other"},
		},
		"production to tests": {
			map[string]string{"f1/a.go": "import _ \"m/kit\"", "kit/a.go": ""},
			[]string{"f1/a.go:3: arrow: f1 imports kit: only tests may"},
		},
		"homeless package": {
			map[string]string{"new/a.go": ""},
			[]string{"new/a.go:1: arrow: package new is in no group: add it to the table"},
		},
		"import of a homeless package": {
			map[string]string{"f1/a.go": "import _ \"m/new\""},
			[]string{"f1/a.go:3: arrow: f1 imports new: it is in no group"},
		},
		"a name that only begins alike": {
			map[string]string{"p1x/a.go": ""},
			[]string{"p1x/a.go:1: arrow: package p1x is in no group: add it to the table"},
		},
		"ban": {
			map[string]string{"f2/a.go": "import _ \"m/p1\"\nimport _ \"example.org/api/v2\"", "p1/a.go": ""},
			[]string{"f2/a.go:3: ban: f2 imports m/p1: why", "f2/a.go:4: ban: f2 imports example.org/api/v2: why"},
		},
		"reach": {
			map[string]string{
				"cmd/x/main.go": "import _ \"m/sim\"", "sim/a.go": "import _ \"m/sim/b\"", "sim/b/b.go": "",
			},
			[]string{
				"cmd/x:0: reach: sim is linked in, through cmd/x", "cmd/x:0: reach: sim/b is linked in, through sim",
			},
		},
		"a test reaches nothing": {
			files: map[string]string{"cmd/x/main.go": "", "cmd/x/main_test.go": "import _ \"m/sim\"", "sim/a.go": ""},
		},
		"deep": {
			map[string]string{
				"cmd/x/main.go": "import _ \"m/f1\"", "f1/a.go": "import _ \"m/p1\"", "p1/a.go": "import _ \"m/p2\"",
				"p2/a.go": "import _ \"m/n1\"", "n1/a.go": "",
			},
			[]string{"cmd/x:0: depth: 5 packages in a chain of imports, at most 4: cmd/x > f1 > p1 > p2 > n1"},
		},
		"deep within a directory": {
			map[string]string{
				"sim/a.go": "import _ \"m/sim/b\"", "sim/b/b.go": "import _ \"m/sim/rules\"", "sim/rules/r.go": "",
			},
			[]string{"sim:0: depth: 3 packages in a chain of imports, at most 2: sim > sim/b > sim/rules"},
		},
		"complex": {
			map[string]string{
				"f1/a.go": "func simple(a, b bool) {\n" + strings.Repeat("if a && b {}\n", 7) +
					"}\nfunc intricate(a bool) {\n" + strings.Repeat("for a { switch { case a: default: } }\n", 7) +
					"func() { select { case <-c: default: } }()\n}",
				"f1/a_test.go": "func f(a bool) {\n" + strings.Repeat("if a {}\n", 20) + "}",
			},
			[]string{"f1/a.go:intricate:12: complexity: complexity 16, at most 15"},
		},
		"context in a struct": {
			map[string]string{
				"f1/a.go": "import \"context\"\ntype t struct { a int\nctx context.Context }\n" +
					"func f(ctx context.Context) {}",
				"f1/a_test.go": "import \"context\"\ntype t struct { ctx context.Context }",
				"kit/a.go":     "import \"context\"\ntype t struct { ctx context.Context }",
			},
			[]string{"f1/a.go:5: context: a context in a struct: pass it as an argument"},
		},
		"ruled name": {
			map[string]string{
				"f1/a.go": "import \"example.org/api\"\nvar c = api.NewClient()",
				"p2/a.go": "import \"example.org/api\"\nvar c = api.NewClient()",
			},
			[]string{"f1/a.go:4: client: example.org/api.NewClient: why"},
		},
		"ruled name as a value, under another name": {
			map[string]string{"f1/a.go": "import sys \"os\"\nvar get = sys.Getenv"},
			[]string{"f1/a.go:4: environment: os.Getenv: why"},
		},
		"another Getenv, and tests": {files: map[string]string{
			"f1/a.go":      "func f(os interface{ Getenv() }) { os.Getenv() }",
			"f1/a_test.go": "import \"os\"\nvar x = os.Getenv(\"X\")",
			"kit/a.go":     "import \"os\"\nvar x = os.Getenv(\"X\")",
			"n2/sub/a.go":  "",
		}},
		"dot import": {
			map[string]string{"f1/a.go": "import . \"os\"\nvar x = Getenv(\"X\")"},
			[]string{"f1/a.go:3: dot-import: \"os\": rules go by the package's name"},
		},
		"field": {
			map[string]string{
				"f1/a.go": "func f(c struct{ Generation int }) int { return c.Generation }",
				"p1/a.go": "func f(c struct{ Generation int }) int { return c.Generation }",
			},
			[]string{"f1/a.go:3: generation: .Generation: why"},
		},
		"impure import": {
			map[string]string{
				"n1/a.go": "import \"net/http\"\nimport \"math/rand/v2\"\nvar a, b = http.Get, rand.Int",
				"p1/a.go": "import _ \"net/http\"",
			},
			[]string{
				"n1/a.go:3: pure: net/http in a pure package: let the caller bring it",
				"n1/a.go:4: pure: math/rand/v2 in a pure package: let the caller bring it",
			},
		},
		"impure names": {
			map[string]string{"sim/rules/a.go": "import (\n\"net\"\n\"os\"\n\"time\"\n)\n" +
				"var a = time.Now()\nvar b = os.ReadFile\nvar c = net.Dial\nvar d = time.Second\n" +
				"var e = net.JoinHostPort\nvar f = os.Expand\n"},
			[]string{
				"sim/rules/a.go:8: pure: time.Now in a pure package: take the value, or now, as an argument",
				"sim/rules/a.go:9: pure: os.ReadFile in a pure package: take the value, or now, as an argument",
				"sim/rules/a.go:10: pure: net.Dial in a pure package: take the value, or now, as an argument",
			},
		},
		"init": {
			map[string]string{
				"f1/a.go": "func init() {}\ntype t int\nfunc (t) init() {}", "f1/a_test.go": "func init() {}",
			},
			[]string{
				"f1/a.go:3: init: init function: build it where it is needed",
				"f1/a_test.go:3: init: init function: build it where it is needed",
			},
		},
		"sleep": {
			map[string]string{
				"f1/a_test.go": "import \"time\"\nfunc f() { time.Sleep(time.Second) }",
				"f1/a.go":      "import \"time\"\nfunc g() { time.Sleep(time.Second) }",
			},
			[]string{"f1/a_test.go:4: sleep: time.Sleep in a test: wait for a condition"},
		},
		"log key": {
			map[string]string{"f1/a.go": "import \"net/http\"\nfunc f(log logger) {\nlog.Info(\"m\", \"key\", 1)\n" +
				"log.With(\"x\").Warn(\"m\", key, \"value\", \"other\", 2)\n" +
				"http.Error(w, \"text\", 500)\nlog.Info(\"m\")\nlog.Printf(\"m\", \"x\")\n}",
				"f1/a_test.go": "func f() { t.Error(\"m\", \"key\") }"},
			[]string{
				"f1/a.go:5: log-key: \"key\": keys of log lines are constants of logkey",
				"f1/a.go:6: log-key: \"other\": keys of log lines are constants of logkey",
			},
		},
		"long line": {
			map[string]string{
				"f1/a.go": "// " + strings.Repeat("–", 117) + "\n\t\t// " + strings.Repeat("x", 110) + "\n\t\t//" +
					strings.Repeat("x", 110),
				"f1/a_test.go": "// " + strings.Repeat("–", 118),
				"f1/c.go": "// Code generated by hand. DO NOT EDIT.\n// Package a.\npackage a\n// " +
					strings.Repeat("x", 118),
			},
			[]string{
				"f1/a.go:4: columns: 121 columns, at most 120", "f1/a_test.go:3: columns: 121 columns, at most 120",
			},
		},
		"comment of a function": {
			map[string]string{
				"f1/a.go": "// does f.\nfunc f() {}\n// g is one.\nfunc g() {}\n// h isolates.\nfunc h() {}\n" +
					"// i: why.\nfunc i() {}\n" +
					"// T is.\ntype T int\n// M was one.\nfunc (T) M() {}",
				"f1/a_test.go": "// What is so.\nfunc TestX() {}\n// TestY: why.\nfunc TestY() {}\n// x are.\n" +
					"func x() {}\n//go:noinline\nfunc y() {}",
			},
			[]string{
				"f1/a.go:4: comment: \"does\": begin with the name f",
				"f1/a.go:6: comment: \"g is\": say what it does",
				"f1/a.go:14: comment: \"M was\": say what it does",
				"f1/a_test.go:8: comment: \"x are\": say what it does",
			},
		},
		"condition of a test": {
			map[string]string{
				"f1/a_test.go": "func f() {\nif a && b {}\nif a && (b || !c) {}\n" +
					"if func() bool { return a && b && c }() {}\nx := a && b && c\n}",
				"f1/a.go": "func f() { if a && b && c {} }",
			},
			[]string{"f1/a_test.go:5: condition: a condition with 2 operators && and ||, at most 1"},
		},
		"many methods": {
			map[string]string{
				"f1/a.go":      strings.Repeat("func (t) m() {}\n", 29) + strings.Repeat("func (*u[X]) m() {}\n", 31),
				"f1/b.go":      "func (*t) m() {}",
				"f1/a_test.go": "func (t) m() {}",
			},
			[]string{"f1.u:0: methods: 31 methods, at most 30"},
		},
		"long package": {
			map[string]string{
				"f1/a.go": long(398), "f1/b.go": long(398), "f1/c.go": long(398), "f1/d.go": long(398),
				"f1/e.go": long(398), "f1/f.go": long(398), "f1/g.go": long(398), "f1/h.go": long(198), "f1/i.go": "",
				"f1/d_test.go": long(300), "f2/a.go": long(398),
			},
			[]string{"f1:0: package-size: 3002 production lines, at most 3000"},
		},
		"long function": {
			map[string]string{
				"f1/a.go":      "func short() {\n" + long(58) + "}\nfunc tall() {\n" + long(59) + "}\n",
				"f1/a_test.go": "func tall() {\n" + long(100) + "}\n",
			},
			[]string{"f1/a.go:tall:63: function-size: 61 lines, at most 60"},
		},
		"wide interface": {
			map[string]string{
				"f1/a.go": "type i interface { A(); B(); C(); D() }\ntype j interface { A(); B(); C() }",
				"p1/a.go": "type i interface { A(); B(); C(); D(); E(); F() }\ntype j interface { A(); B(); C(); D() }",
			},
			[]string{
				"f1/a.go:3: interface-size: i has 4 methods, at most 3",
				"p1/a.go:3: interface-size: i has 6 methods, at most 5",
			},
		},
		"undocumented": {
			map[string]string{
				"f1/a.go": "type T int\nfunc (T) M() {}\nfunc (T) Error() string { return \"\" }\nfunc F() {}\n" +
					"var V int\nconst C = 1\ntype t int\nfunc (t) M() {}\nfunc f() {}",
			},
			[]string{
				"f1/a.go:3: undocumented: T has no comment", "f1/a.go:4: undocumented: M has no comment",
				"f1/a.go:6: undocumented: F has no comment", "f1/a.go:7: undocumented: V has no comment",
				"f1/a.go:8: undocumented: C has no comment",
			},
		},
		"documented": {
			files: map[string]string{"f1/a.go": "// T is.\ntype T[A any] int\n// M does.\nfunc (*T[A]) M() {}\n" +
				"// Constants.\nconst (\n\tC = iota\n\tD\n)\nvar V int // V is.\n",
				"f1/a_test.go":  "type X int\nfunc F() {}",
				"cmd/x/main.go": "// Command x is.\npackage main\nfunc F() {}"},
		},
		"method of an undocumented generic": {
			map[string]string{
				"f1/a.go": "// T is.\ntype T[A, B any] int\nfunc (*T[A, B]) M() {}\ntype t[A any] int\n" +
					"func (t[A]) M() {}",
			},
			[]string{"f1/a.go:5: undocumented: M has no comment"},
		},
		"no package comment": {
			map[string]string{"f1/a.go": "package a\n", "f1/b.go": "package a\n", "f2/a_test.go": "package a\n"},
			[]string{"f1:0: undocumented: package f1 has no package comment"},
		},
		"testdata, hidden and nested modules are not ours": {files: map[string]string{
			"f1/testdata/a.go": "func init() {}", ".tools/a.go": "func init() {}", "tools/go.mod": "module x",
			"tools/a.go":   "func init() {}",
			"f1/notes.txt": "func init() {}",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, check(t, small(), tc.files)); d != "" {
				t.Errorf("violations (-want +got):\n%s", d)
			}
		})
	}
}

func TestExemptions(t *testing.T) {
	t.Parallel()
	files := map[string]string{"f1/a.go": "func init() {}\nfunc F() {}"}
	h := small()
	h.Exemptions = []Exemption{
		{Where: "f1/a.go", Rule: "init", Reason: "a reason"},
		{Where: "f1/a.go", Rule: "sleep", Reason: "a reason"},
		{Where: "f1/a.go", Rule: "undocumented"},
	}
	want := []string{
		"f1/a.go:0: sleep: this exemption is not needed any more",
		"f1/a.go:0: undocumented: an exemption wants a reason",
	}
	if d := cmp.Diff(want, check(t, h, files)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A package may have as many violations as its allowance says, in all its files.
func TestAllowances(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"f1/a.go": "// f is one.\nfunc f() {}",
		"f1/b.go": "// f is one.\nfunc f() {}",
		"f2/a.go": "// f is one.\nfunc f() {}",
		"n1/a.go": "// f is one.\nfunc f() {}\n// g is one.\nfunc g() {}",
		"n2/a.go": strings.Repeat("func (t) m() {}\n", 32),
	}
	l := small()
	l.Allowances = map[string]map[string]int{"comment": {"f1": 2, "n1": 1}, "methods": {"n2.t": 31}}
	want := []string{
		"f2/a.go:4: comment: \"f is\": say what it does",
		"n1:0: comment: 2 violations, at most 1 are allowed",
		"n2.t:0: methods: 32 methods, at most 31",
	}
	if d := cmp.Diff(want, check(t, l, files)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLoadRefusesWhatDoesNotParse(t *testing.T) {
	t.Parallel()
	_, err := Load(fstest.MapFS{"a.go": {Data: []byte("package")}}, "m")
	if err == nil || !strings.Contains(err.Error(), "a.go") {
		t.Errorf("got %v", err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	want := "| Group | Packages | Among themselves | May import |\n" +
		"|---|---|---|---|\n" +
		"| program | `cmd/x` | – | flows, simulator |\n" +
		"| flows | `f1` `f2` | never | ports, nouns |\n" +
		"| ports | `p1` `p2` | left imports right | nouns |\n" +
		"| nouns | `n1` `n2` | left imports right | nothing of ours |\n" +
		"| simulator | `sim` | – | rules |\n" +
		"| rules | `sim/rules` | – | nothing of ours |\n" +
		"| tests | `kit` `p1/fake` | free | ports; imported by tests only |\n"
	if d := cmp.Diff(want, small().Table()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
