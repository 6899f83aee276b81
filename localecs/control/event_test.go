package control_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestEventIsEventBridges(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 17, 8, 41, 102e6, time.UTC)
	text, err := control.Event(shapes.Task{
		TaskARN: "arn:aws:ecs:us-east-1:123456789012:task/default/t", LastStatus: "RUNNING", DesiredStatus: "STOPPED",
		Version:   4,
		CreatedAt: shapes.At(at.Add(-time.Minute)), Tags: []shapes.Tag{{Key: "a"}},
		Attachments: []shapes.Attachment{{ID: "i", Type: "ElasticNetworkInterface", Status: "ATTACHED"}},
	}, at)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	detail := got["detail"].(map[string]any)
	for name := range detail {
		switch name {
		case "taskArn", "lastStatus", "desiredStatus", "version", "createdAt", "updatedAt", "attachments":
		case "tags":
			t.Error("an event has tags")
		default:
			delete(detail, name) // empty here
		}
	}
	if id, _ := got["id"].(string); len(id) != 36 {
		t.Errorf("id %q", id)
	}
	delete(got, "id")
	want := map[string]any{
		"version": "0", "detail-type": "ECS Task State Change", "source": "aws.ecs", "account": "123456789012",
		"region": "us-east-1",
		"time":   "2026-03-02T17:08:41Z", "resources": []any{"arn:aws:ecs:us-east-1:123456789012:task/default/t"},
		"detail": map[string]any{
			"taskArn": "arn:aws:ecs:us-east-1:123456789012:task/default/t", "lastStatus": "RUNNING",
			"desiredStatus": "STOPPED", "version": 4.0,
			"createdAt": "2026-03-02T17:07:41.102Z", "updatedAt": "2026-03-02T17:08:41.102Z",
			"attachments": []any{map[string]any{"id": "i", "type": "eni", "status": "ATTACHED", "details": nil}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
