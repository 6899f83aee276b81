package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// requestLimit bounds the answer to a request for a token.
const requestLimit = 8 * time.Second

// Handler serves the broker's API. A broker that does not lead redirects to the one that does.
func (b *Broker) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /metrics":       b.opt.Metrics.Handler().ServeHTTP,
		"GET /v1/health":     b.health,
		"POST /v1/token":     b.leading(endpoints.postToken),
		"GET /token":         b.leading(endpoints.getToken),
		"GET /v1/token/{id}": b.leading(endpoints.getStatus),
		"POST /v1/unwrap":    b.leading(endpoints.postUnwrap),
		"POST /v1/rotate":    b.leading(endpoints.postRotate),
		"POST /v1/revoke":    b.leading(endpoints.postRevoke),
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(pattern, serve)
		mux.HandleFunc(path, b.otherMethod(method))
	}
	mux.HandleFunc("HEAD /token", b.otherMethod(http.MethodGet)) // this GET is not safe
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		b.answer(w, result{}, refuse(http.StatusNotFound, "no_endpoint", "no endpoint %s %q", r.Method, r.URL.Path))
	})
	return mux
}

// otherMethod refuses the methods of an endpoint that has only this one.
func (b *Broker) otherMethod(only string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", only)
		b.answer(w, result{}, refuse(http.StatusMethodNotAllowed, "method", "%s takes %s, not %s", r.URL.Path, only,
			r.Method))
	}
}

// endpoints are those of the API that only the leader serves.
type endpoints struct{ lead *leadership }

// result is what an endpoint answers: a body, or an error.
type result struct {
	status    int
	requestID string
	body      any
}

// leading calls an endpoint of the leader, within the rate of the caller's address.
func (b *Broker) leading(endpoint func(endpoints, *http.Request, caller) (result, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lead := b.leadership.Load()
		if lead == nil {
			b.redirect(w, r)
			return
		}
		from, err := b.caller(r)
		if err == nil && from.known() && !b.addresses.allow(from.client) {
			err = later(http.StatusTooManyRequests, "rate", time.Second, "too many requests from %s", from.client)
		}
		var answer result
		if err == nil {
			answer, err = endpoint(endpoints{lead}, r, from)
		}
		if err == nil && answer.status == http.StatusAccepted {
			w.Header().Set("Location", "/v1/token/"+answer.requestID)
		}
		b.answer(w, answer, err)
	}
}

// redirect points to the leader.
func (b *Broker) redirect(w http.ResponseWriter, r *http.Request) {
	leader := b.leader.Load()
	if leader == nil || *leader == "" {
		b.answer(w, result{}, later(http.StatusServiceUnavailable, "no_leader", busyPause,
			"no broker leads at the moment"))
		return
	}
	b.opt.Metrics.answers.Add(1, strconv.Itoa(http.StatusTemporaryRedirect))
	http.Redirect(w, r, strings.TrimSuffix(*leader, "/")+r.URL.RequestURI(), http.StatusTemporaryRedirect)
}

// answer writes the body, or the error.
func (b *Broker) answer(w http.ResponseWriter, r result, err error) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if err != nil {
		e := receiver.Refusal{Message: "internal error", Code: "internal", RequestID: cmp.Or(r.requestID, rand.Text())}
		r.status = http.StatusInternalServerError
		if refused, ok := errors.AsType[*refusal](err); ok {
			r.status, e.Code, e.Message = refused.status, refused.code, refused.reason
			if refused.after > 0 {
				h.Set("Retry-After", strconv.Itoa(int((refused.after+time.Second-1)/time.Second)))
			}
		} else {
			b.opt.Log.Error("a request failed", logkey.Error, err)
		}
		r.body = e
	}
	encoded, err := encode(r.body)
	if err != nil {
		b.opt.Log.Error("an answer was not encoded", logkey.Error, err)
		r.status, encoded = http.StatusInternalServerError, nil
	}
	b.opt.Metrics.answers.Add(1, strconv.Itoa(r.status))
	w.WriteHeader(r.status)
	_, _ = w.Write(encoded) // a caller that disconnected asks again
}

// encode returns the JSON of a body, with the secret of an unwrapped token.
func encode(body any) ([]byte, error) {
	if u, ok := body.(receiver.Unwrapped); ok {
		return u.Encode()
	}
	return json.Marshal(body)
}

// caller finds who sends a request.
func (b *Broker) caller(r *http.Request) (caller, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return caller{}, refuse(http.StatusBadRequest, "address", "the address of the connection is unknown")
	}
	ip := peer.Addr().Unmap().WithZone("")
	if !contains(b.opt.TrustedProxies, ip) {
		return caller{peer: ip, client: ip}, nil
	}
	forwarded := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	if forwarded == "" && b.opt.AllowUnknownAddress {
		return caller{peer: ip}, nil
	}
	if forwarded == "" {
		err := refuse(http.StatusBadRequest, "address",
			"the proxy before the broker names no address of the caller: let it add X-Forwarded-For")
		if b.unnamed.Level(err) == hclog.Warn { // again after a pause
			b.opt.Log.Warn("a request was refused: a trusted proxy sent no X-Forwarded-For", logkey.Address, ip)
		}
		return caller{}, err
	}
	last := strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:])
	client, err := netip.ParseAddr(last)
	if err != nil {
		return caller{}, refuse(http.StatusBadRequest, "address", "X-Forwarded-For does not end in an address")
	}
	return caller{peer: ip, client: client.Unmap().WithZone("")}, nil // a zone may be any text
}

// read decodes the body of a request.
func read[T any](r *http.Request, decode func([]byte) (T, error)) (T, error) {
	var none T
	body, err := receiver.ReadBody(r.Body)
	if errors.Is(err, receiver.ErrTooLong) {
		return none, refuse(http.StatusRequestEntityTooLarge, "too_long", "%v", err)
	}
	if err != nil {
		return none, refuse(http.StatusBadRequest, "body", "the body cannot be read")
	}
	decoded, err := decode(body)
	if err != nil {
		return none, refuse(http.StatusBadRequest, "body", "%v", err)
	}
	return decoded, nil
}

func (a endpoints) postToken(r *http.Request, from caller) (result, error) {
	in, err := read(r, receiver.DecodeTokenRequest)
	if err != nil {
		return result{}, err
	}
	return a.accept(r.Context(), in, from, secret.Value{})
}

// getToken serves the original form: the task's ID or ARN as name, the cluster as namespace.
func (a endpoints) getToken(r *http.Request, from caller) (result, error) {
	q := r.URL.Query()
	name, namespace, port := q.Get("name"), q.Get("namespace"), q.Get("port")
	in := receiver.TokenRequest{Cluster: namespace, TaskARN: name, CallbackPort: receiver.DefaultPort}
	if name == "" || namespace == "" {
		return result{}, refuse(http.StatusBadRequest, "query", "want name, the task's ID, and namespace, its cluster")
	}
	if port != "" {
		var err error
		if in.CallbackPort, err = strconv.Atoi(port); err != nil {
			return result{}, refuse(http.StatusBadRequest, "query", "port: want a number")
		}
	}
	if !strings.HasPrefix(name, "arn:") {
		cluster, err := a.lead.opt.Rules.cluster(namespace)
		if err != nil {
			return result{}, err
		}
		in.TaskARN = cluster.TaskARN(name)
	}
	return a.accept(r.Context(), in, from, secret.Value{})
}

func (a endpoints) postRotate(r *http.Request, from caller) (result, error) {
	in, err := read(r, receiver.DecodeTokenRequest)
	if err != nil {
		return result{}, err
	}
	bearer, err := bearerOf(r)
	if err != nil {
		return result{}, err
	}
	return a.accept(r.Context(), in, from, bearer)
}

func bearerOf(r *http.Request) (secret.Value, error) {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return secret.Value{}, refuse(http.StatusUnauthorized, "no_bearer",
			"want the current token in Authorization: Bearer")
	}
	return secret.New(bearer), nil
}

func (a endpoints) accept(
	ctx context.Context, in receiver.TokenRequest, from caller, bearer secret.Value,
) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	r, err := a.lead.submit(ctx, in, from, bearer)
	return result{http.StatusAccepted, r.id, receiver.Accepted{RequestID: r.id, StatusURL: "/v1/token/" + r.id}}, err
}

func (a endpoints) getStatus(r *http.Request, from caller) (result, error) {
	id := r.PathValue("id")
	a.lead.table.mu.Lock()
	defer a.lead.table.mu.Unlock()
	found := a.lead.table.requests[id]
	if found == nil || !from.from(found.subject.task.Address) {
		return result{}, refuse(http.StatusNotFound, "unknown_request", "the request is unknown or forgotten")
	}
	return result{http.StatusOK, id, receiver.Status{
		RequestID: id, State: string(found.state.Phase), Reason: found.reason, Attempts: found.attempts,
	}}, nil
}

func (a endpoints) postUnwrap(r *http.Request, from caller) (result, error) {
	in, err := read(r, receiver.DecodeUnwrapRequest)
	if err != nil {
		return result{}, err
	}
	token, err := redeemer(a).redeem(r.Context(), in, from)
	return result{http.StatusOK, in.RequestID, token}, err
}

// health answers 200 while the broker leads and can write the audit log, or knows who leads.
func (b *Broker) health(w http.ResponseWriter, _ *http.Request) {
	leads := b.leadership.Load() != nil
	if !leads && b.leader.Load() == nil {
		b.answer(w, result{}, later(http.StatusServiceUnavailable, "no_leader", busyPause,
			"no broker leads at the moment"))
		return
	}
	if err := b.auditable(); leads && err != nil {
		b.answer(w, result{}, err)
		return
	}
	b.answer(w, result{status: http.StatusOK, body: map[string]bool{"leads": leads}}, nil)
}
