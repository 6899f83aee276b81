package docker

import (
	"strings"
	"testing"
)

func TestRepository(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web":                                  "localecs/web:latest",
		"public.ecr.aws/shop/Web-App:1.2":      "localecs/web-app:latest",
		"registry:5000/consul@sha256:0123":     "localecs/sha256:latest",
		"hashicorp/consul-enterprise:1.20+ent": "localecs/consul-enterprise:latest",
		"...":                                  "localecs/image:latest",
	} {
		if got := repository(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestFollowReturnsTheEnginesError(t *testing.T) {
	t.Parallel()
	var statuses []string
	note := func(l line) { statuses = append(statuses, l.Status) }
	if err := follow(strings.NewReader(`{"status":"Pulling"}`+"\n"+`{"stream":"Loaded image"}`), note); err != nil || len(statuses) != 2 {
		t.Error(err, statuses)
	}
	if err := follow(strings.NewReader(`{"status":"Pulling"}{"errorDetail":{"message":"gone"},"error":"gone"}`), note); err == nil || err.Error() != "gone" {
		t.Errorf("%v, want gone", err)
	}
	if err := follow(strings.NewReader(`{"status":`), note); err == nil {
		t.Error("half an answer is no error")
	}
}
