package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// validateResource reports why ECS would refuse a task definition. One whose containers
// are unknown is validated in the apply; other unknown attributes count as absent.
func validateResource(ctx context.Context, typ string, v tftypes.Value) (out []*tfprotov5.Diagnostic) {
	if typ != "aws_ecs_task_definition" || v.IsNull() {
		return nil
	}
	var m map[string]tftypes.Value
	must(v.As(&m))
	if !m["container_definitions"].IsKnown() {
		return nil
	}
	doc, err := json.Marshal(document(m))
	must(err)
	for _, p := range validate(ctx, doc) {
		out = append(out, problem("container_definitions", "%s", p))
	}
	return out
}

// members are the attributes and blocks of an aws_ecs_task_definition that
// RegisterTaskDefinition takes under another name; the others have the same name in camel case.
var members = map[string]string{"volume": "volumes", "container_definitions": "containerDefinitions"}

// document returns the input of RegisterTaskDefinition for an aws_ecs_task_definition. A role that is not known yet
// counts as given.
func document(m map[string]tftypes.Value) map[string]any {
	doc := map[string]any{}
	for _, name := range []string{
		"family", "network_mode", "cpu", "memory", "pid_mode", "ipc_mode", "task_role_arn", "execution_role_arn",
		"requires_compatibilities", "ephemeral_storage", "runtime_platform", "placement_constraints", "volume",
	} {
		key := members[name]
		if key == "" {
			key = camel(name)
		}
		if v := m[name]; v.IsKnown() && !v.IsNull() {
			doc[key] = api(v)
		} else if !v.IsKnown() && strings.HasSuffix(name, "_role_arn") {
			doc[key] = "arn:aws:iam::" + account + ":role/unknown"
		}
	}
	volumes, _ := doc["volumes"].([]any)
	for _, item := range volumes {
		volume := item.(map[string]any)
		delete(volume, "configureAtLaunch")     // invented by an apply; the modules have no such volume
		if path, ok := volume["hostPath"]; ok { // one level deeper in the API
			delete(volume, "hostPath")
			volume["host"] = map[string]any{"sourcePath": path}
		}
	}
	doc["containerDefinitions"] = json.RawMessage(faker{obj: m}.str("container_definitions"))
	return doc
}

// api returns a value as the ECS API has it: keys in camel case, no nulls, and a list of objects, which is how a
// provider declares a single block, is its only element.
func api(v tftypes.Value) any {
	switch t := v.Type(); {
	case t.Is(tftypes.String):
		var s string
		must(v.As(&s))
		return s
	case t.Is(tftypes.Bool):
		var b bool
		must(v.As(&b))
		return b
	case t.Is(tftypes.Number):
		var f big.Float
		must(v.As(&f))
		n, _ := f.Int64()
		return n
	case t.Is(tftypes.Map{}), t.Is(tftypes.Object{}):
		return apiObject(v)
	}
	list := []any{}
	for _, e := range elements(v) {
		list = append(list, api(e))
	}
	if t, ok := v.Type().(tftypes.List); ok && t.ElementType.Is(tftypes.Object{}) {
		if len(list) == 0 {
			return nil
		}
		return list[0]
	}
	return list
}

func apiObject(v tftypes.Value) map[string]any {
	var in map[string]tftypes.Value
	must(v.As(&in))
	out := map[string]any{}
	for name, c := range in {
		if c.IsNull() || !c.IsKnown() {
			continue
		}
		if v.Type().Is(tftypes.Object{}) {
			name = camel(name)
		}
		if value := api(c); value != nil {
			out[name] = value
		}
	}
	return out
}

// camel returns the API's spelling of a Terraform name: size_in_gib is sizeInGiB.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Replace(strings.Join(words, ""), "Gib", "GiB", 1)
}

func elements(v tftypes.Value) (out []tftypes.Value) {
	if v.IsKnown() && !v.IsNull() {
		must(v.As(&out))
	}
	return out
}

// validate returns why RegisterTaskDefinition would refuse a document, why what ECS returns
// would differ from it for ever, or why consul-ecs would refuse its configuration.
func validate(ctx context.Context, doc []byte) []string {
	var in ecs.RegisterTaskDefinitionInput
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields() // the real provider ignores them
	if err := d.Decode(&in); err != nil {
		return []string{err.Error()}
	}
	definition, err := taskdef.Parse(doc)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, w := range definition.Warnings {
		out = append(out, w.String())
	}
	for _, v := range definition.Validate() {
		out = append(out, v.String())
	}
	for _, c := range in.ContainerDefinitions {
		for _, e := range c.Environment {
			if aws.ToString(e.Name) != config.EnvVar {
				continue
			}
			if _, _, err := config.Parse([]byte(aws.ToString(e.Value))); err != nil {
				out = append(out, fmt.Sprintf("container %q would refuse its configuration: %v",
					aws.ToString(c.Name), err))
			}
		}
		for _, member := range filledIn(c) {
			out = append(out, fmt.Sprintf("container %q: ECS returns %s, so the next plan would replace the "+
				"definition: give it", aws.ToString(c.Name), member))
		}
	}
	if err := required(ctx, &in); err != nil {
		out = append(out, err.Error())
	}
	return out
}

// filledIn names what ECS returns for a container that does not have it, where there are
// releases of the provider that take the two for different.
func filledIn(c types.ContainerDefinition) (members []string) {
	if l := c.LinuxParameters; l != nil && l.Capabilities != nil && (l.Capabilities.Add == nil ||
		l.Capabilities.Drop == nil) {
		members = append(members, "both lists of capabilities")
	}
	if h := c.HealthCheck; h != nil && (h.Interval == nil || h.Timeout == nil || h.Retries == nil) {
		members = append(members, "interval, timeout and retries of the health check")
	}
	if r := c.RestartPolicy; r != nil && r.RestartAttemptPeriod == nil {
		members = append(members, "restartAttemptPeriod")
	}
	if c.FirelensConfiguration != nil && c.User == nil {
		members = append(members, `user "0" of a log router`)
	}
	return members
}

// required makes the SDK's check of required members, which it does before it sends.
func required(ctx context.Context, in *ecs.RegisterTaskDefinitionInput) error {
	client := ecs.New(ecs.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: canned{}, RetryMaxAttempts: 1,
	})
	_, err := client.RegisterTaskDefinition(ctx, in)
	return err
}

// canned answers every API call with {}, so that only the SDK's own checks can fail.
type canned struct{}

// Do implements aws.HTTPClient.
func (canned) Do(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}},
		Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}
