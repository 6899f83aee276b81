package control

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Event is a new version of a task as EventBridge delivers it, "ECS Task State
// Change": the task as DescribeTasks shows it, with times as text, attachments of
// type eni, no tags, and updatedAt.
func Event(t shapes.Task, at time.Time) ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var detail map[string]any
	if err := json.Unmarshal(text, &detail); err != nil {
		return nil, err
	}
	delete(detail, "tags")
	for name, value := range detail {
		if seconds, ok := value.(float64); ok && strings.HasSuffix(name, "At") {
			detail[name] = stamp(time.UnixMilli(int64(seconds*1000 + 0.5)))
		}
	}
	detail["updatedAt"] = stamp(at)
	attachments, _ := detail["attachments"].([]any)
	for _, a := range attachments {
		if a, ok := a.(map[string]any); ok {
			a["type"] = "eni"
		}
	}
	arn := strings.Split(t.TaskARN, ":") // arn:aws:ecs:region:account:task/...
	return json.Marshal(map[string]any{
		"version": "0", "id": uuid.New().String(), "detail-type": "ECS Task State Change", "source": "aws.ecs",
		"account": arn[4], "region": arn[3], "time": at.UTC().Format(time.RFC3339), "resources": []string{t.TaskARN}, "detail": detail,
	})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
