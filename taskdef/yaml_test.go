package taskdef

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const yamlTemplate = `# A shop.
AWSTemplateFormatVersion: 2010-09-09

Parameters:
  Tag: {Type: String}   # of the image


Resources:
  Web:
    Type: AWS::ECS::TaskDefinition
    Properties:
      # The family is that of the stack.
      Family: !Ref AWS::StackName
      Cpu: "256"   # a quarter
      Memory: 512
      NetworkMode: awsvpc
      RequiresCompatibilities: [FARGATE]
      ContainerDefinitions:
        - Name: web
          Image: !Sub
            - "${Repo}:${Tag}"
            - {Repo: !GetAtt Repository.RepositoryUri}
          Command:
            - sh
            - -c
            - |
              # begin
              exec web
            - !Sub >
              {
                "a": 1
              }
          Environment:
            - {Name: PORT, Value: 8080}
            - Name: MODE # plain
              Value: 'on'
    # Kept below the properties.
    DeletionPolicy: Retain
  Repository: {Type: AWS::ECR::Repository}
`

func parseYAML(t *testing.T, text string) *Document {
	t.Helper()
	d, err := ParseTemplate([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestYAMLTemplateHasTheLongFormsOfFunctions(t *testing.T) {
	t.Parallel()
	d := parseYAML(t, yamlTemplate)
	got, _ := d.Task.Get("ContainerDefinitions").Items()[0].Get("Image").MarshalJSON()
	want := `{"Fn::Sub":["${Repo}:${Tag}",{"Repo":{"Fn::GetAtt":"Repository.RepositoryUri"}}]}`
	if string(got) != want {
		t.Errorf("image %s, want %s", got, want)
	}
	c := d.Definition.ContainerDefinitions[0]
	if diff := cmp.Diff([]any{"8080", "on", 0}, []any{c.Environment[0].Value, c.Environment[1].Value, len(d.Validate())}); diff != "" {
		t.Errorf("environment and violations (-want +got):\n%s", diff)
	}
	unknown := []string{
		"$.Resources.Web.Properties.ContainerDefinitions[0].Command[3]", "$.Resources.Web.Properties.ContainerDefinitions[0].Image",
		"$.Resources.Web.Properties.Family", "$.Resources.Web.Properties.Family",
	}
	if got := d.Unknown(); !cmp.Equal(got, unknown) {
		t.Errorf("unknown %v", got)
	}
}

func TestUnchangedYAMLIsWrittenByteForByte(t *testing.T) {
	t.Parallel()
	if got := string(parseYAML(t, yamlTemplate).Bytes()); got != yamlTemplate {
		t.Errorf("template %s", got)
	}
}

// Only lines of the properties change; comments, tags and quotes of what stays stay.
func TestChangedYAMLKeepsAllElse(t *testing.T) {
	t.Parallel()
	d := parseYAML(t, yamlTemplate)
	app := d.Task.Get("ContainerDefinitions").Items()[0]
	app.Get("Environment").Append(NewNode(map[string]any{"Name": "A", "Value": "yes", "N": 5, "B": true, "JSON": `{"a": "b"}`, "E": []string{}}))
	d.Task.Set("Memory", NewNode("1024"))
	want := strings.Replace(yamlTemplate, "      Memory: 512\n", "      Memory: \"1024\"\n", 1)
	want = strings.Replace(want, "              Value: 'on'\n", "              Value: 'on'\n"+
		"            - B: true\n              E: []\n              JSON: '{\"a\": \"b\"}'\n              \"N\": 5\n              Name: A\n              Value: \"yes\"\n", 1)
	want = strings.Replace(want, "!Sub >", "!Sub |", 1)
	want = strings.Replace(want, `"256"   #`, `"256" #`, 1)
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	if again := parseYAML(t, string(d.Bytes())); !cmp.Equal(again.Root.JSON(), d.Root.JSON()) {
		t.Errorf("the output means %s, want %s", again.Root.JSON(), d.Root.JSON())
	}
}

func TestYAMLInFlowStyleIsChanged(t *testing.T) {
	t.Parallel()
	d := parseYAML(t, "Resources: {Web: {Type: 'AWS::ECS::TaskDefinition', Properties: {Family: a, ContainerDefinitions: [{Name: a, Image: b}]}}}\n")
	d.Task.Set("Family", NewNode("other"))
	want := "Resources: {Web: {Type: 'AWS::ECS::TaskDefinition', Properties: {Family: other, ContainerDefinitions: [{Name: a, Image: b}]}}}\n"
	if got := string(d.Bytes()); got != want {
		t.Errorf("template %s, want %s", got, want)
	}
}

func TestUnreadableYAMLIsRefused(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'h'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for text, want := range map[string]string{
		"a: b: c\n":                    "read the template: yaml: ",
		"family: web\n":                "line 1, column 1: this looks like YAML and is no template, but ECS takes JSON; `yq -o=json` converts it",
		"Resources:\n  A: {Type: B}\n": `the template has no resource of type "AWS::ECS::TaskDefinition"`,
		"- Name: a\n":                  "this is a list in YAML, and no template: containers are a list in JSON; `yq -o=json` converts it",
		"a\n":                          "the template is YAML, but not a mapping",
		"Resources:\n  Fn::ForEach::Tasks:\n    - Name\n    - [a, b]\n    - \"${Name}Task\": {Type: AWS::ECS::TaskDefinition}\n": "the template makes its resources by Fn::ForEach: ",
		"a: b\n---\nc: d\n":     "the file has more than one YAML document: keep that of the template",
		"\ufeffResources: {}\n": "line 1, column 1: the file begins with a byte order mark: save it as UTF-8 without BOM",
		bomb:                    "the template has more than 200000 values, aliases counted in full",
	} {
		if _, err := ParseTemplate([]byte(text), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// What begins as YAML alone can is read as YAML, and what begins as JSON has the errors of JSON.
func TestTemplateOfAnyYAMLIsRead(t *testing.T) {
	t.Parallel()
	const web = "{Type: AWS::ECS::TaskDefinition, Properties: {Family: a, ContainerDefinitions: [{Name: a, Image: b}]}}"
	for _, text := range []string{
		"{Resources: {Web: " + web + "}}\n",
		"{ # a shop\n  Resources: {Web: " + web + "}}\n",
		"%YAML 1.1\n---\nResources: {Web: " + web + "}\n",
		"? Resources\n: {Web: " + web + "}\n",
		"Resources : {Web: " + web + "}\n",
		"!!map\nResources: {Web: " + web + "}\n",
	} {
		d := parseYAML(t, text)
		if got := d.Definition.Family; got != "a" {
			t.Errorf("%s: family %q", text, got)
		}
		d.Task.Set("Cpu", NewNode("512"))
		if got := parseYAML(t, string(d.Bytes())).Definition.CPU; got != "512" {
			t.Errorf("%s: written as %s", text, d.Bytes())
		}
	}
	if _, err := ParseTemplate([]byte(`{"Resources": {},}`), ""); err == nil || !strings.Contains(err.Error(), "no comma may stand before it") {
		t.Errorf("a trailing comma: %v", err)
	}
}

// CloudFormation reads YAML 1.1, in which these are booleans, times and special keys.
func TestStringsOfOlderYAMLAreQuoted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"12:30", "1:30:45", "=", "<<", "yes", "No", "010", "1_000", "5995:5996"} {
		if got := string(encodeYAML(newScalar(&Node{scalar: quote(text)}))); got != `"`+text+"\"\n" {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	if got := string(encodeYAML(newScalar(&Node{scalar: quote("web")}))); got != "web\n" {
		t.Errorf("web is written as %s", got)
	}
}

func TestAmbiguousKeysOfYAMLAreRefused(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"Resources:\n  Web: {Type: A}\n  Web: {Type: B}\n":  "line 3: key Web given twice",
		"Base: &x {A: 1}\nResources:\n  Web:\n    <<: *x\n": "line 4: write the members out in place of the merge key",
	} {
		if _, err := ParseTemplate([]byte(doc), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// CloudFormation reads YAML 1.1: yes is true, and 010 is 8, unless they are quoted.
func TestPlainScalarsAreThoseOfOlderYAML(t *testing.T) {
	t.Parallel()
	d := parseYAML(t, `---
ContainerDefinitions:
  - Name: web
    Image: web
    Essential: Yes
    Privileged: off
    Memory: 0x40
    Cpu: 010
    StopTimeout: 1_2
    ReadonlyRootFilesystem: "true"
    Environment:
      - {Name: A, Value: yes}
      - {Name: B, Value: 'yes'}
      - {Name: C, Value: !!str no}
      - {Name: D, Value: 012345678901}
      - {Name: E, Value: 2010-09-09}
      - {Name: F, Value: y}
`)
	c := d.Definition.ContainerDefinitions[0]
	got := []any{*c.Essential, *c.Privileged, *c.Memory, *c.CPU, *c.StopTimeout, *c.ReadonlyRootFilesystem}
	if diff := cmp.Diff([]any{true, false, 64, 8, 12, true}, got); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	var values []string
	for _, e := range c.Environment {
		values = append(values, e.Value)
	}
	if diff := cmp.Diff([]string{"true", "yes", "no", "012345678901", "2010-09-09", "y"}, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// A scalar whose form only one of the readers of YAML takes for a number or a boolean is
// refused as what it is.
func TestScalarsOfTheWrongTypeAreRefused(t *testing.T) {
	t.Parallel()
	_, err := ParseTemplate([]byte("ContainerDefinitions:\n  - {Name: web, Essential: y, Memory: 1:30, Cpu: 0o10}\n"), "")
	const want = `invalid task definition:
  $.ContainerDefinitions[0].Essential: must be true or false, but is the string "y" (type)
  $.ContainerDefinitions[0].Memory: must be an integer, but is the string "1:30" (type)`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// edited returns the template after its first container, or its only element of a list, got a member more.
func edited(t *testing.T, text string) string {
	t.Helper()
	d := parseYAML(t, text)
	d.Task.Get("ContainerDefinitions").Items()[0].Set("User", &Node{scalar: `"web"`})
	return written(t, d)
}

// written returns a changed document, which is read as what it was changed to.
func written(t *testing.T, d *Document) string {
	t.Helper()
	out := string(d.Bytes())
	if again := parseYAML(t, out); !cmp.Equal(again.Root.JSON(), d.Root.JSON()) {
		t.Errorf("the output means %s, want %s", again.Root.JSON(), d.Root.JSON())
	}
	return out
}

func FuzzParseTemplate(f *testing.F) {
	for _, seed := range []string{template, yamlTemplate, "ContainerDefinitions:\n- Name: a\n  Image: !Ref B\n  Command: [yes, 010, ~, !Sub x]\n",
		"# c\nContainerDefinitions: [{Name: 'a', Cpu: 0x1}] # d\n", "ContainerDefinitions: &a\n- {Name: >-\n    b\n  }\nVolumes: *a\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseTemplate([]byte(text), "")
		if err != nil {
			return
		}
		d.Validate()
		if string(d.Bytes()) != text {
			t.Fatalf("an unchanged document is written as %s", d.Bytes())
		}
		for _, c := range d.Task.Get("ContainerDefinitions").Items() {
			if c.IsObject() {
				c.Set("User", &Node{scalar: `"web"`})
			}
		}
		d.Task.Set("Family", &Node{scalar: `"012"`})
		written(t, d)
	})
}

func TestEditedYAMLKeepsItsStyle(t *testing.T) {
	t.Parallel()
	const head = "Resources:\n  Web:\n    Type: AWS::ECS::TaskDefinition\n    Properties:\n"
	for name, tt := range map[string]struct{ text, want string }{
		"computed name": {
			head + "      ContainerDefinitions:\n        # the web server\n        - Name: !Sub \"${A}-web\"\n          Image: !Ref Image # of the build\n",
			head + "      ContainerDefinitions:\n        # the web server\n        - Name: !Sub \"${A}-web\"\n          Image: !Ref Image # of the build\n          User: web\n",
		},
		"container without a name": {
			head + "      ContainerDefinitions:\n        - Image: !Ref Image # of the build\n",
			head + "      ContainerDefinitions:\n        - Image: !Ref Image # of the build\n          User: web\n",
		},
		"comment before the first property": {
			head + "      # one\n\n      # two\n      ContainerDefinitions:\n        - Name: web\n  # of the next resource\n  Role: {Type: AWS::IAM::Role}\n",
			head + "      # one\n\n      # two\n      ContainerDefinitions:\n        - Name: web\n          User: web\n  # of the next resource\n  Role: {Type: AWS::IAM::Role}\n",
		},
		"Windows line breaks": {
			strings.ReplaceAll(head+"      ContainerDefinitions:\n        - Name: web\n", "\n", "\r\n"),
			strings.ReplaceAll(head+"      ContainerDefinitions:\n        - Name: web\n          User: web\n", "\n", "\r\n"),
		},
		"no line break at the end": {
			head + "      ContainerDefinitions:\n        - Name: web",
			head + "      ContainerDefinitions:\n        - Name: web\n          User: web\n",
		},
		"flow style with comments of the document": {
			"# a shop\n\nResources:\n  Web: {Type: 'AWS::ECS::TaskDefinition', Properties: {ContainerDefinitions: [{Name: web}]}}\n\n# the end\n",
			"# a shop\n\nResources:\n  Web: {Type: 'AWS::ECS::TaskDefinition', Properties: {ContainerDefinitions: [{Name: web, User: web}]}}\n\n# the end\n",
		},
		"document marker": {
			"---\n" + head + "      ContainerDefinitions:\n        - Name: web\n...\n",
			"---\n" + head + "      ContainerDefinitions:\n        - Name: web\n          User: web\n...\n",
		},
		"alias to what changes": {
			"# a shop\n" + head + "      ContainerDefinitions:\n        # the web server\n        - &web\n          Name: web\n          Environment: &env\n            - {Name: A, Value: 'b'} # of A\n  Copy:\n    Type: Custom::Copy\n    Properties: {Of: *web, Env: *env, Again: *web} # twice\n",
			"# a shop\n" + head + "      ContainerDefinitions:\n        - # the web server\n          Name: web\n          Environment: &env\n            - {Name: A, Value: 'b'} # of A\n          User: web\n  Copy:\n    Type: Custom::Copy\n    Properties: {Of: &web {Name: web, Environment: *env}, Env: *env, Again: *web} # twice\n",
		},
		"alias for what changes": {
			"Base: &web # shared\n  Name: web\n\n\n" + head + "      # one\n      ContainerDefinitions: [*web, *web]\n\n\n# the end\n",
			"Base: &web # shared\n  Name: web\n\n\n" + head + "      # one\n      ContainerDefinitions: [{Name: web, User: web}, *web]\n\n\n# the end\n",
		},
		"booleans of YAML 1.1": {
			head + "      ContainerDefinitions:\n        - Essential: yes\n          Privileged: No\n",
			head + "      ContainerDefinitions:\n        - Essential: yes\n          Privileged: No\n          User: web\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, edited(t, tt.text)); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
		})
	}
}
