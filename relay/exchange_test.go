package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/retry"
)

func TestNewEnvoyIsAnsweredFromTheMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, log := remembering(t)
		<-time.After(time.Minute)
		p := open(t, m, silent)
		p.asks(discoveryRequest{kind: cdsType})
		p.wants(patience-time.Millisecond, nil...)
		p.cancel()
		<-p.ended

		open(t, m, silent).starts(greeting) // no server has served meanwhile
		want := "[WARN]  no Consul server serves, answering Envoy from the resources that it got last: age=1m1s\n"
		if log.String() != want {
			t.Errorf("log %q, want %q", log, want)
		}
	})
}

func TestServerThatServesAgainTakesTheStreamOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, log := remembering(t)
		attempts := 0
		update := discoveryResponse{kind: cdsType, resources: []resource{one("api", "2", "tls")}}
		p := open(t, m, func(w http.ResponseWriter, req *http.Request) {
			if attempts++; attempts < 10 {
				status{unavailable, "no leader"}.write(w)
				return
			}
			sending(t, update)(w, req)
			if req.Context().Err() == nil {
				t.Error("a server that serves is taken for one that has failed")
			}
		})
		p.starts(patience)
		if got := p.status(); got != unavailable {
			t.Errorf("status %s, want %s: Envoy has to open another stream", got, unavailable)
		}
		p.wants(0, nil...)
		text := log.String()
		elapsed := text[strings.LastIndex(text, "=")+1:]
		if !strings.HasSuffix(text, "\n[INFO]  a Consul server serves again: elapsed="+elapsed) {
			t.Errorf("log %q", text)
		}

		next := open(t, m, sending(t, update))
		next.asks(discoveryRequest{kind: cdsType, versions: map[string]string{"api": "1"}})
		next.wants(0, update)
	})
}

func TestRunningEnvoyWaitsForAServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, log := remembering(t)
		p := open(t, m, silent)
		p.asks(discoveryRequest{kind: cdsType, versions: map[string]string{"api": "1"}})
		p.asks(discoveryRequest{kind: ldsType, versions: map[string]string{"public_listener": "1"}})
		p.wants(time.Hour, nil...)
		if log.String() != "" {
			t.Errorf("log %q, want none", log)
		}
		failing := open(t, m, func(w http.ResponseWriter, req *http.Request) {
			<-time.After(time.Second)
			status{unavailable, "no leader"}.write(w)
		})
		failing.asks(discoveryRequest{kind: ldsType, versions: map[string]string{"public_listener": "1"}})
		if got := failing.status(); got != unavailable {
			t.Errorf("status %s, want the server's", got)
		}
	})
}

func TestRefusalIsNeverAnsweredFromTheMemory(t *testing.T) {
	t.Parallel()
	for _, code := range []string{permissionDenied, unauthenticated} {
		synctest.Test(t, func(t *testing.T) {
			m, _ := remembering(t)
			refusing := func(w http.ResponseWriter, _ *http.Request) {
				<-time.After(time.Minute)
				status{code, "denied"}.write(w)
			}
			p := open(t, m, refusing)
			p.starts(patience)
			if got := p.status(); got != code {
				t.Errorf("status %s, want %s", got, code)
			}
			next := open(t, m, silent)
			next.asks(discoveryRequest{kind: cdsType})
			next.wants(time.Hour, nil...)
			next.cancel()

			served := open(t, m, sending(t, clusters))
			served.asks(discoveryRequest{kind: cdsType})
			served.wants(0, clusters)
			if !m.ready() {
				t.Error("a server serves again, and nothing is remembered")
			}
		})
	}
}

func TestFirstEnvoyWaitsForAServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := newLog()
		p := open(t, m, sending(t, clusters)) // the server is lost before it sends listeners
		p.asks(discoveryRequest{kind: cdsType})
		p.wants(0, clusters)
		next := open(t, m, silent)
		next.asks(discoveryRequest{kind: cdsType})
		next.wants(time.Hour, nil...)
	})
}

func TestAttemptsInALongOutageAreRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := remembering(t)
		var attempts atomic.Int64
		back := time.Now().Add(5 * time.Hour)
		p := open(t, m, func(w http.ResponseWriter, req *http.Request) {
			if time.Now().After(back) {
				sending(t, clusters)(w, req)
				return
			}
			attempts.Add(1)
			status{unavailable, "no leader"}.write(w)
		})
		p.starts(patience)
		<-time.After(time.Until(back) - time.Hour)
		attempts.Store(0)
		<-time.After(time.Hour)
		if got := attempts.Load(); got > 150 {
			t.Errorf("%d attempts in the fifth hour, want one in 30 s", got)
		}
		<-p.ended
		if late := time.Since(back); late > retry.Remote().Max {
			t.Errorf("served %s after the servers' return", late)
		}
	})
}

// TestRequestsAreRepeatedToEachServer: and passed on once one serves.
func TestRequestsAreRepeatedToEachServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := remembering(t)
		first := framed(asking(discoveryRequest{kind: cdsType}))
		later := framed(bytes.Repeat(asking(discoveryRequest{kind: edsType, subscribe: []string{"api"}}), 10_000))
		received := make(chan error, 1)
		attempts := 0
		p := open(t, m, func(w http.ResponseWriter, req *http.Request) {
			got := make([]byte, len(first))
			if _, err := io.ReadFull(req.Body, got); err != nil || !bytes.Equal(got, first) {
				t.Errorf("attempt %d got %q, %v; want %q", attempts, got, err, first)
			}
			if attempts++; attempts == 1 {
				req.Body.Close()
				status{exhausted, "too many streams"}.write(w)
				return
			}
			w.Write(sent(t, clusters))
			got = make([]byte, len(later))
			_, err := io.ReadFull(req.Body, got)
			if err == nil && !bytes.Equal(got, later) {
				err = errors.New("other requests")
			}
			received <- err
			status{"0", ""}.write(w)
		})
		p.asks(discoveryRequest{kind: cdsType})
		p.wants(patience-time.Millisecond, clusters)
		if _, err := p.send.Write(later); err != nil {
			t.Fatal(err)
		}
		if err := <-received; err != nil {
			t.Error(err)
		}
		if got := p.status(); got != "0" {
			t.Errorf("status %s, want 0", got)
		}
	})
}

// countingServers knows no server, and counts how often it is asked.
type countingServers struct {
	*servers
	asked atomic.Int64
}

func (s *countingServers) GRPCAddresses(ctx context.Context) ([]string, error) {
	s.asked.Add(1)
	return s.servers.GRPCAddresses(ctx)
}

func TestRunningEnvoyAsksRarelyInALongOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := &countingServers{servers: newServers()}
		r := NewXDS(XDSConfig{Servers: set, Token: (&tokenFile{}).read, Log: hclog.NewNullLogger()})
		p := open(t, r.memory, r.serveStream)
		p.asks(discoveryRequest{kind: ldsType, versions: map[string]string{"public_listener": "1"}})
		<-time.After(4 * time.Hour)
		set.asked.Store(0)
		<-time.After(time.Hour)
		if got := set.asked.Load(); got > 150 {
			t.Errorf("%d attempts in the fifth hour, want one in 30 s", got)
		}
	})
}

// TestEndedAttemptReadsNothing: what a later one reads stays, however late the end of its
// request is noticed.
func TestEndedAttemptReadsNothing(t *testing.T) {
	t.Parallel()
	m, _ := newLog()
	x := newExchange(m, httptest.NewRecorder())
	x.replays = true
	x.push([]byte("request"), nil)
	first, req := x.attempt(httptest.NewRequest(http.MethodPost, deltaMethod, http.NoBody))
	if _, err := req.Body.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	first.cancel()
	_, again := x.attempt(httptest.NewRequest(http.MethodPost, deltaMethod, http.NoBody))
	x.replays = false
	if _, err := req.Body.Read(make([]byte, 4)); !errors.Is(err, errOver) {
		t.Errorf("read of the attempt that has ended: %v, want %v", err, errOver)
	}
	part := make([]byte, 16)
	n, err := again.Body.Read(part)
	if got := string(part[:n]); err != nil || got != "request" {
		t.Errorf("read %q, %v; want the whole request", got, err)
	}
}

// TestNothingIsCollectedAfterTooMuch: the rest of a stream of which a message is too long has
// no messages.
func TestNothingIsCollectedAfterTooMuch(t *testing.T) {
	t.Parallel()
	m, _ := newLog()
	m.limit = 64
	x := newExchange(m, httptest.NewRecorder())
	a, _ := x.attempt(httptest.NewRequest(http.MethodPost, deltaMethod, http.NoBody))
	for _, part := range [][]byte{framed(make([]byte, 65)), framed(make([]byte, 60))[:40]} {
		if _, err := a.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if m.remembers() || len(x.responses.body) > 0 {
		t.Errorf("%d bytes of the rest of the stream are kept", len(x.responses.body))
	}
}
