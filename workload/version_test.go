package workload_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/workload"
)

func TestVersionOfEnvoyInAnImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"envoyproxy/envoy:v1.40.0":                       "1.40.0",
		"envoyproxy/envoy:distroless-v1.40.0":            "1.40.0",
		"envoyproxy/envoy-distroless:v1.40.0@sha256:0ab": "1.40.0",
		"localhost:5000/mirror/envoy:1.40.0-r2":          "1.40.0",
		"public.ecr.aws/appmesh/aws-appmesh-envoy:v1.29": "",
		"envoyproxy/envoy:v1.40-latest":                  "",
		"envoyproxy/envoy@sha256:01.40.0":                "",
		"envoy":                                          "",
		"mirror/envoy:2026.1.40.0":                       "",
		"mirror/sidecar:1.40.0":                          "",
		"hashicorp/consul-dataplane:1.5.0":               "",
		"":                                               "",
	} {
		if got := workload.EnvoyVersion(image); got != want {
			t.Errorf("%s: got %q, want %q", image, got, want)
		}
	}
}

// A user's resolver may select instances by keys of the same names.
func TestVersionsInTheMetaLeaveTheUsers(t *testing.T) {
	t.Parallel()
	task := located(ipv4())
	task.Containers = append(task.Containers,
		workload.Container{Name: "sidecar-proxy", Image: "envoyproxy/envoy:v1.40.0"})
	for fields, want := range map[string][2]string{
		``: {"v9.8.7", "1.40.0"},
		`,"service":{"port":1,"meta":{"mesh-init-version":"mine","envoy-version":"my own"}}`: {"mine", "my own"},
		`,"gateway":{"kind":"mesh-gateway"}`:                                                 {"v9.8.7", "1.40.0"},
	} {
		w, err := workload.New(in(t, fields), task, "")
		if err != nil {
			t.Fatal(err)
		}
		w.RecordVersion("v9.8.7")
		if got := [2]string{w.Meta["mesh-init-version"], w.Meta["envoy-version"]}; got != want {
			t.Errorf("%s: versions %q, want %q", fields, got, want)
		}
	}
}
