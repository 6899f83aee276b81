package taskdef

import "testing"

func TestLineOfAPath(t *testing.T) {
	t.Parallel()
	const doc = `{
  "family": "web",

  "containerDefinitions": [
    {"name": "a"},
    {
      "name": "b", "dockerLabels": {
        "x.y/z": "1"}
    }
  ]
}`
	d, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	y := parseYAML(t, yamlTemplate)
	for _, c := range []struct {
		d    *Document
		path string
		want int
	}{
		{d, "$", 1}, {d, "$.family", 2}, {d, "$.containerDefinitions", 4}, {d, "$.containerDefinitions[1].name", 7},
		{d, `$.containerDefinitions[1].dockerLabels["x.y/z"]`, 8}, {d, "$.containerDefinitions[1].user", 6},
		{d, "$.containerDefinitions[7].user", 4}, {d, "$.volumes[0]", 1},
		{y, "$.Resources.Web.Properties.Memory", 15},
		{y, "$.Resources.Web.Properties.ContainerDefinitions[0].Environment[1].Value", 36},
	} {
		if got := c.d.Line(c.path); got != c.want {
			t.Errorf("%s is on line %d, want %d", c.path, got, c.want)
		}
	}
}
