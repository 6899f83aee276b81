package file_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

type animal struct {
	Name string         `yaml:"name"`
	Age  *time.Duration `yaml:"age"`
	Legs int            `yaml:"legs"`
	Walk time.Duration  `yaml:"walk" negative:"home"`
	Nap  time.Duration  `yaml:"nap" zero:"leave it out for one that never sleeps"`
}

type zoo struct {
	Animals map[string][]animal `yaml:"animals"`
	Open    bool                `yaml:"open"`
	Hidden  string              `yaml:"-"`
}

func noForeigner([]string) string { return "" }

func TestUnmarshalOverwritesExistingValues(t *testing.T) {
	t.Parallel()
	z := zoo{Open: true, Hidden: "x"}
	if err := file.Unmarshal([]byte("animals: {cats: [{name: Tom, age: 90s}]}\n"), &z, noForeigner); err != nil {
		t.Fatal(err)
	}
	age := 90 * time.Second
	if d := cmp.Diff(zoo{Animals: map[string][]animal{"cats": {{Name: "Tom", Age: &age}}}, Open: true, Hidden: "x"},
		z); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"":                      "line 1, column 1: the file is empty",
		"# a\n":                 "it contains only comments",
		"open: true\n---\n{}\n": "line 3: a second document begins here: want one",
		"menu: x\n":             "that is a restaurant",
		"opne: true\nanimals: {cats: [{nam: Tom}, {age: 5}]}\n": "line 1, column 1: unknown key \"opne\"; did you " +
			"mean \"open\"?\n" +
			"line 2, column 19: unknown key \"nam\"; did you mean \"name\"?\n" +
			"line 2, column 36: want a duration such as 60s, got 5",
		"animals: {cats: [{nap: 0s, age: 0s}, {nap: 0}, {nap: 1s}, {nap: x}]}\n": "line 1, column 24: nap: 0s: leave " +
			"it out for one that never sleeps\n" +
			"line 1, column 44: nap: 0: leave it out for one that never sleeps\n" +
			"line 1, column 65: want a duration such as 60s, got x",
		"animals: {cats: [{nap: -1s, age: -1s, walk: -1s}]}\n": "line 1, column 24: nap: -1s: want 0s or more\nline " +
			"1, column 34: age: -1s: want 0s or more",
		"open: [1]\n":                       "line 1, column 7: want true or false, got a list",
		"Hidden: x\n":                       "line 1, column 1: unknown key \"Hidden\"; known here: animals, open",
		"animals: {cats: [{legs: four}]}\n": "line 1, column 25: want a number, got a string",
	} {
		got := ""
		err := file.Unmarshal([]byte(document), &zoo{}, func(keys []string) string {
			if keys[0] == "menu" {
				return "that is a restaurant"
			}
			return ""
		})
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", document, d)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("animals: {cats: [{name: Tom, age: 90s}]}\n"))
	f.Add([]byte("a: &a {b: 1}\n<<: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var z zoo
		if err := file.Unmarshal(data, &z, noForeigner); err != nil && err.Error() == "" {
			t.Error("an error says nothing")
		}
	})
}
