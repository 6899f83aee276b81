package broker

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// hangingTasks adds tasks that ask at once, and whose callback port accepts connections and never
// answers.
func (w *fixture) hangingTasks(t *testing.T, n int) {
	t.Helper()
	var asking sync.WaitGroup
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	for i := range n {
		c := &client{fixture: w, arn: taskARN(10_000 + i), ip: fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), port: 8080}
		w.ecs.change(c.arn, func(t *types.Task) { *t = *runningTask(c.arn, c.ip) })
		w.listen(c.ip+":8080", func(*http.Request) int { <-end; return 0 })
		body := c.request()
		asking.Go(func() {
			if answer := c.call(http.MethodPost, "/v1/token", c.ip, body); answer.Code != http.StatusAccepted {
				t.Errorf("a task that will hang was answered with %d %s", answer.Code, answer.Body)
			}
		})
	}
	asking.Wait()
}

// A task has its token within seconds beside a thousand that hang, whenever it asks.
func TestHangingTasksHoldBackNoOther(t *testing.T) {
	t.Parallel()
	const hanging = 1000
	in(t, func(t *testing.T, w *fixture) {
		w.hangingTasks(t, hanging)
		for i, pause := range []time.Duration{0, 3 * time.Second, 10 * time.Second, 40 * time.Second} {
			advance(pause)
			c, asked := w.task(i+1), time.Now()
			accepted(t, c.ask())
			for c.held() == "" && time.Since(asked) < time.Minute {
				advance(100 * time.Millisecond)
			}
			took := time.Since(asked)
			t.Logf("%d tasks hang: a token after %s", hanging, took)
			if took > 5*time.Second {
				t.Errorf("task %d has its token after %s beside %d that hang", i+1, took, hanging)
			}
		}
	})
}

// oneRequestOfATaskAtATime: a task whose handle is being exchanged gets that token.
func oneRequestOfATaskAtATime(t *testing.T, w *fixture) {
	c := w.task(1)
	w.backend.delay = 5 * time.Second
	id := accepted(t, c.ask())
	advance(time.Second)
	key, nonce := c.key, c.nonce
	r := c.ask()
	wantRefused(t, r, http.StatusTooManyRequests, "in_progress")
	if got := r.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q", got)
	}
	c.key, c.nonce = key, nonce
	advance(10 * time.Second)
	w.wantState(id, "active")
}

// requestOfTheTaskReplacesOneThatWasNotAnswered: a task that has not answered the push of its request
// has lost its key: it was restarted.
func requestOfTheTaskReplacesOneThatWasNotAnswered(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", nil)
	first := accepted(t, c.ask())
	advance(5 * time.Second)
	w.listen("10.0.1.1:8080", c.pushed)
	second := accepted(t, c.ask())
	advance(time.Second)
	w.wantState(first, "revoked")
	w.wantState(second, "active")
	c.wantLive(c.held())
}
