package taskdef

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangedDocumentKeepsAllElse(t *testing.T) {
	t.Parallel()
	const doc = "{\"zeta\" : 1.50, \"family\":\"a\\u0062<&\",\n\t\"containerDefinitions\": [ {\"name\": \"app\", \"memory\": 64, \"image\": \"é\"} ], \"cpu\": \"256\"}\r\n"
	d, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Bytes()); got != doc {
		t.Errorf("unchanged, it is written as %q", got)
	}
	before, _ := Parse([]byte(doc))
	role, err := NewNode("<role>")
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := NewNode(Container{Name: "proxy", Image: "envoy"})
	if err != nil {
		t.Fatal(err)
	}
	d.Task.Set("taskRoleArn", role)
	d.Task.Delete("cpu")
	d.Task.Get("containerDefinitions").Append(sidecar)
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
	if err := d.Refresh(); err != nil || len(d.Definition.ContainerDefinitions) != 2 || d.Definition.CPU != "" {
		t.Errorf("after the change: %+v, %v", d.Definition, err)
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
    "value": "web",
    "op": "replace",
    "path": "/containerDefinitions/0/image"
  },
  {
    "value": {
      "image": "envoy",
      "name": "proxy"
    },
    "op": "add",
    "path": "/containerDefinitions/-"
  },
  {
    "op": "remove",
    "path": "/cpu"
  },
  {
    "value": "\u003crole\u003e",
    "op": "add",
    "path": "/taskRoleArn"
  }
]
`
	got, err := Patch(before, d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(patch, string(got)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if empty, err := Patch(before, before); err != nil || string(empty) != "[]\n" || Diff(before, before) != "" {
		t.Errorf("equal documents: %q %v", empty, err)
	}
}
