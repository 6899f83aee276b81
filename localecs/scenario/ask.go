package scenario

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// question carries out a step that asks a task something.
func (r *stepRunner) question(ctx context.Context, s file.Step) (err error) {
	var e Event
	switch {
	case s.MTLS != nil:
		e.Kind, e.Task = KindMTLS, s.MTLS.Task
		e.Text, err = mtls(ctx, r.ecs.cluster.Fabric().Infra().DialContext, r.tasks.clusterTask(e.Task).IP(), *s.MTLS)
	case s.Get != nil:
		e.Kind, e.Task = KindGet, s.Get.Task
		e.Text, err = ask(ctx, r.tasks.clusterTask(e.Task).Dial, http.MethodGet, *s.Get)
	case s.Post != nil:
		e.Kind, e.Task = KindPost, s.Post.Task
		e.Text, err = ask(ctx, r.tasks.clusterTask(e.Task).Dial, http.MethodPost, *s.Post)
	default:
		err = fmt.Errorf("the step asks nothing: %s", s)
	}
	if err == nil {
		r.progress.emit(e)
	}
	return err
}

// mtls carries out a step: it checks from outside the mesh that the listener of the
// task at ip presents the identity of a service, and refuses a client without a
// certificate. It returns a description of the result.
func mtls(ctx context.Context, dial dialFunc, ip string, m file.MTLS) (string, error) {
	identity, err := peerIdentity(ctx, dial, net.JoinHostPort(ip, fmt.Sprint(m.Port)))
	if err != nil && !errors.Is(err, errServed) {
		return "", fmt.Errorf("mtls of %s: %w", m.Task, err)
	}
	if !strings.HasSuffix(identity, "/svc/"+m.Service) {
		return "", fmt.Errorf("mtls: %s presents %q, not service %s", m.Task, identity, m.Service)
	}
	if err != nil {
		return "", fmt.Errorf("mtls of %s: %w", m.Task, err)
	}
	return "presents " + identity + "; refuses a client without a certificate", nil
}

// ask carries out a step: it sends a request from inside the task that dial belongs
// to, checks the answer, and returns a description of the result.
func ask(ctx context.Context, dial dialFunc, method string, g file.Get) (string, error) {
	answer, err := send(ctx, dial, method, g.URL)
	if err == nil {
		err = checkAnswer(answer, g.Has, g.Lacks)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w", strings.ToLower(method), g.URL, g.Task, err)
	}
	text := method + " " + g.URL
	if len(g.Has) > 0 {
		text += ", has " + strings.Join(g.Has, ", ")
	}
	if len(g.Lacks) > 0 {
		text += ", lacks " + strings.Join(g.Lacks, ", ")
	}
	return text, nil
}

const (
	// maxAnswer is how much of an answer is looked at, in bytes: Envoy's whole
	// configuration with a thousand endpoints fits.
	maxAnswer = 8 << 20
	// maxExcerpt is how much of an answer an error shows, in bytes.
	maxExcerpt = 200
)

// send sends a request and returns the answer's text. An answer other than 200
// is an error.
func send(ctx context.Context, dial dialFunc, method, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	return string(body), nil
}

// checkAnswer returns an error for each text that an answer must have and lacks, and
// for each that it has and must lack.
func checkAnswer(answer string, has, lacks []string) error {
	var errs []error
	for _, text := range has {
		if !strings.Contains(answer, text) {
			errs = append(errs, fmt.Errorf("the answer lacks %q: %s", text, excerpt(answer)))
		}
	}
	for _, text := range lacks {
		if i := strings.Index(answer, text); i >= 0 {
			errs = append(errs, fmt.Errorf("the answer has %q: %s", text, excerpt(answer[i:])))
		}
	}
	return errors.Join(errs...)
}

// excerpt returns the beginning of an answer, for an error.
func excerpt(text string) string { return text[:min(len(text), maxExcerpt)] }

// dialFunc is net.Dialer.DialContext, or a namespace's.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// patience bounds every question.
const patience = 5 * time.Second

// errServed means that a listener served a client without a certificate.
var errServed = errors.New("it served a client without a certificate")

// peerIdentity returns the SPIFFE ID that a listener presents, empty when its certificate
// has none. The client has no certificate, so a mesh's listener must refuse it.
func peerIdentity(ctx context.Context, dial dialFunc, address string) (string, error) {
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(patience))
	var peer *x509.Certificate
	conn := tls.Client(raw, &tls.Config{
		// The chain is Consul's own; the identity in it is what is looked at.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			peer = s.PeerCertificates[0]
			return nil
		},
	})
	// TLS 1.3: the refusal may come only with the first read.
	_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if peer == nil {
		return "", fmt.Errorf("it does not speak TLS: %w", err)
	}
	identity := ""
	if len(peer.URIs) > 0 {
		identity = peer.URIs[0].String()
	}
	if err == nil {
		return identity, errServed
	}
	return identity, nil
}
