package taskdef

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangedDocumentKeepsAllElse(t *testing.T) {
	t.Parallel()
	const doc = "{\"zeta\" : 1.50, \"family\":\"a\\u0062<&\",\n\t\"containerDefinitions\": [ {\"name\": \"app\", " +
		"\"memory\": 64, \"image\": \"é\"} ], \"cpu\": \"256\"}\r\n"
	d, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Bytes()); got != doc {
		t.Errorf("unchanged, it is written as %q", got)
	}
	before, _ := Parse([]byte(doc))
	d.Task.Set("taskRoleArn", NewNode("<role>"))
	d.Task.Delete("cpu")
	d.Task.Get("containerDefinitions").Append(NewNode(Container{Name: "proxy", Image: "envoy"}))
	d.Task.Get("containerDefinitions").Items()[0].Set("image", &Node{scalar: `"web"`})
	const want = `{
  "zeta": 1.50,
  "family": "a\u0062<&",
  "containerDefinitions": [
    {
      "name": "app",
      "memory": 64,
      "image": "web"
    },
    {
      "name": "proxy",
      "image": "envoy"
    }
  ],
  "taskRoleArn": "<role>"
}
`
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	err = d.Refresh()
	if diff := cmp.Diff([]any{nil, 2, ""}, []any{err, len(d.Definition.ContainerDefinitions), d.Definition.CPU}); diff != "" {
		t.Errorf("error, containers and CPU after the change (-want +got):\n%s", diff)
	}
	const unified = `--- before
+++ after
@@ -5,8 +5,12 @@
     {
       "name": "app",
       "memory": 64,
-      "image": "é"
+      "image": "web"
+    },
+    {
+      "name": "proxy",
+      "image": "envoy"
     }
   ],
-  "cpu": "256"
+  "taskRoleArn": "<role>"
 }
`
	if diff := cmp.Diff(unified, Diff(before, d)); diff != "" {
		t.Errorf("unified (-want +got):\n%s", diff)
	}
	const patch = `[
  {
    "op": "replace",
    "path": "/containerDefinitions/0/image",
    "value": "web"
  },
  {
    "op": "add",
    "path": "/containerDefinitions/-",
    "value": {
      "name": "proxy",
      "image": "envoy"
    }
  },
  {
    "op": "remove",
    "path": "/cpu"
  },
  {
    "op": "add",
    "path": "/taskRoleArn",
    "value": "<role>"
  }
]
`
	if diff := cmp.Diff(patch, string(Patch(before, d))); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if empty := Patch(before, before); string(empty) != "[]\n" || Diff(before, before) != "" {
		t.Errorf("equal documents: %q", empty)
	}
}

func TestPatchOfEachKindOfChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{"a/b": {"~": 1}}`, `{"a/b": {"~": 2}}`, `[{"op":"replace","path":"/a~1b/~0","value":2}]`},
		{`{"a": [1, 2, 3, 4]}`, `{"a": [1, 5]}`,
			`[{"op":"replace","path":"/a/1","value":5},{"op":"remove","path":"/a/3"},{"op":"remove","path":"/a/2"}]`},
		{`{"a": []}`, `{"a": [[1], null]}`,
			`[{"op":"add","path":"/a/-","value":[1]},{"op":"add","path":"/a/-","value":null}]`},
		{`{"a": null, "b": 1}`, `{"b": null}`,
			`[{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":null}]`},
		{`{"a": {"b": 1}, "c": [1]}`, `{"a": [1], "c": {}}`,
			`[{"op":"replace","path":"/a","value":[1]},{"op":"replace","path":"/c","value":{}}]`},
		{`{"a": 1, "b": 2}`, `{"b": 2, "a": 1}`, `[]`},
	} {
		before, _ := readNode([]byte(c.before))
		after, _ := readNode([]byte(c.after))
		var got bytes.Buffer
		err := json.Compact(&got, Patch(&Document{Root: before}, &Document{Root: after}))
		if err != nil || got.String() != c.want {
			t.Errorf("%s to %s: %s, %v, want %s", c.before, c.after, &got, err, c.want)
		}
	}
}
