package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const roleAbsent = "ADM-IAM-ROLE: the task role (absent) cannot log in: a task without a task role has no " +
	"identity in AWS"

func TestRoleOfALoginIsCheckedWithoutAWS(t *testing.T) {
	t.Parallel()
	untrusted := func(role, path, want string) []string {
		return []string{"ADM-IAM-PATH: the task role " + role + " has the path " + path +
			", but the auth method trusts roles below " + want + " unless the controller has another path"}
	}
	const login, root = `"consulLogin": {"enabled": true}`, "arn:aws:iam::123456789012:role/web"
	const below, other = "arn:aws:iam::123456789012:role/consul-ecs/shop/web",
		"arn:aws-cn:iam::123456789012:role/apps/web"
	for name, c := range map[string]struct {
		role, mesh, path string
		want             []string
	}{
		"absent":           {"", login, "", []string{roleAbsent}},
		"absent, no login": {"", `"consulLogin": {"enabled": false}`, "", nil},
		"absent, without entity": {
			"", `"consulLogin": {"enabled": true, "includeEntity": false}`, "", []string{roleAbsent},
		},
		"trusted":               {below, login, "", nil},
		"root":                  {root, login, "", untrusted(root, "/", "/consul-ecs/")},
		"name":                  {"web", login, "", untrusted("web", "/", "/consul-ecs/")},
		"no login":              {root, `"consulLogin": {"enabled": false}`, "", nil},
		"path of the mesh file": {other, login + `, "controller": {"iamRolePath": "/apps/"}`, "", nil},
		"not of the mesh file": {
			below, login + `, "controller": {"iamRolePath": "/apps"}`, "",
			untrusted(below, "/consul-ecs/shop/", "/apps/"),
		},
		"path of the flag": {other, login, "apps", nil},
		"not of the flag":  {below, login, "/apps/", untrusted(below, "/consul-ecs/shop/", "/apps/")},
		"any path":         {root, login, "/", nil},
		"another method":   {root, `"consulLogin": {"enabled": true, "method": "mine"}`, "", nil},
		"another method, flagged": {
			root, `"consulLogin": {"enabled": true, "method": "mine"}`, "/x/", untrusted(root, "/", "/x/"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			role := ""
			if c.role != "" {
				role = fmt.Sprintf(`"taskRoleArn": %q,`, c.role)
			}
			mesh := parseMesh(t, []byte(strings.Replace(plainMesh, "{", "{"+c.mesh+", ", 1)))
			r, err := Admit(definition(role, plainApp), Options{Mesh: mesh, RolePath: c.path})
			if err != nil {
				t.Fatal(err)
			}
			if got := messages(r, codeRole, codeRolePath); !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

func TestComputedRoleIsNotJudged(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "10.0.0.4"}, "consulLogin": {"enabled": true}}`))
	for role, want := range map[string][]string{
		`"TaskRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},`: nil,
		`"TaskRoleArn": {"Ref": "AWS::NoValue"},`:         {roleAbsent},
		"": {roleAbsent},
	} {
		if got := messages(admitAll(t, template(role, `"Essential": true`), mesh), codeRole,
			codeRolePath); !slices.Equal(got, want) {
			t.Errorf("%s: findings %q, want %q", role, got, want)
		}
	}
	const list = `[{"name": "app", "image": "app", "entryPoint": ["/app"]}]`
	if got := messages(admitAll(t, []byte(list), mesh), codeRole, codeRolePath); got != nil {
		t.Errorf("a list of containers: findings %q", got)
	}
}

func TestAttestationPolicyHasTheImagesOfTheMesh(t *testing.T) {
	t.Parallel()
	r := admitChoice(t, "attested")
	want := []string{"ADM-ATTESTATION: the attestation policy does not have the images envoyproxy/envoy:v1.40.0, " +
		"your/consul-ecs:1.0.0-beta.1, which run in this task, too"}
	if got := messages(r, codeAttestation); !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	// {"images": ["envoyproxy/envoy:v1.40.0", "your/consul-ecs:1.0.0-beta.1"]}
	const policy = "eyJpbWFnZXMiOiBbImVudm95cHJveHkvZW52b3k6djEuNDAuMCIsICJ5b3VyL2NvbnN1bC1lY3M6MS4wLjAtYmV0YS4xIl19"
	doc := strings.Replace(string(readTestdata(t, "choices", "attested")), "YWJj", policy, 1)
	r = admitAll(t, []byte(doc), parseMesh(t, readTestdata(t, "choices", "mesh")))
	if got := messages(r, codeAttestation); got != nil {
		t.Errorf("with the images: findings %q", got)
	}
}

// External instances have no awsvpc, so there is no other cure.
func TestExternalInstancesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"external-default-network", "external-bridge"} {
		r := admitChoice(t, name)
		if got := codesOf(r); !slices.Equal(got, []string{codeExternal}) {
			t.Errorf("%s: findings %v", name, r.Findings)
		}
		if before, after := r.Before.Definition.NetworkMode, r.After.Definition.NetworkMode; before != after {
			t.Errorf("%s: network mode %q, want %q", name, after, before)
		}
	}
}

func TestUnknownKeysAreReported(t *testing.T) {
	t.Parallel()
	r := admitChoice(t, "unknown-keys")
	want := []string{"ADM-KEY-NEAR: no definition has this key: it would be refused",
		"ADM-KEY-NEAR: no definition has this key: it would be refused"}
	if got := messages(r, codeKey, codeKeyNear); !slices.Equal(got, want) {
		t.Errorf("findings %v", r.Findings)
	}
	var fixes []string
	for _, f := range r.Findings {
		if f.Code == codeKeyNear {
			fixes = append(fixes, f.Path+": "+f.Fix)
		}
	}
	slices.Sort(fixes)
	if want := []string{"$.containerDefinitions[0].comand: write command",
		"$.containerDefinitions[0].healthcheck: write healthCheck"}; !slices.Equal(fixes, want) {
		t.Errorf("cures %q, want %q", fixes, want)
	}
}

func TestTooManyTagsNamesThoseOfTheMesh(t *testing.T) {
	t.Parallel()
	for _, f := range admitChoice(t, "tags-49").Findings {
		if f.Code != "tag-count" {
			continue
		}
		if f.Fix != "remove some; 2 of them are the mesh's" {
			t.Errorf("finding %s", f)
		}
		return
	}
	t.Error("no finding about the tags")
}
