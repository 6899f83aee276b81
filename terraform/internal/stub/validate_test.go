package stub

import (
	"strings"
	"testing"
)

func TestValidateReportsWhatECSRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, containers, want string }{
		{
			"valid",
			`[{"name":"a","image":"i"},{"name":"b","image":"i","dependsOn":[{"containerName":"a",` +
				`"condition":"START"}]}]`, "",
		},
		{
			"both lists of capabilities",
			`[{"name":"a","image":"i","linuxParameters":{"capabilities":{"add":[],"drop":["ALL"]}}}]`, "",
		},
		{"unknown key", `[{"name":"a","image":"i","dependOn":[]}]`, `unknown field "dependOn"`},
		{"key in the wrong case", `[{"name":"a","image":"i","entrypoint":[]}]`, "did you mean \"entryPoint\""},
		{"rule of taskdef", `[{"name":"a","image":"i","essential":false}]`, "essential"},
		{"required member", `[{"name":"a","image":"i","logConfiguration":{}}]`, "LogDriver"},
		{
			"one list of capabilities",
			`[{"name":"a","image":"i","linuxParameters":{"capabilities":{"drop":["ALL"]}}}]`,
			"both lists of capabilities",
		},
		{
			"figures of a health check",
			`[{"name":"a","image":"i","healthCheck":{"command":["CMD","c"],"interval":30}}]`,
			"interval, timeout and retries",
		},
		{
			"restart policy without a period", `[{"name":"a","image":"i","restartPolicy":{"enabled":true}}]`,
			"restartAttemptPeriod",
		},
		{
			"log router without a user",
			`[{"name":"a","image":"i","logConfiguration":{"logDriver":"awsfirelens"}},{"name":"b","image":"i",` +
				`"firelensConfiguration":{"type":"fluentbit"}}]`, "user \"0\" of a log router",
		},
		{
			"configuration",
			`[{"name":"a","image":"i","environment":[{"name":"CONSUL_ECS_CONFIG_JSON",` +
				`"value":"{\"bootstrapDir\":\"/consul\",\"service\":{\"port\":80}}"}]}]`, "",
		},
		{
			"wrong configuration",
			`[{"name":"a","image":"i","environment":[{"name":"CONSUL_ECS_CONFIG_JSON",` +
				`"value":"{\"bootstrapDir\":\"/consul\",\"service\":{\"name\":\"a-\",\"port\":80}}"}]}]`,
			"$.service.name",
		},
		{
			"no list of capabilities", `[{"name":"a","image":"i","linuxParameters":{"capabilities":{}}}]`,
			"both lists of capabilities",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(validate(t.Context(),
				[]byte(`{"family":"f","networkMode":"awsvpc","requiresCompatibilities":["FARGATE"],
				"cpu":"256","memory":"512","containerDefinitions":`+tt.containers+`}`)), "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
