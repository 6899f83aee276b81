package admission_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/admission"
)

func TestImagesOfEachFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doc  string
		want []admission.ImageUse
	}{
		"ECS": {
			`{"family": "a", "requiresCompatibilities": ["FARGATE"], "containerDefinitions": [{"name": "web",
				"image": "nginx"}, {"name": "log", "image": "fluent:1"}]}`,
			[]admission.ImageUse{
				{Path: "$.containerDefinitions[0].image", Container: "web", Reference: "nginx", Architecture: "X86_64"},
				{
					Path: "$.containerDefinitions[1].image", Container: "log", Reference: "fluent:1",
					Architecture: "X86_64",
				},
			},
		},
		"architecture": {
			`{"family": "a", "runtimePlatform": {"cpuArchitecture": "ARM64"}, "containerDefinitions": [{"name": "web",
				"image": "nginx"}]}`,
			[]admission.ImageUse{
				{Path: "$.containerDefinitions[0].image", Container: "web", Reference: "nginx", Architecture: "ARM64"},
			},
		},
		"windows": {
			`{"family": "a", "runtimePlatform": {"cpuArchitecture": "X86_64",
				"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}, "containerDefinitions": [{"name": "web",
				"image": "iis"}]}`,
			[]admission.ImageUse{{Path: "$.containerDefinitions[0].image", Container: "web", Reference: "iis"}},
		},
		"answer of describe": {
			`{"taskDefinition": {"family": "a", "containerDefinitions": [{"name": "web", "image": "nginx"}]},
				"tags": []}`,
			[]admission.ImageUse{
				{Path: "$.taskDefinition.containerDefinitions[0].image", Container: "web", Reference: "nginx"},
			},
		},
		"containers": {
			`[{"name": "web", "image": "nginx"}, {"name": "api", "image": "${repository}:1"}, {"image": ""}]`,
			[]admission.ImageUse{
				{Path: "$[0].image", Container: "web", Reference: "nginx"},
				{Path: "$[1].image", Container: "api"},
				{Path: "$[2].image", Container: "2"},
			},
		},
		"template": {
			`{"Resources": {
				"A": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [{"Name": "web", "Image": {"Ref": "Image"}}]}},
				"B": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [{"Name": "api", "Image": "api:1"}, {"Fn::If": ["c", {}, {}]}]}},
				"C": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": {"Fn::If": ["c", [], []]}}},
				"D": {"Type": "AWS::ECS::Service", "Properties": {}}}}`,
			[]admission.ImageUse{
				{Path: "$.Resources.A.Properties.ContainerDefinitions[0].Image", Container: "web"},
				{Path: "$.Resources.B.Properties.ContainerDefinitions[0].Image", Container: "api", Reference: "api:1"},
				{Path: "$.Resources.B.Properties.ContainerDefinitions[1].Image", Container: "1"},
				{Path: "$.Resources.C.Properties.ContainerDefinitions", Container: "all"},
			},
		},
		"YAML": {
			"Resources:\n  Web:\n    Type: AWS::ECS::TaskDefinition\n    Properties:\n      RuntimePlatform: {CpuArchitecture: !Ref Cpu}\n      RequiresCompatibilities: [FARGATE]\n" +
				"      ContainerDefinitions:\n        - Name: web\n          Image: nginx:1\n        - Name: api\n          Image: !Sub '${AWS::AccountId}.dkr.ecr/api:1'\n",
			[]admission.ImageUse{
				{
					Path: "$.Resources.Web.Properties.ContainerDefinitions[0].Image", Container: "web",
					Reference: "nginx:1",
				},
				{Path: "$.Resources.Web.Properties.ContainerDefinitions[1].Image", Container: "api"},
			},
		},
		"properties": {
			`{"ContainerDefinitions": [{"Name": "web", "Image": "nginx"}]}`,
			[]admission.ImageUse{{Path: "$.ContainerDefinitions[0].Image", Container: "web", Reference: "nginx"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := admission.Images([]byte(c.doc), admission.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImagesOfOneResource(t *testing.T) {
	t.Parallel()
	doc := `{"Resources": {
		"A": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [{"Name": "a", "Image": "a:1"}]}},
		"B": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [{"Name": "b", "Image": "b:1"}]}}}}`
	got, err := admission.Images([]byte(doc), admission.Options{Resource: "B"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Reference != "b:1" {
		t.Errorf("%+v", got)
	}
}

func TestImagesHaveThoseThatAreInjected(t *testing.T) {
	t.Parallel()
	mesh, err := admission.ParseMesh([]byte(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"},
		"admission": {"images": {"consulECS": "mesh:1", "envoy": "envoy:1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	doc := `{"family": "a", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
		"runtimePlatform": {"cpuArchitecture": "ARM64"}, "cpu": "512", "memory": "1024",
		"containerDefinitions": [{"name": "web", "image": "nginx", "portMappings": [{"containerPort": 80}]}]}`
	uses, err := admission.Images([]byte(doc), admission.Options{Mesh: mesh})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, use := range uses {
		found[use.Reference] = use.Architecture
	}
	if diff := cmp.Diff(map[string]string{"nginx": "ARM64", "mesh:1": "ARM64", "envoy:1": "ARM64"}, found); diff != "" {
		t.Error(diff)
	}
}

func TestImagesOfNoTaskDefinition(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"{", "Resources:\n  A: {Type: B}\n", `{"family": 1}`} {
		if uses, err := admission.Images([]byte(doc), admission.Options{}); err == nil {
			t.Errorf("%s has %v", doc, uses)
		}
	}
}
