package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// template returns a template's properties with members of its container.
func template(task, app string) []byte {
	return fmt.Appendf(nil,
		`{"NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", "Memory": "1024", %s
		"ContainerDefinitions": [{"Name": "app", "Image": "app", "EntryPoint": ["/app"], "PortMappings": [{"ContainerPort": 80}], %s}, {"Fn::If": ["C", {"Name": "two", "Image": "two", "DockerLabels": {"team": "shop"}}, {"Ref": "AWS::NoValue"}]}]}`, task, app)
}

func TestAnnotationThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	const at = "ADM-ANN-VALUE $.ContainerDefinitions[0].DockerLabels"
	for name, c := range map[string]struct{ task, app, want string }{
		"value": {"", `"DockerLabels": {"consul.hashicorp.com/service-name": {"Ref": "Name"}}`,
			at + `["consul.hashicorp.com/service-name"]`},
		"policies": {"", `"DockerLabels": {"consul.hashicorp.com/policies": {"Fn::Sub": "global-management"}}`,
			at + `["consul.hashicorp.com/policies"]`},
		"labels": {"", `"DockerLabels": {"Fn::If": ["C", {"consul.hashicorp.com/policies": "ops"}, {}]}`,
			at + `.Fn::If[1]["consul.hashicorp.com/policies"]`},
		"container": {"", `"Essential": true}, {"Fn::If": ["C", {"Name": "b", "DockerLabels": {"consul.hashicorp.com/policies": "ops"}}, {"Ref": "AWS::NoValue"}]`, `ADM-ANN-VALUE $.ContainerDefinitions[1].Fn::If[1].DockerLabels["consul.hashicorp.com/policies"]`},
		"tag": {`"Tags": [{"Key": "consul.hashicorp.com/mesh-inject", "Value": {"Ref": "Inject"}}],`,
			`"Essential": true`, "ADM-ANN-VALUE $.Tags[0]"},
		"tags": {`"Tags": {"Fn::If": ["C", [{"Key": "consul.hashicorp.com/policies", "Value": "ops"}], []]},`,
			`"Essential": true`, "ADM-ANN-VALUE $.Tags.Fn::If[1][0]"},
		"dynamic": {"", `"DockerLabels": {"consul.hashicorp.com/service-name": "{{resolve:ssm:/web/name}}"}`,
			at + `["consul.hashicorp.com/service-name"]`},
		"tag, dynamic": {`"Tags": [{"Key": "consul.hashicorp.com/mesh-inject", "Value": "{{resolve:ssm:inject:1}}"}],`,
			`"Essential": true`, "ADM-ANN-VALUE $.Tags[0]"},
		"no value": {`"Tags": [{"Key": "consul.hashicorp.com/mesh"}],`, `"Essential": true`, ""},
		"no annotation": {`"Tags": [{"Key": "team", "Value": {"Ref": "Team"}}],`,
			`"DockerLabels": {"team": {"Ref": "Team"}, "consul.hashicorp.com/service-name": "web"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, template(c.task, c.app), parseMesh(t, []byte(plainMesh)))
			got := slices.DeleteFunc(codesAndPaths(r), func(at string) bool { return at[:12] == codeComputed })
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("findings %q, want %q", text, c.want)
			}
		})
	}
}

// Policies for the token broker may be among what is known at deployment only, with the mesh and without.
func TestHiddenNamesOfAnnotationsAreRefused(t *testing.T) {
	t.Parallel()
	const transform = `"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://bucket/file"}}`
	const none, label, app = `{"Ref": "AWS::NoValue"}`, `{"consul.hashicorp.com/policies": "ops"}`, `"Essential": true`
	const labels, tags = "$.ContainerDefinitions[0].DockerLabels", "$.Tags"
	for name, c := range map[string]struct{ task, app, want string }{
		"labels by Ref":           {"", `"DockerLabels": {"Ref": "Labels"}`, labels},
		"labels by Transform":     {"", `"DockerLabels": {` + transform + `}`, labels},
		"labels beside Transform": {"", `"DockerLabels": {"team": "shop", ` + transform + `}`, labels},
		"labels by FindInMap":     {"", `"DockerLabels": {"Fn::FindInMap": ["A", "B", "C"]}`, labels},
		"labels by GetAtt":        {"", `"DockerLabels": {"Fn::GetAtt": ["A", "Labels"]}`, labels},
		"labels by a loop": {"",
			`"DockerLabels": {"Fn::ForEach::L": ["X", ["policies"], {"consul.hashicorp.com/${X}": "ops"}]}`, labels},
		"labels by a text": {"", `"DockerLabels": "{{resolve:ssm:labels}}"`, labels},
		"labels within If": {"", `"DockerLabels": {"Fn::If": ["C", {"team": "shop"}, {"Ref": "Labels"}]}`,
			labels + ".Fn::If[2]"},
		"labels within two": {"", `"DockerLabels": {"Fn::If": ["C", {"Fn::If": ["D", {` + transform + `}, ` +
			none + `]}, {}]}`, labels + ".Fn::If[1].Fn::If[1]"},
		"labels beside If":      {"", `"DockerLabels": {"Fn::If": ["C", {}, {}], ` + transform + `}`, labels},
		"labels of a bad If":    {"", `"DockerLabels": {"Fn::If": ["C", {}]}`, labels},
		"member of a container": {"", transform, "$.ContainerDefinitions[0]"},
		"loop in a container": {"", `"Fn::ForEach::L": ["X", ["DockerLabels"], {"${X}": ` + label + `}]`,
			"$.ContainerDefinitions[0]"},
		"container by Ref":       {"", app + `}, {"Ref": "Container"`, "$.ContainerDefinitions[1]"},
		"container by Transform": {"", app + `}, {` + transform, "$.ContainerDefinitions[1]"},
		"container within If": {"", app + `}, {"Fn::If": ["C", {"Ref": "Container"}, ` + none + `]`,
			"$.ContainerDefinitions[1].Fn::If[1]"},
		"labels of another": {"", app + `}, {"Fn::If": ["C", {"Name": "b", "DockerLabels": {"Ref": "L"}}, ` +
			none + `]`, "$.ContainerDefinitions[1].Fn::If[1].DockerLabels"},
		"tags by Ref":      {`"Tags": {"Ref": "Tags"},`, app, tags},
		"tags within If":   {`"Tags": {"Fn::If": ["C", {"Ref": "Tags"}, []]},`, app, tags + ".Fn::If[1]"},
		"tag by Ref":       {`"Tags": [{"Ref": "Tag"}],`, app, tags + "[0]"},
		"tag by Transform": {`"Tags": [{` + transform + `}],`, app, tags + "[0]"},
		"member of a tag":  {`"Tags": [{"Value": "x", ` + transform + `}],`, app, tags + "[0]"},
		"tag within If": {`"Tags": [{"Fn::If": ["C", {"Ref": "Tag"}, ` + none + `]}],`, app,
			tags + "[0].Fn::If[1]"},
		"key by Ref": {`"Tags": [{"Key": {"Ref": "Key"}, "Value": "ops"}],`, app, tags + "[0].Key"},
		"key by Sub": {`"Tags": [{"Key": {"Fn::Sub": "consul.hashicorp.com/policies"}, ` +
			`"Value": "ops"}],`, app, tags + "[0].Key"},
		"key by a dynamic reference": {`"Tags": [{"Key": "{{resolve:ssm:key}}", "Value": "ops"}],`, app,
			tags + "[0].Key"},
		"key within If": {`"Tags": [{"Key": {"Fn::If": ["C", "team", {"Ref": "Key"}]}, "Value": "ops"}],`, app,
			tags + "[0].Key.Fn::If[2]"},
		"properties":    {transform + ",", app, "$"},
		"chosen labels": {"", `"DockerLabels": {"Fn::If": ["C", {"team": "shop"}, ` + none + `]}`, ""},
		"chosen container": {"", app + `}, {"Fn::If": ["C", {"Name": "b", "DockerLabels": {"team": "shop"}}, ` +
			none + `]`, ""},
		"chosen tags": {`"Tags": {"Fn::If": ["C", [{"Key": "team", "Value": "shop"}], ` + none + `]},`, app,
			""},
		"chosen key":             {`"Tags": [{"Key": {"Fn::If": ["C", "team", "group"]}, "Value": "shop"}],`, app, ""},
		"value of another label": {"", `"DockerLabels": {"team": {"Ref": "Team"}}`, ""},
		"no labels":              {"", `"DockerLabels": ` + none, ""},
	} {
		for _, mesh := range []*Mesh{nil, parseMesh(t, []byte(plainMesh))} {
			var got []string
			r := admitAll(t, template(c.task, c.app), mesh)
			for _, f := range r.Findings {
				if f.Code == codeAnnHidden {
					got = append(got, f.Path)
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%s, mesh %v: hidden at %q, want %q", name, mesh != nil, text, c.want)
			}
			if c.want != "" && !r.Rejected(false) {
				t.Errorf("%s, mesh %v: the definition is not rejected", name, mesh != nil)
			}
		}
	}
}

// A tag whose key is chosen may be an annotation.
func TestChosenKeyOfAnAnnotationIsRefused(t *testing.T) {
	t.Parallel()
	r := admitAll(t, template(`"Tags": [{"Key": {"Fn::If": ["C", "team", "consul.hashicorp.com/policies"]}, `+
		`"Value": "ops"}],`, `"Essential": true`), nil)
	if want := "ADM-ANN-VALUE $.Tags[0].Key.Fn::If[2]"; !slices.Contains(codesAndPaths(r), want) {
		t.Errorf("findings %v, want %s", r.Findings, want)
	}
}

// A macro around the properties may write what it likes into them.
func TestMacrosAroundADefinitionAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ root, resources, resource, want string }{
		"none":  {"", "", "", ""},
		"AWS's": {`"Transform": "AWS::LanguageExtensions",`, "", "", ""},
		"AWS's, a list": {`"Transform": ["AWS::LanguageExtensions", "AWS::Serverless-2016-10-31"],`, "", "",
			""},
		"of the template": {`"Transform": "Labels",`, "", "", "$.Transform"},
		"one of them":     {`"Transform": ["AWS::LanguageExtensions", "Labels"],`, "", "", "$.Transform"},
		"AWS's for any text": {`"Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://b/t.json"}},`,
			"", "", "$.Transform"},
		"among AWS's": {`"Transform": ["AWS::LanguageExtensions", {"Name": "AWS::Include", "Parameters": ` +
			`{"Location": "s3://b/t.json"}}],`, "", "", "$.Transform"},
		"with parameters": {`"Transform": [{"Name": "Labels", "Parameters": {"A": "b"}}],`, "", "",
			"$.Transform"},
		"an object":             {`"Transform": {"Name": "Labels"},`, "", "", "$.Transform"},
		"beside the resources":  {`"Fn::Transform": {"Name": "Labels"},`, "", "", "$.Fn::Transform"},
		"among the resources":   {"", `"Fn::Transform": {"Name": "Labels"},`, "", "$.Resources.Fn::Transform"},
		"beside the properties": {"", "", `"Fn::Transform": {"Name": "Labels"},`, "$.Resources.Task.Fn::Transform"},
		"of another resource": {"", `"Other": {"Type": "AWS::S3::Bucket", "Fn::Transform": {"Name": "Labels"}},`, "",
			""},
	} {
		doc := fmt.Sprintf(`{%s "Resources": {%s "Task": {%s "Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [{"Name": "app", "Image": "app", "Memory": 64}]}}}}`, c.root, c.resources, c.resource)
		var got []string
		for _, f := range admitAll(t, []byte(doc), nil).Findings {
			if f.Code == codeAnnHidden {
				got = append(got, f.Path)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: hidden at %q, want %q", name, text, c.want)
		}
	}
}

// Terraform's templatefile may make the name of a label.
func TestRenderedNamesOfLabelsAreRefused(t *testing.T) {
	t.Parallel()
	for label, refused := range map[string]bool{"${label}": true, "consul.hashicorp.com/${name}": true,
		"%{ if x }consul.hashicorp.com/policies%{ endif }": true, "team": false} {
		r := admitAll(t, fmt.Appendf(nil,
			`[{"name": "app", "image": "app", "memory": 64, "dockerLabels": {%q: "ops"}}]`, label), nil)
		if got := r.Rejected(false); got != refused {
			t.Errorf("%s: refused %v, findings %v", label, got, r.Findings)
		}
	}
}

// Without the mesh only the token broker reads annotations.
func TestComputedAnnotationThatDoesNotCountIsAccepted(t *testing.T) {
	t.Parallel()
	const inject, labels = `"consul.hashicorp.com/mesh-inject": `,
		`"DockerLabels": {"consul.hashicorp.com/service-name": {"Ref": "Name"}`
	mesh := parseMesh(t, []byte(plainMesh))
	for name, c := range map[string]struct {
		labels string
		mesh   *Mesh
		want   []string
	}{
		"no mesh":      {labels + `}`, nil, []string{"ADM-NOT-INJECTED $"}},
		"not injected": {labels + `, ` + inject + `"false"}`, mesh, nil},
		"injected": {labels + `, ` + inject + `"true"}`, nil,
			[]string{`ADM-ANN-VALUE $.ContainerDefinitions[0].DockerLabels["consul.hashicorp.com/service-name"]`}},
		"inject": {labels + `, ` + inject + `{"Ref": "Inject"}}`, nil, []string{"ADM-NOT-INJECTED $",
			`ADM-ANN-VALUE $.ContainerDefinitions[0].DockerLabels["consul.hashicorp.com/mesh-inject"]`}},
		"broker": {labels + `, ` + inject + `"false", "consul.hashicorp.com/policies": {"Ref": "Policies"}}`, mesh,
			[]string{`ADM-ANN-VALUE $.ContainerDefinitions[0].DockerLabels["consul.hashicorp.com/policies"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := slices.DeleteFunc(codesAndPaths(admit(t, template("", c.labels), c.mesh)), func(at string) bool {
				return !strings.HasPrefix(at, codeNotInjected) && !strings.HasPrefix(at, codeAnnValue)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

func TestComputedStopTimeoutIsReported(t *testing.T) {
	t.Parallel()
	r := admit(t, template("", `"StopTimeout": {"Ref": "Stop"}`), parseMesh(t, []byte(plainMesh)))
	const want = "info ADM-COMPUTED $.ContainerDefinitions[0].StopTimeout: the stop timeout of this container is " +
		"known at deployment only: the containers of the mesh have 45 s to stop"
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.String() == want }) {
		t.Errorf("findings %v, want %s", r.Findings, want)
	}
}

// An application that is wrapped without the mount, or before the program is copied, does
// not start.
func TestConditionalListsGetWhatAnApplicationNeeds(t *testing.T) {
	t.Parallel()
	const mount, edge = `{"SourceVolume":"consul_data","ContainerPath":"/consul","ReadOnly":true}`,
		`{"ContainerName":"consul-ecs-mesh-init","Condition":"SUCCESS"}`
	const none = `{"Ref": "AWS::NoValue"}`
	for name, c := range map[string]struct {
		key, value, want string
		wrapped          bool
	}{
		"mounts": {"MountPoints", `{"Fn::If": ["C", [{"SourceVolume": "data"}], ` + none + `]}`,
			`{"Fn::If":["C",[{"SourceVolume":"data"},` + mount + `],[` + mount + `]]}`, true},
		"mounted": {"MountPoints", `{"Fn::If": ["C", [` + mount + `], []]}`,
			`{"Fn::If":["C",[` + mount + `],[` + mount + `]]}`, true},
		"nested": {"DependsOn", `{"Fn::If": ["C", {"Fn::If": ["D", [], ` + none + `]}, []]}`,
			`{"Fn::If":["C",{"Fn::If":["D",[` + edge + `],[` + edge + `]]},[` + edge + `]]}`, true},
		"no value": {"DependsOn", none, `[` + edge + `]`, true},
		"computed mounts": {"MountPoints", `{"Fn::FindInMap": ["A", "B", "C"]}`, `{"Fn::FindInMap":["A","B","C"]}`,
			false},
		"computed branch": {"DependsOn", `{"Fn::If": ["C", ` + none + `, {"Fn::FindInMap": ["A", "B", "C"]}]}`,
			`{"Fn::If":["C",{"Ref":"AWS::NoValue"},{"Fn::FindInMap":["A","B","C"]}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mesh := parseMesh(t, []byte(plainMesh))
			r := admit(t, template(`"Volumes": `+none+`,`, fmt.Sprintf("%q: %s", c.key, c.value)), mesh)
			app := r.After.Task.Get("ContainerDefinitions").Items()[0]
			if got := app.Get(c.key).JSON(); string(got) != c.want {
				t.Errorf("%s %s, want %s", c.key, got, c.want)
			}
			if wrapped := len(app.Get("EntryPoint").Items()) > 1; wrapped != c.wrapped ||
				strings.Contains(fmt.Sprint(r.Findings), codeWrap) == c.wrapped {
				t.Errorf("wrapped %v, want %v, findings %v", wrapped, c.wrapped, r.Findings)
			}
			if volumes := r.After.Task.Get("Volumes").Items(); len(volumes) != 1 || r.Rejected(false) {
				t.Errorf("%d volumes, findings %v", len(volumes), r.Findings)
			}
			if again := admit(t, r.After.Bytes(), mesh); string(again.After.Bytes()) != string(r.After.Bytes()) {
				t.Errorf("admitted again %s", again.After.Bytes())
			}
		})
	}
}

// Fn::Transform stands beside members of its object, and may add others.
func TestComputedPropertiesAreRefused(t *testing.T) {
	t.Parallel()
	transform := `"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://bucket/file"}}`
	mesh := parseMesh(t, []byte(plainMesh))
	if r := admit(t, template(transform+",", `"Essential": true`), mesh); !slices.Equal(codesAndPaths(r),
		[]string{"ADM-ANN-HIDDEN $", "ADM-CONTAINERS $"}) {
		t.Errorf("findings %v", r.Findings)
	}
}

// A port of UDP is not the service's, computed or not.
func TestComputedUDPPortIsPassedOver(t *testing.T) {
	t.Parallel()
	r := admit(t, template("", `"PortMappings": [{"ContainerPort": {"Ref": "Port"}, "Protocol": "udp"}, `+
		`{"ContainerPort": 81}]`), parseMesh(t, []byte(plainMesh)))
	if text := strings.ReplaceAll(string(r.After.Bytes()), `\`, ""); !strings.Contains(text, `"port":81}`) {
		t.Errorf("not the port of TCP: %s", text)
	}
}

// A branch of Fn::If is what ECS gets of a health check or of its startPeriod.
func TestConditionalHealthCheckAllowsForTheStart(t *testing.T) {
	t.Parallel()
	const at = "$.ContainerDefinitions[0].HealthCheck"
	const check, none = `{"Command": ["CMD", "/check"]%s}`, `{"Ref": "AWS::NoValue"}`
	for name, c := range map[string]struct{ check, want, findings string }{
		"check": {
			`{"Fn::If": ["C", ` + fmt.Sprintf(check, "") + `, ` + none + `]}`,
			`{"Fn::If":["C",{"Command":["CMD","/check"],"StartPeriod":60},{"Ref":"AWS::NoValue"}]}`,
			codeDefault + " " + at + ".Fn::If[1]",
		},
		"nested check": {
			`{"Fn::If": ["C", ` + none + `, {"Fn::If": ["D", ` + fmt.Sprintf(check, `, "StartPeriod": "30"`) +
				`, {"Command": ["NONE"]}]}]}`,
			`{"Fn::If":["C",{"Ref":"AWS::NoValue"},{"Fn::If":["D",{"Command":["CMD","/check"],"StartPeriod":"30"},{"Command":["NONE"]}]}]}`,
			codeHealthStart + " " + at + ".Fn::If[2].Fn::If[1].StartPeriod",
		},
		"period": {
			fmt.Sprintf(check, `, "StartPeriod": {"Fn::If": ["C", 10, 90]}`),
			`{"Command":["CMD","/check"],"StartPeriod":{"Fn::If":["C",10,90]}}`,
			codeHealthStart + " " + at + ".StartPeriod.Fn::If[1]",
		},
		"absent period": {
			fmt.Sprintf(check, `, "StartPeriod": {"Fn::If": ["C", 90, `+none+`]}`),
			`{"Command":["CMD","/check"],"StartPeriod":{"Fn::If":["C",90,60]}}`,
			codeDefault + " " + at,
		},
		"computed command": {
			`{"Command": {"Fn::If": ["C", ["CMD", "/check"], ["NONE"]]}}`,
			`{"Command":{"Fn::If":["C",["CMD","/check"],["NONE"]]},"StartPeriod":60}`,
			codeDefault + " " + at,
		},
		"computed": {`{"Fn::FindInMap": ["A", "B", "C"]}`, `{"Fn::FindInMap":["A","B","C"]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mesh := parseMesh(t, []byte(plainMesh))
			r := admitAll(t, template("", `"HealthCheck": `+c.check), mesh)
			if got := string(r.After.Task.Get("ContainerDefinitions").Items()[0].Get(
				"HealthCheck").JSON()); got != c.want {
				t.Errorf("health check %s, want %s", got, c.want)
			}
			var found []string
			for _, f := range r.Findings {
				byDefault := f.Code == codeDefault && strings.Contains(f.Message, "startPeriod")
				if f.Code == codeHealthStart || byDefault {
					found = append(found, f.Code+" "+f.Path)
				}
			}
			if got := strings.Join(found, ", "); got != c.findings {
				t.Errorf("findings %q, want %q", got, c.findings)
			}
			if again := admit(t, r.After.Bytes(), mesh); string(again.After.Bytes()) != string(r.After.Bytes()) {
				t.Errorf("admitted again %s", again.After.Bytes())
			}
		})
	}
}

func TestConditionalHealthCheckGetsTheWordThatDockerNeeds(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]string{
		`{"Fn::If": ["C", {"Command": ["/check"]}, {"Ref": "AWS::NoValue"}]}`: codeHealth +
			" $.ContainerDefinitions[0].HealthCheck.Fn::If[1].Command",
		`{"Command": {"Fn::If": ["C", ["NONE"], ["/check", "-q"]]}}`: codeHealth +
			" $.ContainerDefinitions[0].HealthCheck.Command.Fn::If[2]",
	} {
		r := admitAll(t, template("", `"HealthCheck": `+check), parseMesh(t, []byte(plainMesh)))
		if got := string(r.After.Task.Get("ContainerDefinitions").Items()[0].Get(
			"HealthCheck").JSON()); !strings.Contains(got, `["CMD","/check"`) {
			t.Errorf("health check %s", got)
		}
		var found []string
		for _, f := range r.Findings {
			if f.Code == codeHealth {
				found = append(found, f.Code+" "+f.Path)
			}
		}
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("findings %q, want %q", got, want)
		}
	}
}
