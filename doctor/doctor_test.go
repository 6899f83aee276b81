package doctor_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/doctor"
	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func answering(name, found string, err error) doctor.Check {
	return doctor.Check{Name: name, Ask: func(context.Context) (string, error) { return found, err }}
}

func TestExamineKeepsTheOrderAndNamesRemedies(t *testing.T) {
	t.Parallel()
	got := doctor.Examine(t.Context(), time.Minute, []doctor.Check{
		answering("one", "fine", nil),
		answering("two", "", errors.New("no AWS region:\n set it")),
		answering("three", "", doctor.Skipf("not %s", "here")),
		answering("four", "", errors.New("of no known kind")),
	})
	region, _ := failure.Find("CE-AWS-REGION")
	want := []doctor.Finding{
		{Check: "one", Result: doctor.OK, Found: "fine"},
		{Check: "two", Result: doctor.Failed, Found: "no AWS region: set it", ID: region.ID, Fix: region.Fix},
		{Check: "three", Result: doctor.Skipped, Found: "not here"},
		{Check: "four", Result: doctor.Failed, Found: "of no known kind"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	testkit.Equal(t, "failed", len(doctor.FailedOf(got)), 2)
	var out strings.Builder
	if err := doctor.Write(&out, got); err != nil {
		t.Fatal(err)
	}
	const text = `ok      one    fine
failed  two    no AWS region: set it [CE-AWS-REGION]
               fix: Set consulLogin.region.
skipped three  not here
failed  four   of no known kind
`
	testkit.Equal(t, "text", out.String(), text)
}

func TestExamineEndsWhenAChecksDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hanging := doctor.Check{Name: "disk", Ask: func(context.Context) (string, error) {
			<-release // it does not obey its context, as a volume that hangs
			return "", nil
		}}
		slow := doctor.Check{Name: "network", Ask: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		start := time.Now()
		checks := []doctor.Check{hanging, slow, hanging, answering("last", "fine", nil)}
		got := doctor.Examine(t.Context(), doctor.Limit, checks)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s, want at most 5 s", took)
		}
		var results []doctor.Result
		for _, f := range got {
			results = append(results, f.Result)
		}
		want := []doctor.Result{doctor.Failed, doctor.Failed, doctor.Failed, doctor.OK}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		close(release)
	})
}

// admin answers as an Envoy did, from testdata, with some answers replaced.
func admin(t *testing.T, replaced map[string]string) func(context.Context, string) ([]byte, error) {
	answers := map[string]string{
		"/stats?filter=control_plane.connected_state|update_rejected": "control_plane.connected_state: 1\n" +
			"listener_manager.lds.update_rejected: 0\n",
		"/config_dump?resource=dynamic_listeners": "{}",
	}
	for path, name := range map[string]string{
		"/server_info": "server_info", "/certs": "certs", "/clusters?format=json": "clusters",
		"/listeners?format=json": "listeners",
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		answers[path] = string(text)
	}
	for path, text := range replaced {
		if _, known := answers[path]; !known {
			t.Fatalf("no check asks for %s", path)
		}
		answers[path] = text
	}
	return func(_ context.Context, path string) ([]byte, error) {
		if answers[path] == "" {
			return nil, errors.New("connect: connection refused")
		}
		return []byte(answers[path]), nil
	}
}

func TestEnvoy(t *testing.T) {
	t.Parallel()
	const stats = "/stats?filter=control_plane.connected_state|update_rejected"
	const dump = "/config_dump?resource=dynamic_listeners"
	const clusters = `{"cluster_statuses": [{"name": "api.default.dc1.internal.e05f.consul", "host_statuses": [
		{"health_status": {"eds_health_status": "UNHEALTHY"}},
		{"health_status": {"eds_health_status": "HEALTHY", "failed_outlier_check": true}}]}]}`
	for name, c := range map[string]struct {
		replaced map[string]string
		check    string
		want     string
		id       failure.ID
	}{
		"healthy":              {nil, "Envoy", "live, version 1.40.0", ""},
		"healthy updates":      {nil, "Envoy configuration", "3 listeners, no update rejected", ""},
		"healthy certificates": {nil, "Envoy certificates", "valid for 2 days", ""},
		"healthy upstreams":    {nil, "Envoy upstreams", "1, each with a healthy instance", ""},
		"away": {map[string]string{"/server_info": ""}, "Envoy",
			"envoy's admin interface does not answer: connect: connection refused", "CE-ENVOY-AWAY"},
		"starting": {map[string]string{"/server_info": `{"state": "PRE_INITIALIZING"}`}, "Envoy",
			"envoy is not live: its state is PRE_INITIALIZING", "CE-ENVOY-AWAY"},
		"no stream": {map[string]string{stats: "control_plane.connected_state: 0\n"}, "Envoy configuration",
			"envoy has no stream to its control plane", "CE-ENVOY-XDS"},
		"rejected": {map[string]string{stats: "listener_manager.lds.update_rejected: 2\n"}, "Envoy configuration",
			"envoy rejected resources: listener_manager.lds.update_rejected 2", "CE-ENVOY-REJECTED"},
		"rejected listener": {map[string]string{
			dump: `{"configs": [{"name": "public", "error_state": {"details": "a\nb"}}]}`,
		}, "Envoy configuration", "envoy rejected resources: listener public: a b", "CE-ENVOY-REJECTED"},
		"no listener": {map[string]string{"/listeners?format=json": "{}"}, "Envoy configuration",
			"envoy has no listener: it got no configuration", "CE-ENVOY-XDS"},
		"no certificate": {map[string]string{"/certs": "{}"}, "Envoy certificates",
			"envoy has no certificate: it got no configuration", "CE-ENVOY-XDS"},
		"expired": {map[string]string{"/certs": `{"certificates": [{"cert_chain": [{"days_until_expiration": "0"}]}]}`},
			"Envoy certificates", "a certificate of Envoy has expired", "CE-ENVOY-CERTIFICATE"},
		"no healthy instance": {map[string]string{"/clusters?format=json": clusters}, "Envoy upstreams",
			"upstreams without a healthy instance: api (2 instances)", "CE-TRAFFIC-NO-INSTANCE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range doctor.Examine(t.Context(), time.Minute, doctor.Envoy(admin(t, c.replaced))) {
				if f.Check == c.check {
					testkit.Equal(t, "found", f.Found, c.want)
					testkit.Equal(t, "ID", f.ID, c.id)
				}
			}
		})
	}
}

func TestRoleNamesTheWrongTag(t *testing.T) {
	t.Parallel()
	const tag = "consul.hashicorp.com.service-name"
	for name, c := range map[string]struct {
		tags map[string]string
		want failure.ID
	}{
		"right": {map[string]string{tag: "web"}, ""},
		"none":  {nil, "CE-LOGIN-TAG"},
		"other": {map[string]string{tag: "api"}, "CE-TOKEN-SERVICE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := doctor.Examine(t.Context(), time.Minute, []doctor.Check{doctor.Role("web",
				func(context.Context) (awsutil.Role, error) { return awsutil.Role{ARN: "role", Tags: c.tags}, nil })})
			testkit.Equal(t, "ID", got[0].ID, c.want)
		})
	}
}

func TestBundleHasNoSecret(t *testing.T) {
	t.Parallel()
	const token = "0b0b0b01-1234-4000-8000-00000000abcd"
	files := []doctor.File{
		{Name: "a.json", Data: []byte(`{"tokenFile": "x", "list": [{"key": "x-consul-token", "value": "y1"}], "n": 1,
			"env": [{"Name": "DB_PASSWORD", "Value": "y2"}, {"Name": "PORT", "Value": "80"}]}`)},
		{Name: "b.txt", Data: []byte("the header was " + token + "\n")},
	}
	var b bytes.Buffer
	if err := doctor.Bundle(&b, files, []secret.Value{secret.New(token), secret.New("")}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = strings.Join(strings.Fields(string(text)), " ")
	}
	want := map[string]string{
		"doctor/a.json": `{ "env": [ { "Name": "DB_PASSWORD", "Value": "[redacted]" }, ` +
			`{ "Name": "PORT", "Value": "80" } ], "list": [ { "key": "x-consul-token", ` +
			`"value": "[redacted]" } ], "n": 1, "tokenFile": "[redacted]" }`,
		"doctor/b.txt": "the header was <redacted>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
