package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestAttacks(t *testing.T) {
	t.Parallel()
	inEach(t, []scenario{racesOfRedemptionGiveOneTokenAtMost, strangersCannotReadTheStateOfARequest,
		floodOfStrangersHoldsBackNoTask, presentedTokenIsOneAlarm})
	inEach(t, []scenario{forgedRequestsDoNotLockATaskOut, forgedRequestReplacesNone}, proxied, unnamed)
	inEach(t, []scenario{textsOfStrangersAreCutInTheLogs}, unsealed)
}

// lines returns the lines of the audit log. A text that is not JSON on one line fails the test.
func (w *fixture) lines() (all []line) {
	w.t.Helper()
	for text := range strings.Lines(w.audit.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			w.t.Errorf("audit line %q: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

// racesOfRedemptionGiveOneTokenAtMost: six redemptions of one handle at once, one of them from
// elsewhere, give one token at most, which is revoked, and an alarm.
func racesOfRedemptionGiveOneTokenAtMost(t *testing.T, w *fixture) {
	races := testkit.Share(300)
	for n := range races {
		c := w.task(1)
		c.arn = taskARN(1000 + n)
		w.ecs.change(c.arn, func(t *types.Task) { *t = *runningTask(c.arn, c.ip) })
		w.listen("10.0.1.1:8080", func(r *http.Request) int { c.open(r); return http.StatusServiceUnavailable })
		id := accepted(t, c.ask())
		advance(time.Second)
		redeemed := race(c, id)
		if redeemed > 1 {
			t.Errorf("race %d: %d tokens", n, redeemed)
		}
		advance(time.Second)
		c.wantLive()
	}
	if got := len(w.alarms()); got != races {
		t.Errorf("%d alarms after %d races", got, races)
	}
}

// race redeems a handle six times at once, and returns how many tokens were given.
func race(c *client, id string) int {
	answers := make(chan int, 6)
	for i := range 6 {
		from := c.ip
		if i == 5 {
			from = elsewhere
		}
		go func() { answers <- c.unwrapFrom(from, id).Code }()
	}
	redeemed := 0
	for range 6 {
		if <-answers == http.StatusOK {
			redeemed++
		}
	}
	return redeemed
}

// forged returns a request in the name of a task, with a key of the attacker.
func forged(t *testing.T, arn string, port int) []byte {
	t.Helper()
	key, err := receiver.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(receiver.TokenRequest{
		Cluster: clusterARN, TaskARN: arn, CallbackPort: port, Nonce: receiver.NewNonce(), PublicKey: key.Public(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// forgedRequestsDoNotLockATaskOut checks that forged requests with a closed port delay a task by at most one
// request's time, behind a proxy that names no addresses.
func forgedRequestsDoNotLockATaskOut(t *testing.T, w *fixture) {
	c := w.task(1)
	attacks := testkit.Share(120)
	for range attacks {
		w.call(http.MethodPost, "/v1/token", "10.99.0.1", forged(t, c.arn, 9999))
		advance(5 * time.Second)
	}
	w.call(http.MethodPost, "/v1/token", "10.99.0.1", forged(t, c.arn, 9999))
	advance(time.Second)
	id := accepted(t, c.ask())
	advance(time.Second)
	if s := w.state(id); s.State != "active" || c.held() == "" {
		t.Errorf("after %d forged requests: %+v", attacks, s)
	}
}

// forgedRequestReplacesNone: a request whose address is not known takes the place of none that comes
// from the task.
func forgedRequestReplacesNone(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", nil)
	id := accepted(t, c.ask())
	advance(time.Second)
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.99.0.1", forged(t, c.arn, 8080)),
		http.StatusTooManyRequests, "in_progress")
	w.listen("10.0.1.1:8080", c.pushed)
	advance(10 * time.Second)
	w.wantState(id, "active")
}

// A stranger learns nothing of a task, AWS or the broker from refusals; the audit log has all.
func TestStrangersLearnNothingFromRefusals(t *testing.T) {
	t.Parallel()
	awsText := fmt.Errorf("AccessDeniedException: User: arn:aws:sts::123456789012:assumed-role/broker-role/s-1 " +
		"is not authorized")
	for name, tt := range map[string]struct {
		change func(*fixture, *types.Task)
		want   string // status and code for strangers
		logged string
		own    string // what the task itself learns, if it can be told from a stranger
	}{
		"group": {
			func(w *fixture, task *types.Task) {
				w.broker.opt.Rules.Groups, task.Group = []string{"service:web"}, aws.String("service:payroll-batch")
			},
			"401 address", "not come from", `tokens are not for task group \"service:payroll-batch\"`,
		},
		"status": {
			func(_ *fixture, task *types.Task) { task.LastStatus = aws.String("STOPPED") },
			"401 address", "not come from", "the task's status is STOPPED",
		},
		"network mode": {
			func(_ *fixture, task *types.Task) { task.Attachments = nil },
			"401 address", "0 network interfaces", "network mode awsvpc",
		},
		"address": {
			func(w *fixture, _ *types.Task) { w.broker.opt.Rules.Networks = w.broker.opt.Rules.Networks[:0] },
			"401 address", "not in the permitted networks", "not in the permitted networks",
		},
		"fault of AWS": {
			func(w *fixture, _ *types.Task) { w.ecs.fault = func() error { return awsText } },
			"502 ecs", "broker-role", "the log of the broker has the cause",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				task := runningTask(c.arn, c.ip)
				tt.change(w, task)
				w.ecs.change(c.arn, func(t *types.Task) { *t = *task })
				answer := w.call(http.MethodPost, "/v1/token", elsewhere, c.request())
				if e, _ := receiver.DecodeRefusal(answer.Body.Bytes()); fmt.Sprintf("%d %s", answer.Code,
					e.Code) != tt.want {
					t.Errorf("answer %d %s, want %s", answer.Code, answer.Body, tt.want)
				}
				for _, word := range []string{"123456789012", "payroll", "STOPPED", "role", "AccessDenied", "10.0."} {
					if strings.Contains(answer.Body.String(), word) {
						t.Errorf("a stranger learns %q: %s", word, answer.Body)
					}
				}
				if log := w.audit.String(); !strings.Contains(log, tt.logged) {
					t.Errorf("audit log without %q: %s", tt.logged, log)
				}
				if own := c.ask().Body.String(); !strings.Contains(own, tt.own) {
					t.Errorf("the task learns %s, want %q", own, tt.own)
				}
			})
		})
	}
}

// strangersCannotReadTheStateOfARequest: the state of a request is for its task.
func strangersCannotReadTheStateOfARequest(t *testing.T, w *fixture) {
	id := accepted(t, w.task(1).ask())
	wantRefused(t, w.call(http.MethodGet, "/v1/token/"+id, elsewhere, nil), http.StatusNotFound, "unknown_request")
}

// evil are texts that could forge a line or command a terminal.
var evil = []string{
	"\n{\"decision\":\"active\",\"alarm\":true}\n", "\r\nrequest active: task_arn=x", "\x1b[2J\x1b]0;owned\a",
	"\x00\x7f\u2028\u202e",
	strings.Repeat("<", 15<<10), strings.Repeat("é", 7<<10), taskARN(1) + "\n", strings.ToUpper(taskARN(1)),
	taskARN(1) + strings.Repeat("0", 9<<10),
}

// textsOfStrangersAreCutInTheLogs: no text of a stranger forges a line, or is longer than a bound in
// the logs.
func textsOfStrangersAreCutInTheLogs(t *testing.T, w *fixture) {
	w.task(1)
	from := func(i int) string { return fmt.Sprintf("10.0.7.%d", i) }
	for i, text := range evil {
		arn := strings.Replace(string(forged(t, "ARN", 8080)), `"ARN"`, quoted(t, text), 1)
		cluster := strings.Replace(string(forged(t, taskARN(1), 8080)), quoted(t, clusterARN), quoted(t, text), 1)
		w.call(http.MethodPost, "/v1/token", from(i), []byte(arn))
		w.call(http.MethodPost, "/v1/token", from(i), []byte(cluster))
		w.call(http.MethodGet, "/v1/token/"+escaped(text), from(i), nil)
		w.call(http.MethodGet, "/token?namespace="+escaped(text)+"&name="+escaped(text), from(i), nil)
		w.call(http.MethodPost, "/v1/unwrap", from(i),
			[]byte(`{"handle":`+quoted(t, text)+`,"request_id":`+quoted(t, text)+`}`))
		w.call(http.MethodPost, "/v1/revoke", from(i), nil, "Authorization", "Bearer "+strings.ToValidUTF8(text,
			""))
	}
	lines := w.lines()
	if len(lines) < 2*len(evil) {
		t.Errorf("%d lines of the audit log, want two for each text", len(lines))
	}
	for text := range strings.Lines(w.audit.String()) {
		if len(text) > 1<<10 {
			t.Errorf("an audit line of %d bytes: %.200s", len(text), text)
		}
	}
	for _, l := range lines {
		if l.Decision != "rejected" || l.Alarm {
			t.Errorf("a line of a stranger: %+v", l)
		}
	}
	for text := range strings.Lines(w.log.String()) {
		if len(text) > 1<<10 || strings.ContainsAny(text, "\x1b\r\x00\a") {
			t.Errorf("a log line of %d bytes: %.200q", len(text), text)
		}
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	q, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(q)
}

// escaped returns each byte of a text in percent encoding.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// flood sends requests in the name of unknown tasks from 20 addresses, 4,000 a second.
func (w *fixture) flood(t *testing.T, seconds int) (sent int) {
	var sending sync.WaitGroup
	bodies := make([][]byte, 20)
	for i := range bodies {
		bodies[i] = forged(t, taskARN(5000+i), 8080)
	}
	for range seconds * 10 {
		for i, body := range bodies {
			sending.Go(func() {
				for range 20 {
					w.call(http.MethodPost, "/v1/token", fmt.Sprintf("10.0.8.%d", i), body)
				}
			})
		}
		sent += 400
		<-time.After(100 * time.Millisecond)
	}
	sending.Wait()
	return sent
}

// floodOfStrangersHoldsBackNoTask: during a flood a task has its token within seconds, and the logs
// grow by a bound.
func floodOfStrangersHoldsBackNoTask(t *testing.T, w *fixture) {
	seconds := testkit.Share(12)
	go func() {
		<-time.After(time.Second)
		c := w.task(1)
		accepted(t, c.ask())
		advance(3 * time.Second)
		if c.held() == "" {
			t.Error("no token after 3 s of a flood")
		}
	}()
	sent := w.flood(t, seconds)
	advance(5 * time.Second)
	lines := w.lines()
	if most := strangerBurst + strangerRate*(seconds+5) + 10; len(lines) > most {
		t.Errorf("%d audit lines after %d requests of strangers, want %d at most", len(lines), sent, most)
	}
	if size := len(w.audit.String()) + len(w.log.String()); size > 200<<10 {
		t.Errorf("%d bytes of logs after %d requests of strangers", size, sent)
	}
	wantRefused(t, w.call(http.MethodPost, "/v1/token", elsewhere, forged(t, taskARN(4999), 8080)),
		http.StatusNotFound, "unknown_task")
	last := w.lines()
	if last[len(last)-1].Omitted == 0 {
		t.Errorf("no line states how many have none: %+v", last[len(last)-1])
	}
	t.Logf("%d requests, %d lines", sent, len(lines))
}

// One task cannot fill the logs with requests that are refused.
func TestRefusalsOfOneTaskAreBoundedInTheLogs(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		w.ecs.change(c.arn, func(t *types.Task) { t.Group = aws.String("service:other") })
		for range 300 {
			c.ask()
			advance(200 * time.Millisecond)
		}
		if got, most := len(w.lines()), refusalBurst+7; got > most {
			t.Errorf("%d lines in a minute, want %d at most", got, most)
		}
	}, func(o *Options) { o.Rules.Groups = []string{"service:web-service"} })
}

// IPv6 addresses of one network are one host's, and zones are no addresses.
func TestAddressesOfOneHostShareALimit(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		codes := map[int]int{}
		for i := range 40 {
			r := httptest.NewRequest(http.MethodPost, "/v1/token", nil)
			r.RemoteAddr = fmt.Sprintf("[2001:db8::%x]:40000", i+1)
			if i%2 == 0 {
				r.RemoteAddr = fmt.Sprintf("[fe80::1%%zone%d]:40000", i)
			}
			recorder := httptest.NewRecorder()
			w.handler.ServeHTTP(recorder, r)
			codes[recorder.Code]++
		}
		if codes[http.StatusTooManyRequests] != 20 {
			t.Errorf("answers %v, want 20 of 40 refused with 429", codes)
		}
	})
}

// presentedTokenIsOneAlarm: a thief that presents a token again and again is one alarm.
func presentedTokenIsOneAlarm(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	for range 20 {
		wantRefused(t, c.giveBack(elsewhere, c.held()), http.StatusUnauthorized, "address")
		advance(time.Second)
	}
	if alarms := w.alarms(); len(alarms) != 1 {
		t.Errorf("%d alarms", len(alarms))
	}
	c.wantLive(c.held())
}
